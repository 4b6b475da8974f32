"""Each check of ``dlprof conformance`` passes a framework that conforms, and finds one that does not."""

import ast
import builtins
import ctypes
import importlib.util
import re
import sys
import traceback
from dataclasses import replace
from pathlib import Path

import pytest

from dlprof.conformance import consumer
from dlprof.conformance.binding import binding
from dlprof.conformance.check import answer
from dlprof.conformance.every import CHECKS
from dlprof.conformance.script import MARKED, script
from dlprof.probes import BUILTIN
from dlprof.probes.base import Unsupported
from dlprof.probes.numpy import NumPy
from dlprof.worker.conformance import alone, loaded

PLAIN = Path(__file__).parents[1] / "probe_files" / "plain.py"
REFUSED = {"lanes-4", "padded-differs"}
"""What the framework refuses, as the standards let it."""
CODES = {"holds": 0, "refused": 0, "violated": 1, "unknown": 2}
CRASHES = {"deleter-in-thread"}
"""Their faults end the process; see tests/integration/test_conformance_cli.py."""


@pytest.fixture(scope="module")
def plain():
    spec = importlib.util.spec_from_file_location("plain", PLAIN)
    module = importlib.util.module_from_spec(spec)
    sys.modules["plain"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["plain"]


@pytest.fixture
def verdict(plain, monkeypatch):
    def verdict(name, fault="", kind="Plain"):
        monkeypatch.setattr(plain, "fault", fault)
        monkeypatch.setattr(consumer, "PATIENCE_S", 0.0)
        _, framework = loaded(binding(getattr(plain, kind)()))
        return answer(CHECKS[name], framework)

    return verdict


@pytest.mark.parametrize("name", CHECKS)
def test_a_framework_that_follows_the_standards_passes(name, verdict):
    expected = "refused" if name in REFUSED else "holds"
    expected = "not applicable" if name == "immutable-flag" else expected
    assert verdict(name) == (expected, verdict(name)[1])


@pytest.mark.parametrize("name", [name for name in CHECKS if name not in CRASHES])
def test_a_framework_that_violates_a_clause_is_found(name, verdict):
    assert verdict(name, name)[0] == "violated", verdict(name, name)


@pytest.mark.parametrize("name", ["copies", "keywords-together", "stays-on-device", "refusal-type"])
@pytest.mark.parametrize("dtype", ["int8", "complex128"])
def test_a_violation_for_one_dtype_names_it(name, dtype, verdict):
    word, seen = verdict(name, f"{name}-{dtype}")
    assert word == "violated"
    assert dtype in seen
    assert "float32" not in seen


def execute(text, namespace):
    """The exit code as the page of ``dlprof conformance`` has it: 1 if the script shows a
    violation, and 2 if it ends with another error.
    """
    try:
        exec(compile(text, "script.py", "exec"), namespace)
    except SystemExit as end:
        return end.code or 0
    except AssertionError:
        return 1
    except Exception as error:  # noqa: BLE001 - a script ends with any
        lines = text.splitlines()
        frames = traceback.extract_tb(error.__traceback__)
        ended = [lines[one.lineno - 1] for one in frames if one.filename == "script.py"]
        return 1 if any(MARKED in line for line in ended) else 2
    return 0


@pytest.fixture
def script_code(plain, monkeypatch):
    """The exit code of a script, run here without a process of its own."""

    def script_code(name, fault="", kind="Plain", is_short=False):
        monkeypatch.setattr(plain, "fault", fault)
        bound, framework = loaded(binding(getattr(plain, kind)()))
        if is_short:
            bound = alone(CHECKS[name], bound, framework)
        text = script(CHECKS[name], bound).replace("PATIENCE_S = 2.0", "PATIENCE_S = 0.0")
        namespace = {}
        # A script ends its process without freeing what the framework may still use.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(namespace))
        return execute(text, namespace)

    return script_code


@pytest.mark.parametrize("name", [name for name in CHECKS if name != "immutable-flag"])
def test_a_script_says_that_a_clause_holds(name, script_code):
    assert script_code(name) == 0


@pytest.mark.parametrize("is_short", [False, True])
@pytest.mark.parametrize("name", [name for name in CHECKS if name not in CRASHES])
def test_a_script_says_that_a_clause_is_violated(name, is_short, script_code):
    assert script_code(name, name, is_short=is_short) == 1


@pytest.mark.parametrize("name", ["copies", "keywords-together", "refusal-type", "own-array"])
def test_a_script_has_only_the_array_that_violates_the_clause(name, plain, monkeypatch):
    monkeypatch.setattr(plain, "fault", f"{name}-int16" if name != "own-array" else name)
    bound, framework = loaded(binding(plain.Plain()))
    only = alone(CHECKS[name], bound, framework)
    assert set(only.arrays) == {"C" if name == "own-array" else "int16"}
    assert not {"float64", "complex128"} & set(re.findall(r"\w+", script(CHECKS[name], only)))
    assert set(framework.arrays) == set(bound.arrays)


def test_a_script_has_all_arrays_if_no_one_violates_the_clause_by_itself(plain, monkeypatch):
    monkeypatch.setattr(plain, "fault", "dropped-capsule")
    bound, framework = loaded(binding(plain.Plain()))
    assert alone(CHECKS["dropped-capsule"], bound, framework) == bound


@pytest.mark.parametrize("name", [name for name in CHECKS if name not in CRASHES])
def test_a_script_agrees_with_its_check_where_capsules_are_taken_and_given(
    name, verdict, script_code
):
    for fault in ("", name):
        found = verdict(name, fault, "Capsules")[0]
        if found != "not applicable":
            assert script_code(name, fault, "Capsules") == CODES[found]


def undefined(tree):
    """The names that a script uses and does not bind."""
    nodes = list(ast.walk(tree))
    bound = {
        one.id for one in nodes if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    }
    bound |= {one.arg for one in nodes if isinstance(one, ast.arg)}
    bound |= {one.name for one in nodes if hasattr(one, "name") and isinstance(one.name, str)}
    bound |= {one.asname for one in nodes if isinstance(one, ast.alias) and one.asname}
    used = {one.id for one in nodes if isinstance(one, ast.Name)}
    return used - bound - set(dir(builtins))


@pytest.mark.parametrize("name", ["numpy", "torch", "jax", "tensorflow", "mxnet"])
def test_a_script_needs_the_framework_and_the_standard_library(name):
    (probe,) = (probe for probe in BUILTIN if probe.name == name)
    bound = binding(probe())
    known = {*sys.stdlib_module_names, *re.findall(r"import (\w+)", bound.setup)}
    for check in CHECKS.values():
        try:
            text = script(check, bound)
        except Unsupported:
            continue
        tree = ast.parse(text)
        nodes = list(ast.walk(tree))
        imports = {one.name for node in nodes if isinstance(node, ast.Import) for one in node.names}
        imports |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
        assert {one.partition(".")[0] for one in imports} <= known
        assert undefined(tree) == set(), text


@pytest.mark.parametrize(
    ("setup", "kept"),
    [
        ("import numpy", False),
        ("import numpy\nkind = numpy.dtype('int8')", True),
    ],
)
def test_a_script_imports_what_its_setup_needs(setup, kept):
    bound = replace(binding(NumPy()), setup=setup, arrays={"C": "x = made()"})
    text = script(CHECKS["no-stream-on-cpu"], bound)
    assert ("import numpy\n" in text) == kept


def code_lines(text):
    """How many lines follow the docstring, without empty ones and comments."""
    lines = text.rpartition('"""\n')[2].splitlines()
    return sum(bool(line) and not line.startswith("#") for line in lines)


@pytest.mark.parametrize(
    ("name", "most"),
    [("no-stream-on-cpu", 8), ("no-methods", 6), ("copied-flag", 8), ("negative-strides", 16)],
)
def test_a_script_has_few_lines(name, most):
    assert code_lines(script(CHECKS[name], binding(NumPy()))) <= most
