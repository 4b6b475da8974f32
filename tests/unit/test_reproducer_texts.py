"""Reproducers as text: whole, short, plain, and never more than the session says."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest
from builders import make_session
from repro_builders import finding_of, recipe_of, session_of
from rule_builders import path, verdict

from dlprof.errors import NoReproducer
from dlprof.evidence.repro import EFFECTS, reproducer
from dlprof.probes.base import ArraySpec
from dlprof.probes.cupy import CuPy
from dlprof.probes.host import Array, Mmap
from dlprof.probes.jax import Jax
from dlprof.probes.numba import Numba
from dlprof.probes.numpy import NumPy
from dlprof.probes.onnxruntime import OnnxRuntime
from dlprof.probes.torch import Torch
from dlprof.rules import RULES

pytestmark = pytest.mark.unit

ALL = [rule.id for rule in RULES]
MAPS = {Torch: "torch", CuPy: "cupy", Jax: "jax", Numba: "numba", NumPy: "numpy"}
PAIRS = [(Torch, CuPy), (CuPy, Torch), (Jax, Torch), (Torch, Jax), (CuPy, Jax), (Jax, CuPy)]
HOST_PAIRS = [(NumPy, Jax), (Jax, NumPy), (Torch, NumPy), (OnnxRuntime, Torch), (Numba, NumPy)]
QUEUED = ("DLP001", "DLP002", "DLP003")


def text_of(rule, *arguments, **changes):
    session = session_of(rule, *arguments, **changes)
    return reproducer(session, session.findings[0]).text


def scripts():
    """Every rule on every kind of pair that it can occur with."""
    for rule in ALL:
        for pair in PAIRS:
            if rule != "DLP005" and not (rule == "DLP009" and Jax in pair):
                yield rule, *pair, "cuda"
        for pair in HOST_PAIRS:
            if rule not in (*QUEUED, "DLP006", "DLP020") or pair == (Numba, NumPy):
                yield rule, *pair, "cpu"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """All scripts as files, and the reasons of those that cannot be made."""
    folder = tmp_path_factory.mktemp("scripts")
    reasons = {}
    for index, (rule, producer, consumer, device) in enumerate(scripts()):
        spec = ArraySpec((1024, 1024), "float32", "C", device)
        code = f"{MAPS.get(consumer, 'numpy')}.from_dlpack(x)"
        try:
            text = text_of(rule, producer(), consumer(), spec, code=code)
        except NoReproducer as reason:
            reasons[rule, producer.name, consumer.name, device] = str(reason)
        else:
            name = f"{index}_{rule}_{producer.name}_{consumer.name}_{device}.py"
            (folder / name).write_text(text, encoding="utf-8")
    return folder, reasons


def test_every_rule_has_a_reproducer():
    assert list(EFFECTS) == ALL


def test_what_cannot_be_shown_lacks_a_text_of_the_framework(written):
    lacks = ("no text for", "how work is queued", "neither a write nor", "how the array was made")
    for case, reason in written[1].items():
        assert any(words in reason for words in lacks), (case, reason)


def test_scripts_pass_a_linter_and_fit_a_line(written):
    found = sorted(written[0].glob("*.py"))
    assert {path.name.split("_")[1] for path in found} == set(ALL)
    for script in found:
        lines = script.read_text(encoding="utf-8").splitlines()
        assert max(map(len, lines)) <= 88, script
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "E,F", "."]
    done = subprocess.run(ruff, cwd=written[0], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_scripts_import_frameworks_and_the_standard_library_only(written):
    known = {*sys.stdlib_module_names, "numpy", "torch", "jax", "cupy", "numba", "onnxruntime"}
    for script in written[0].glob("*.py"):
        for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert {name.partition(".")[0] for name in names} <= known, script


@pytest.mark.parametrize("rule", [rule for rule in ALL if rule not in (*QUEUED, "DLP015")])
def test_the_conversion_stands_there_as_in_the_session(rule):
    assert "numpy.array(x)" in text_of(rule)


def test_work_is_queued_in_the_words_of_the_producer():
    text = text_of("DLP001", Torch(), CuPy(), ArraySpec((8,), "float32", "C", "cuda"))
    assert "torch.cuda._sleep(work * 1000000)" in text
    assert "torch.cuda.current_stream().synchronize()" in text


def test_a_race_that_was_seen_on_own_streams_is_shown_on_own_streams():
    session = session_of("DLP003", Torch(), CuPy(), ArraySpec((8,), "float32", "C", "cuda"))
    finding = finding_of("DLP003", evidence={"streams": "own streams"})
    text = reproducer(session, finding).text
    assert "with torch.cuda.stream(torch.cuda.Stream()), cupy.cuda.Stream(non_blocking=True):" in (
        text
    )


def race_script(producer, evidence):
    session = session_of("DLP003", producer, CuPy(), ArraySpec((8,), "float32", "C", "cuda"))
    return reproducer(session, finding_of("DLP003", evidence=evidence)).text


def test_a_race_that_waits_is_shown_in_memory_with_wrong_values():
    text = race_script(Torch(), {"waits": "device-sync"})
    assert "y.fill_(1)\n" in text
    assert text.index("y.fill_(1)") < text.index("del y") < text.index("z = convert(y)")


@pytest.mark.parametrize("producer", [Torch, CuPy])
def test_a_script_for_a_race_that_waits_on_streams_of_its_own_fits_a_line(producer):
    text = race_script(producer(), {"waits": "device-sync", "streams": "own streams"})
    assert max(map(len, text.splitlines())) <= 88


@pytest.mark.parametrize(("producer", "evidence"), [(Torch(), {}), (Jax(), {"waits": "host-sync"})])
def test_a_race_alone_needs_no_such_memory_and_what_cannot_be_written_has_none(producer, evidence):
    assert "del y" not in race_script(producer, evidence)


def test_a_copy_that_depends_on_alignment_is_shown_at_an_address_of_the_kind_that_was_seen():
    owned = verdict("view", source_alignment_bytes=4096)
    aligned = text_of("DLP018", ownership=owned)
    assert "(64 - memory.ctypes.data) % 128:" in aligned
    several = {"source_alignment_bytes": 16, "source_alignments_bytes": [16, 64]}
    assert "(64 - memory.ctypes.data) % 128:" in text_of(
        "DLP018", ownership=verdict("view", **several)
    )
    unknown = verdict("view", source_alignment_bytes=None)
    assert "memory = " not in text_of("DLP018", ownership=unknown)


def test_a_session_without_source_text_is_told_so():
    session = make_session(path("f(x)"), findings=[finding_of("DLP018", against=None)])
    with pytest.raises(NoReproducer, match="older dlprof"):
        reproducer(session, session.findings[0])


@pytest.mark.parametrize("indices", [[], [7], [-1]])
def test_a_finding_of_no_result_is_told_so(indices):
    session = session_of("DLP018")
    with pytest.raises(NoReproducer, match="names no result"):
        reproducer(session, finding_of("DLP018", results=indices))


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("f(x", "not Python"),
        ("f(x) # \u202e", "cannot be shown"),
        ("f(x) # \x1b[31m", "cannot be shown"),
        ("f('\ud800')", "cannot be shown"),
        (f"f(x{' ' * 1_000_000})", "too long"),
        ("f(x)\x00", "cannot be shown|not Python"),
    ],
)
def test_a_hostile_conversion_is_refused_in_words(code, reason):
    with pytest.raises(NoReproducer, match=reason):
        text_of("DLP018", code=code)


def test_an_array_of_another_size_is_converted_by_the_code_for_it():
    made = {"create": "x = bytes(12)", "code": "numpy.frombuffer(x).reshape((12,))"}
    kept = verdict("retained", references_per_conversion=1.0, **made)
    text = text_of("DLP010", code="numpy.frombuffer(x).reshape((64, 64))", lifetime=kept)
    assert "y = numpy.frombuffer(x).reshape((12,))" in text
    assert "64, 64" not in text


def test_hostile_code_in_evidence_is_refused_in_words():
    kept = verdict("retained", references_per_conversion=1.0, code="import os")
    with pytest.raises(NoReproducer):
        text_of("DLP010", lifetime=kept)


KINDS = {
    "source": ({"different": 1, "of": 9}, "after = x.copy()"),
    "source_writable": ([True, False], "before = x.flags.writeable"),
    "earlier_result": ({"different": 1, "of": 9}, "held = x"),
    "after_write": ({"different": 1, "of": 9}, "x[...] = 1"),
}


def text_of_change(kind, detail, producer=None, **evidence):
    values = verdict("wrong", changed={kind: detail}, **evidence)
    return text_of("DLP008", producer, values=values)


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_call_changes_besides_its_result_has_a_script_of_its_own(kind):
    detail, line = KINDS[kind]
    assert line in text_of_change(kind, detail)


@pytest.mark.parametrize("kind", KINDS)
def test_a_script_finds_nothing_in_an_innocent_call(kind):
    done = subprocess.run(
        [sys.executable, "-c", text_of_change(kind, KINDS[kind][0])],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "the problem is gone"), done


def test_copies_of_immutable_arrays_are_told_by_their_address():
    text = text_of_change("earlier_result", {"same_address": True}, Jax())
    assert "addresses = y.ctypes.data, z.ctypes.data" in text


def test_the_array_that_showed_the_change_is_made():
    text = text_of_change("source", {"different": 1, "of": 9}, create="x = numpy.zeros(9)")
    assert "x = numpy.zeros(9)" in text


def test_what_cannot_be_written_has_no_script_for_a_kept_result():
    with pytest.raises(NoReproducer, match="no text for"):
        text_of_change("after_write", {"different": 1, "of": 9}, Jax())


@pytest.mark.parametrize("name", ["create", "setup", "source"])
def test_hostile_source_text_is_refused_in_words(name):
    made = recipe_of()
    bad = {"create": {"C": "x = ("}, "setup": ["import ("], "source": {"write": "{x}[ = 1"}}
    with pytest.raises(NoReproducer):
        text_of("DLP018", recipe={**made, name: bad[name]})


def test_no_script_is_refused_because_it_is_long():
    made = recipe_of()
    create = {"C": "\n".join(f"x = {number}" for number in range(100))}
    text = text_of("DLP018", recipe={**made, "create": create}, code=f"f({'x' * 300})")
    assert "x = 99" in text
    assert "x" * 300 in text


def test_quotes_in_the_conversion_do_not_end_the_docstring():
    text = text_of("DLP018", code='f(x, """a""", "\\\\")')
    assert isinstance(ast.parse(text).body[0], ast.Expr)


def test_environment_variables_that_are_no_plain_words_are_left_out():
    session = session_of("DLP018")
    environment = {"variables": {"GOOD": "1", "BAD": '"); import os #', "\u202e": "x"}}
    session = session.model_copy(update={"environment": environment})
    text = reproducer(session, session.findings[0]).text
    assert 'os.environ.setdefault("GOOD", "1")' in text
    assert "BAD" not in text


def test_text_that_is_no_python_beside_other_text_is_refused():
    session = session_of("DLP018")
    result = session.results[0]
    recipe = result.recipe.model_copy(update={"result": {**result.recipe.result, "values": "{x}("}})
    session = session.model_copy(
        update={"results": [result.model_copy(update={"recipe": recipe}), *session.results[1:]]}
    )
    with pytest.raises(NoReproducer, match="is not Python"):
        reproducer(session, session.findings[0])


@pytest.mark.parametrize("kind", [Array, Mmap], ids=lambda kind: kind.name)
def test_parts_of_python_have_no_version_and_are_printed_all_the_same(kind):
    spec = ArraySpec((64, 64), "float32")
    text = text_of("DLP016", kind(), NumPy(), spec, code="numpy.frombuffer(x)")
    assert f'getattr({kind.module}, "__version__", "")' in " ".join(text.split())
    assert "numpy.__version__" in text


@pytest.mark.parametrize("rule", ["DLP011", "DLP020"])
def test_what_a_setup_of_ones_own_makes_cannot_be_made_again(rule):
    session = session_of(rule)
    own = session.model_copy(update={"request": {"probe_files": ["code:{}"]}})
    with pytest.raises(NoReproducer, match="setup of your own"):
        reproducer(own, own.findings[0])


@pytest.mark.parametrize("rule", ["DLP011", "DLP020"])
def test_an_import_that_has_a_setup_is_none_of_the_users_own(rule):
    session = session_of(rule)
    first, *rest = session.results
    case = first.case.model_copy(update={"setup": "import numba.cuda"})
    results = [first.model_copy(update={"case": case}), *rest]
    session = session.model_copy(update={"results": results})
    assert reproducer(session, session.findings[0]).text


def test_memory_that_cannot_be_written_is_told_by_its_address():
    unwritten = verdict("view", not_written="read-only", same_address=True)
    spec = ArraySpec((64, 64), "float32", "readonly")
    code = "torch.frombuffer(x, dtype=torch.float32)"
    text = text_of("DLP009", Mmap(), Torch(), spec, code=code, ownership=unwritten)
    assert "fill_" not in text
    assert "begins[0] == begins[1]" in text


def test_a_process_that_was_lost_in_an_instrument_is_no_crash_of_the_conversion():
    with pytest.raises(NoReproducer, match="lost in an instrument"):
        text_of("DLP016", status="ok", reason=None)


def test_nobody_waits_for_a_script_as_long_as_for_a_large_array():
    reason = "no answer within 1e+03 s during first call"
    with pytest.raises(NoReproducer, match="wait 1,000 s"):
        text_of("DLP016", status="timeout", reason=reason)


def test_each_conversion_of_a_script_for_a_hang_has_the_limit_that_it_had():
    text = text_of("DLP016", status="timeout", reason="no answer within 60 s during host_time")
    assert "gives no answer within 60 s." in text
    assert text.index("for _ in range(100)") < text.index("signal.alarm(60)")
