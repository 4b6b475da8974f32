"""Reproducers as text: whole, plain, and never more than the session says."""

import ast
import contextlib
import subprocess
import sys

import pytest
from repro_builders import finding_of, recipe_of, session_of
from rule_builders import verdict

from dlprof.errors import NoReproducer
from dlprof.judge import RULES
from dlprof.probes.base import ArraySpec
from dlprof.probes.cupy import CuPy
from dlprof.probes.host import Bytes
from dlprof.probes.jax import Jax
from dlprof.probes.numba import Numba
from dlprof.probes.numpy import NumPy
from dlprof.probes.tensorflow import TensorFlow
from dlprof.probes.torch import Torch
from dlprof.protocol.statement import Side, UserCode
from dlprof.ticket.reproducer import reproducer
from dlprof.worker.instruments import recipe
from dlprof.worker.loading import own_probes

ALL = [rule.id for rule in RULES]
MODULES = {Torch: "torch", CuPy: "cupy", Jax: "jax", Numba: "numba", NumPy: "numpy"}
PAIRS = [(Torch, CuPy), (TensorFlow, CuPy)]
HOST_PAIRS = [(NumPy, Jax), (Torch, NumPy)]
ON_CUDA = ArraySpec((1024,), "float32", "C", "cuda")


def text_of(rule, *arguments, **changes):
    session = session_of(rule, *arguments, **changes)
    return reproducer(session, session.findings[0]).text


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder with the scripts of every rule on several pairs."""
    folder = tmp_path_factory.mktemp("scripts")
    cases = [(rule, *pair, "cuda") for rule in ALL for pair in PAIRS]
    cases += [(rule, *pair, "cpu") for rule in ALL for pair in HOST_PAIRS]
    for rule, producer, consumer, device in cases:
        spec = ArraySpec((1024, 1024), "float32", "C", device)
        code = f"{MODULES.get(consumer, 'numpy')}.from_dlpack(x)"
        with contextlib.suppress(NoReproducer):
            text = text_of(rule, producer(), consumer(), spec=spec, code=code)
            name = f"{rule}_{producer.name}_{consumer.name}_{device}.py"
            (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_every_rule_has_a_reproducer(written):
    assert {path.name.split("_")[0] for path in written.glob("*.py")} == set(ALL)


def test_scripts_pass_a_linter(written):
    # F841: a result that is not looked at has a name all the same.
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "E,F"]
    ruff += ["--ignore", "E501,F841", "."]
    done = subprocess.run(ruff, cwd=written, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_scripts_import_frameworks_and_the_standard_library_only(written):
    known = {*sys.stdlib_module_names, "numpy", "torch", "jax", "cupy", "numba", "onnxruntime"}
    for script in written.glob("*.py"):
        for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert {name.partition(".")[0] for name in names} <= known | {"tensorflow"}, script


def test_no_script_is_refused_because_it_is_long():
    create = {"C": "\n".join(f"x = {number}" for number in range(2000))}
    text = text_of("DLP018", recipe={**recipe_of(), "create": create}, code=f"f({'x' * 300})")
    assert "x = 1999" in text
    assert "x" * 300 in text


def test_a_race_on_own_streams_is_not_called_gone_where_there_are_none_to_show_it_on():
    session = session_of("DLP003", Jax(), Jax(), spec=ON_CUDA)
    finding = finding_of("DLP003", evidence={"streams": "own streams"})
    with pytest.raises(NoReproducer, match="no text for 'own_stream'"):
        reproducer(session, finding)


def ended(script):
    """The exit code of a script, and its last line."""
    run = [sys.executable, "-c", script]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    return done.returncode, (done.stdout.splitlines() or [done.stderr])[-1]


SOME = {"different": 1, "of": 9}


@pytest.mark.parametrize(
    "changed",
    [
        {"source": SOME},
        {"earlier_result": SOME},
        {"after_write": SOME},
    ],
    ids=",".join,
)
def test_a_script_finds_nothing_in_an_innocent_call(changed):
    script = text_of("DLP008", values=verdict("wrong", changed=changed))
    assert ended(script) == (0, "the problem is gone")


def test_a_probe_without_a_text_for_values_has_no_script_that_compares_them():
    class Bare(NumPy):
        def idioms(self, device, dtype):
            return {}

    with pytest.raises(NoReproducer, match="the probe of numpy has no text for 'values'"):
        text_of("DLP008", NumPy(), Bare(), values=verdict("wrong", changed={"values": SOME}))


def test_a_script_finds_the_device_of_an_array_without_dlpack():
    setup = "import numpy\nclass OnHost: pass\nclass OnDevice:\n    __cuda_array_interface__ = {}"
    recipe = {**recipe_of(setup=setup), "create": {"C": "x = OnDevice()"}}
    assert ended(text_of("DLP027", recipe=recipe, code="numpy.ones(3)"))[0] == 1
    assert ended(text_of("DLP027", recipe=recipe, code="OnHost()"))[0] == 1
    assert ended(text_of("DLP027", recipe=recipe, code="OnDevice()"))[0] == 0


def test_a_script_shows_what_only_many_refusals_break():
    setup = (
        "refused = []\n"
        "def take(x):\n"
        "    if x.dtype == 'int8':\n        refused.append(1)\n        raise ValueError('no int8')\n"
        "    if len(refused) > 30:\n        raise RuntimeError('broken')\n"
        "    return x"
    )
    broken = {
        "error": ["ValueError"], "after": "RuntimeError: broken", "plain_code": "take(x)",
        "plain_create": "x = numpy.ones(3, dtype='float32')",
    }  # fmt: skip
    spec = ArraySpec((4, 4), "int8")
    recipe = recipe_of(spec=spec, setup=setup)
    refusal = verdict("broken", **broken)
    script = text_of("DLP026", spec=spec, code="take(x)", recipe=recipe, refusal=refusal)
    assert ended(script) == (1, "the problem is there")


def test_a_script_waits_for_a_thread_that_ends_the_process_later():
    setup = (
        "import os, threading\n"
        "def take(x):\n"
        "    timer = threading.Timer(0.5, os.abort)\n    timer.daemon = True\n    timer.start()"
    )
    script = text_of("DLP016", code="take(x)", recipe=recipe_of(setup=setup))
    assert ended(script) == (1, "the problem is there")


def test_a_script_shows_what_a_conversion_leaves_until_it_is_refused():
    left = dict.fromkeys(("bytes", "references", "objects", "threads", "maps"), 0.0)
    evidence = {
        f"{what}_per_conversion": count for what, count in {**left, "descriptors": 1.0}.items()
    }
    script = text_of(
        "DLP010",
        status="unsupported",
        code="take(x)",
        recipe=recipe_of(setup="import os\ndef take(x):\n    os.open('/dev/null', os.O_RDONLY)"),
        lifetime=verdict("retained", conversions=150, runs=2, size_bytes=65536, **evidence),
    )
    assert ended(script) == (1, "the problem is there")


@pytest.mark.parametrize(
    "code", ["state[0]", "1, state[0]", "state[0]  # one", "state[0],"], ids=repr
)
@pytest.mark.parametrize(
    ("call", "found"),
    [("state.clear()", 1), ("state.append(2)", 0), ("state.insert(0, 2)", 1)],
    ids=["cannot be read any more", "the same", "another value"],
)
def test_a_script_reads_a_setting_before_and_after_the_call(code, call, found):
    setup = f"state = [1]\ndef take(x):\n    {call}\n    return x"
    setting = {"name": "locale of the process", "code": code, "before": "1", "after": "?"}
    script = text_of(
        "DLP025",
        code="take(x)",
        recipe=recipe_of(setup=setup),
        settings=verdict("changed", changed=[setting]),
    )
    assert ended(script)[0] == found


def test_a_bounce_on_a_simulated_device_is_not_decided_by_times():
    with pytest.raises(NoReproducer, match="simulated"):
        text_of("DLP006", CuPy(), CuPy(), spec=ON_CUDA, untimed=True)


def test_a_script_shows_a_source_that_is_spoiled_when_its_result_goes():
    spoiled = {"lifetime": verdict("dangling", source_after_drop="changed")}
    setup = (
        "def take(x):\n    y = x.view()\n"
        "    __import__('weakref').finalize(y, x.fill, 3)\n    return y"
    )
    made = recipe_of(setup=setup)
    script = text_of("DLP011", code="take(x)", recipe=made, **spoiled)
    assert ended(script) == (1, "the problem is there")
    assert ended(text_of("DLP011", code="x.view()", **spoiled)) == (0, "the problem is gone")


def test_nan_of_a_survey_is_no_change():
    spec = ArraySpec((6, 10), "float32", "F", "cpu", corners=True)
    script = text_of("DLP018", spec=spec, case={"promise": "view", "survey": True})
    assert ended(script) == (1, "the problem is there")


def test_a_script_of_a_leak_per_array_makes_a_new_one_for_each_conversion():
    left = verdict("retained", per_source=True, objects_per_conversion=2.0, size_bytes=16384)
    script = text_of("DLP010", lifetime=left)
    assert "each new array" in script
    assert ended(script) == (0, "the problem is gone")


@pytest.mark.parametrize(
    ("code", "end"),
    [("x.view()", (0, "the problem is gone")), ("keep(x.view())", (1, "the problem is there"))],
)
def test_what_making_the_arrays_leaves_behind_is_not_that_of_their_conversion(code, end):
    made = recipe_of(setup="kept = []\ndef keep(y):\n    kept.append([y])\n    return y")
    made["create"] = {"C": f"{made['create']['C']}\nkept.append([[], [], []])"}
    left = verdict("retained", per_source=True, objects_per_conversion=2.0, size_bytes=16384)
    assert ended(text_of("DLP010", code=code, recipe=made, lifetime=left)) == end


def test_a_result_that_was_lost_late_is_read_as_late_by_the_script():
    late = verdict("dangling", changed_after_drop=True)
    setup = (
        "import threading\ndef take(x):\n    y = x.view()\n"
        "    threading.Timer(0.1, y.fill, [3]).start()\n    return y"
    )
    script = text_of("DLP011", code="take(x)", recipe=recipe_of(setup=setup), lifetime=late)
    assert ended(script) == (1, "the problem is there")


def hostile(**texts):
    return {"recipe": {**recipe_of(), **texts}}


@pytest.mark.parametrize(
    ("rule", "changes", "results", "words"),
    [
        ("DLP999", {}, [0], "no reproducer for DLP999"),
        ("DLP018", {}, [], "names no result"),
        ("DLP016", {"status": "ok", "reason": None}, [0], "lost in an instrument"),
        ("DLP018", {"recipe": None}, [0], "older dlprof"),
        ("DLP018", {"code": "f(x"}, [0], "not Python"),
        ("DLP018", {"code": "import os"}, [0], "not Python"),
        ("DLP018", hostile(create={"C": "x = ("}), [0], "not Python"),
        ("DLP018", hostile(setup=["import ("]), [0], "not Python"),
    ],
)
def test_what_cannot_be_reproduced_is_told_in_words(rule, changes, results, words):
    session = session_of(rule, **changes)
    with pytest.raises(NoReproducer, match=words):
        reproducer(session, finding_of(rule, results=results))


def test_a_view_of_bytes_that_python_shares_cannot_be_shown_to_dangle():
    with pytest.raises(NoReproducer, match="same values"):
        text_of("DLP011", Bytes(), NumPy(), code="numpy.frombuffer(x, dtype=numpy.float32)")


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_environment_variables_are_set_for_a_gpu_if_they_are_plain_words(device):
    spec = ArraySpec((64,), "float32", "C", device)
    variables = {"GOOD": "1", "BAD": '"); import os #', "\u202e": "x"}
    header = {"environment": {"variables": variables}}
    text = text_of("DLP007", Torch(), CuPy(), spec=spec, header=header)
    assert ('os.environ.setdefault("GOOD", "1")' in text) is (device == "cuda")
    assert "BAD" not in text


@pytest.mark.parametrize("name", ["convert", "convert_before", "Timer"])
def test_a_name_that_conversion_and_script_both_want_is_refused_in_words(name):
    setup = f"def {name}(array):\n    return array"
    with pytest.raises(NoReproducer, match=f"another use for '{name}'"):
        text_of("DLP014", code=f"{name}(x)", recipe=recipe_of(setup=setup))
    assert "[array]" not in text_of("DLP014", recipe=recipe_of(setup=setup))


@pytest.mark.parametrize("rule", ["DLP011", "DLP020"])
def test_what_a_setup_of_ones_own_makes_cannot_be_made_again(rule):
    with pytest.raises(NoReproducer, match="setup of your own"):
        text_of(rule, header={"request": {"probe_files": ["code:{}"]}})


@pytest.mark.parametrize(("source", "lines"), [("x", 0), ("image", 1)])
def test_an_array_of_a_setup_of_ones_own_is_made_by_the_setup_alone(source, lines):
    numpy = Side("numpy", "numpy", ("builtin", "numpy"))
    setup = f"import numpy\n{source} = numpy.ones((64, 64), 'float32')"
    own = UserCode(setup, source, "{x}", "numpy.array({x})", "buffer", numpy, numpy)
    [probe] = own_probes(own)
    made = recipe.measure(probe, probe, probe.imports[0], ArraySpec((64, 64), "float32"))
    text = text_of(
        "DLP018",
        *(probe, probe),
        code=f"numpy.array({source})",
        case={"source": source, "promise": "view"},
        header={"request": {"probe_files": [own.reference()]}},
        recipe=made,
    )
    assert f"{source} = numpy.ones((64, 64), 'float32')" in text
    assert text.count(f"x = {source}\n") == lines
