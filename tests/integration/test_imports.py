"""``import dlprof``, ``dlprof --help`` and ``dlprof probes`` never import a framework."""

from __future__ import annotations

import sys

import pytest
from command_line import COMMAND, dlprof

from dlprof.probes import BUILTIN

pytestmark = pytest.mark.integration

POISON = """
import os, sys
with open(os.path.join(os.environ["DLPROF_TEST_IMPORTS"], __name__), "w") as file:
    file.write(" ".join(sys.argv))
raise ImportError(f"{__name__} must not be imported")
"""


@pytest.fixture
def imported(tmp_path):
    """Run a command where every framework is a trap; the frameworks that fell into it."""
    traps, marks = tmp_path / "traps", tmp_path / "marks"
    traps.mkdir()
    marks.mkdir()
    for name in (*(kind.module for kind in BUILTIN), "tvm_ffi", "pandas", "cuda"):
        (traps / f"{name}.py").write_text(POISON)

    def run(*words: str, command: tuple[str, ...] = COMMAND) -> list[str]:
        variables = {"PYTHONPATH": str(traps), "DLPROF_TEST_IMPORTS": str(marks)}
        done = dlprof(*words, state=tmp_path, command=command, **variables)
        assert done.code == 0, done.err
        return sorted(mark.name for mark in marks.iterdir())

    return run


def test_the_trap_catches(imported):
    catch = "try:\n    import torch\nexcept ImportError:\n    pass"
    assert imported("-c", catch, command=(sys.executable,)) == ["torch"]


@pytest.mark.parametrize("name", ["dlprof", "dlprof.cli", "dlprof.probes", "dlprof.worker.serve"])
def test_importing_dlprof_imports_no_framework(imported, name):
    assert imported("-c", f"import {name}", command=(sys.executable,)) == []


@pytest.mark.parametrize(
    "words",
    [("--help",), ("--version",), ("matrix", "--help"), ("probes",), ("paths", "torch", "jax")],
    ids=" ".join,
)
def test_help_and_lists_import_no_framework_here_or_in_a_worker(imported, words):
    assert imported(*words) == []
