"""Conformance: each check passes a framework that conforms, and finds one that does not."""

import ctypes
import importlib.util
import sys
from pathlib import Path

import pytest

from dlprof.conformance import CHECKS, consumer
from dlprof.conformance.check import answer
from dlprof.conformance.script import binding, script
from dlprof.probes.cuda_core import CudaCore
from dlprof.probes.numpy import NumPy
from dlprof.worker.conformance import loaded

PLAIN = Path(__file__).parents[1] / "probe_files" / "plain.py"
REFUSED = {"lanes-4"}
"""Checks that the framework refuses, as the standards allow."""
CRASHES = {"deleter-in-thread"}
"""These faults end the process; see tests/integration/test_conformance_cli.py."""


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
        return answer(CHECKS[name], loaded(binding(getattr(plain, kind)())))

    return verdict


@pytest.mark.parametrize("name", CHECKS)
def test_a_framework_that_follows_the_standards_passes(name, verdict):
    expected = "refused" if name in REFUSED else "holds"
    expected = "not applicable" if name == "immutable-flag" else expected
    assert verdict(name) == (expected, verdict(name)[1])


@pytest.mark.parametrize("name", [name for name in CHECKS if name not in CRASHES])
def test_a_framework_that_violates_a_clause_is_found(name, verdict):
    # An option of the standard is not violated by a framework without it.
    expected = "refused" if CHECKS[name].severity == "may" else "violated"
    assert verdict(name, name)[0] == expected, verdict(name, name)


ALONE = ("byte-offset", "null-strides-legacy", "deleter-of-refused", "alignment-4")


@pytest.mark.parametrize("fault", ALONE)
def test_one_fault_violates_one_clause(fault, verdict):
    found = [name for name in CHECKS if name not in CRASHES and verdict(name, fault)[0] != "holds"]
    assert [name for name in found if verdict(name, fault)[0] == "violated"] == [fault]


def test_a_consumer_that_clears_the_destructor_calls_the_deleter_once(verdict):
    assert verdict("renames-capsule", "clears-destructor")[0] == "violated"
    assert verdict("deleter-once", "clears-destructor")[0] == "holds"


def test_a_table_without_an_allocator_is_one_violation(plain, verdict, monkeypatch):
    monkeypatch.setattr(plain.TABLE, "allocate", None)
    assert verdict("exchange-table") == ("violated", "the table has NULL for allocate")
    expected = "not applicable", "the table has NULL for allocate"
    assert verdict("exchange-allocates") == expected


@pytest.mark.parametrize("name", ["copies", "keywords-together", "refusal-type"])
@pytest.mark.parametrize("dtype", ["int8", "complex128"])
def test_a_violation_for_one_dtype_names_it(name, dtype, verdict):
    word, seen = verdict(name, f"{name}-{dtype}")
    assert word == "violated"
    assert dtype in seen
    assert "float32" not in seen


SCRIPTS = {"byte-offset", "copies", "deleter-once", "exchange-gives", "own-array", "refusal-type"}
"""A check from each module."""


def ends(text, namespace):
    """Return "holds", or the name of the error that a script ends with."""
    try:
        exec(compile(text, "script.py", "exec"), namespace)
    except Exception as error:  # noqa: BLE001 - a script ends with any
        return type(error).__name__
    return "holds"


@pytest.mark.parametrize("name", sorted(SCRIPTS))
@pytest.mark.parametrize("kind", ["Plain", "Capsules"])
def test_a_script_agrees_with_its_check(name, kind, plain, verdict, monkeypatch):
    for fault in ("", name):
        if (found := verdict(name, fault, kind)[0]) == "not applicable":
            continue
        bound = binding(getattr(plain, kind)())
        namespace = {"print": lambda *_: None}
        # A script ends its process without freeing what the framework may still use.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(namespace))
        text = script(CHECKS[name], bound).replace("PATIENCE_S = 2.0", "PATIENCE_S = 0.0")
        assert ends(text, namespace).lower() == found


def test_an_import_that_needs_a_number_is_checked_too():
    members = binding(CudaCore()).members
    assert "from_dlpack(x, stream_ptr=-1, **keywords)" in members["from_dlpack"]


def test_an_export_without_devices_of_its_own_is_one_of_its_frameworks_devices():
    assert "export" in binding(NumPy()).members
    assert "export" not in binding(NumPy(), "cuda").members
