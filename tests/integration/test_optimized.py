"""Without docstrings and assertions, as ``PYTHONOPTIMIZE=2`` has it, dlprof does the same."""

import sys

import pytest
from command_line import RUN_FAKE, process

from dlprof.cli import VERBS

HELP = f"""
import contextlib, io, sys
from dlprof.cli import main
for verb in {tuple(VERBS)!r}:
    sys.argv = ["dlprof", verb, "--help"]
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        main()
    print(verb, "Usage: dlprof" in said.getvalue())
"""


def test_every_verb_has_its_help():
    done = process(command=(sys.executable, "-OO", "-c", HELP))
    assert done.code == 0
    assert done.out.splitlines() == [f"{verb} True" for verb in VERBS]


@pytest.mark.parametrize(
    "words",
    [
        ("explain", "DLP008"),
        ("list", "--options"),
        ("history", "add", "--help"),
        RUN_FAKE,
    ],
    ids=" ".join,
)
def test_what_is_printed_needs_no_docstring(words, tmp_path):
    kept = ("-o", tmp_path / "s.json") if words is RUN_FAKE else ()
    assert process(*words, *kept, PYTHONOPTIMIZE="2").code == 0
    if kept:
        assert process("report", kept[1], PYTHONOPTIMIZE="2").code == 0
