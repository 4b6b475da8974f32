"""What answers at once loads nothing that takes long to import."""

from __future__ import annotations

import subprocess
import sys

import pytest
from command_line import environment

pytestmark = pytest.mark.integration

HEAVY = ("numpy", "pandas", "scipy", "pyarrow", "jinja2")
ASK = f"""
import atexit, sys
atexit.register(lambda: print(sorted(set({HEAVY!r}) & set(sys.modules)), file=sys.stderr))
sys.argv[0] = "dlprof"
from dlprof.cli import main
main()
"""
COMPLETE = {
    "_DLPROF_COMPLETE": "complete_bash",
    "COMP_WORDS": "dlprof run --sha",
    "COMP_CWORD": "2",
}


@pytest.mark.parametrize(
    ("words", "variables", "out"),
    [
        (("--version",), {}, "dlprof "),
        (("--help",), {}, "Usage: dlprof"),
        ((), COMPLETE, "--shape\n--shapes\n"),
    ],
    ids=["--version", "--help", "completion"],
)
def test_it_loads_nothing_heavy(tmp_path, words, variables, out):
    done = subprocess.run(
        [sys.executable, "-c", ASK, *words],
        env=environment(tmp_path, **variables),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert done.stdout.strip().startswith(out.strip())
    assert done.stderr == "[]\n"
