"""Quick verbs import nothing slow and no framework."""

import subprocess
import sys

import pytest
from command_line import environment

from dlprof.probes.builtin import BUILTIN

FRAMEWORKS = {*(kind.module for kind in BUILTIN), "tvm_ffi", "cuda"} - {"numpy"}
HEAVY = {"numpy", "pandas", "scipy", "pyarrow", "jinja2"}
TRAP = """
import os
open(os.path.join(os.environ["DLPROF_TEST_IMPORTS"], __name__), "w").close()
raise ImportError(f"{__name__} must not be imported")
"""
MAIN = "import sys\nsys.argv[0] = 'dlprof'\nfrom dlprof.cli import main\nmain()\n"
COMPLETE = {
    "_DLPROF_COMPLETE": "complete_bash",
    "COMP_WORDS": "dlprof run --sha",
    "COMP_CWORD": "2",
}


@pytest.fixture
def imported(tmp_path):
    """Run code with modules as traps, in workers too. Return the output and the sprung traps."""
    traps, marks = tmp_path / "traps", tmp_path / "marks"

    def run(code, *words, trapped, **variables):
        for folder in (traps, marks):
            folder.mkdir()
        for name in trapped:
            (traps / f"{name}.py").write_text(TRAP)
        variables = {"PYTHONPATH": traps, "DLPROF_TEST_IMPORTS": marks, **variables}
        done = subprocess.run(
            [sys.executable, "-c", code, *map(str, words)],
            env=environment(**variables), capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout, {mark.name for mark in marks.iterdir()}

    return run


@pytest.mark.parametrize(
    ("words", "variables", "said"),
    [
        (("--version",), {}, "dlprof "),
        (("--help",), {}, "Usage: dlprof"),
        ((), COMPLETE, "--shape\n--shapes\n"),
    ],
    ids=["--version", "--help", "completion"],
)
def test_what_answers_at_once_loads_nothing_heavy(imported, words, variables, said):
    own = {"pydantic"} if "--help" in words else set()  # typer reads flags and completes with it
    out, fell = imported(MAIN, *words, trapped=HEAVY | FRAMEWORKS | own, **variables)
    assert out.strip().startswith(said.strip())
    assert fell == set()


@pytest.mark.parametrize("words", [("list",), ("list", "paths", "torch", "jax")], ids=" ".join)
def test_lists_import_no_framework_here_or_in_a_worker(imported, words):
    assert imported(MAIN, *words, trapped=FRAMEWORKS | {"pandas"})[1] == set()
