"""Reproducers as text: complete, plain, and limited to facts of the session."""

import ast
import contextlib
import subprocess
import sys
from dataclasses import replace

import pytest
from html_builders import alone, case
from repro_builders import finding_of, session_of
from rule_builders import verdict

from dlprof.errors import NoReproducer
from dlprof.judge import RULES
from dlprof.probes.base import ArraySpec
from dlprof.probes.cupy import CuPy
from dlprof.probes.jax import Jax
from dlprof.probes.numba import Numba
from dlprof.probes.numpy import NumPy
from dlprof.probes.tensorflow import TensorFlow
from dlprof.probes.torch import Torch
from dlprof.protocol.messages import AT_EXIT
from dlprof.protocol.statement import Side, UserCode
from dlprof.ticket import ticket as tickets
from dlprof.ticket.reproducer import pair_command, reproducer

ALL = [rule.id for rule in RULES]
MODULES = {Torch: "torch", CuPy: "cupy", Jax: "jax", Numba: "numba", NumPy: "numpy"}
PAIRS = [(Torch, CuPy), (TensorFlow, CuPy)]
HOST_PAIRS = [(NumPy, Jax), (Torch, NumPy)]


def text_of(rule, *arguments, **changes):
    session = session_of(rule, *arguments, **changes)
    return reproducer(session, session.findings[0]).text


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Write the scripts of every rule on several pairs into a folder."""
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


@pytest.mark.parametrize(("against", "array"), [(None, "float32 3 of"), (1, "float32 64x64 of")])
def test_a_script_has_the_smallest_array_that_showed_its_finding(against, array):
    session, spec = session_of("DLP018", Torch(), Jax()), ArraySpec((3,), "float32", "aligned")
    small = session_of("DLP018", Torch(), Jax(), spec=spec).results[0]
    scalar = session_of("DLP018", Torch(), Jax(), spec=replace(spec, shape=())).results[0]
    found = session.model_copy(update={"results": [*session.results, scalar, small]})
    finding = finding_of("DLP018", results=[0, 2, 3], against=against)
    assert f"x: {array}" in reproducer(found, finding).text


def test_a_documented_copy_is_written_to_where_its_source_can_be():
    spec = ArraySpec((3,), "float32", "C")
    assert "values of y changed with a write to x" in text_of("DLP018", Torch(), Jax(), spec=spec)
    read_only = text_of("DLP018", NumPy(), Jax(), spec=replace(spec, layout="readonly"))
    assert "x is at" in read_only
    assert "changed" not in read_only


def test_scripts_pass_a_linter(written):
    # F841: an unused result is still assigned to a name.
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "E,F"]
    ruff += ["--ignore", "E501,F841", "."]
    done = subprocess.run(ruff, cwd=written, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_scripts_import_only_frameworks_and_the_standard_library(written):
    known = {*sys.stdlib_module_names, "numpy", "torch", "jax", "cupy", "numba", "onnxruntime"}
    for script in written.glob("*.py"):
        for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert {name.partition(".")[0] for name in names} <= known | {"tensorflow"}, script


def ended(script):
    """Return the exit code of a script, and its last line."""
    run = [sys.executable, "-c", script]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    return done.returncode, (done.stdout.splitlines() or [done.stderr])[-1]


SOME = {"different": 1, "of": 9}


@pytest.mark.parametrize("changed", ["source", "earlier_result", "after_write", "freed"])
def test_a_script_finds_nothing_in_an_innocent_call(changed):
    script = text_of("DLP008", values=verdict("wrong", changed={changed: SOME}))
    assert ended(script) == (0, "the problem is gone")


@pytest.mark.parametrize(
    ("code", "answer"), [("numpy.array(x)", "gone"), ("numpy.missing(x)", "cannot tell")]
)
def test_a_script_of_a_crash_at_exit_tells_no_answer_from_no_crash(code, answer):
    lost = {"stage": AT_EXIT, "signal": "SIGABRT", "how": "killed by SIGABRT"}
    script = text_of(
        "DLP016", code=code, status="ok", reason=None, lost=None, exit=verdict("crashes", lost=lost)
    )
    assert tickets.run(script, sys.executable).verdict == answer


@pytest.mark.parametrize(
    ("rule", "changes", "words"),
    [
        ("DLP016", {"status": "ok", "reason": None}, "lost in an instrument"),
        ("DLP018", {"code": "f(x"}, "not Python"),
    ],
)
def test_a_finding_without_a_reproducer_is_explained(rule, changes, words):
    with pytest.raises(NoReproducer, match=words):
        reproducer(session_of(rule, **changes), finding_of(rule))


def test_the_users_own_conversion_leads_to_every_path_of_its_frameworks():
    sides = {"producer": Side("torch", "torch"), "consumer": Side("numpy", "numpy")}
    own = UserCode.reference([UserCode("import numpy", "x", "{x}", "y", "native", **sides)])
    request = {"probe_files": [own], "python": "/venv/bin/python"}
    words = "dlprof run torch numpy --shape 4x4 --device"
    assert pair_command(alone(case(), request=request)) == f"{words} cpu"
    elsewhere = ["time", "--python", "/venv/bin/python", "y(x)"]
    session = alone(case(), request=request, command=elsewhere, simulated=1)
    assert pair_command(session) == f"{words} simulated --python /venv/bin/python"


def test_a_refused_statement_leads_to_every_path_of_its_own_array():
    sides = {"producer": Side("torch", "torch"), "consumer": Side("numpy", "numpy")}
    own = UserCode.reference(
        [UserCode("import t\nx = t.one()", "x", "{x}", "y", "native", **sides)]
    )
    refused = case(case={"import": "statement"}, status="unsupported")
    session = alone(refused, request={"probe_files": [own]})
    setup = "--setup 'import t' --setup 'x = t.one()'"
    assert pair_command(session) == f"dlprof run '(x)' numpy {setup}"
