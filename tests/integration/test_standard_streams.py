"""Standard streams that are full, or whose reader has gone; colors."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from command_line import COMMAND, RUN_FAKE, environment, process

RUN = (*RUN_FAKE, "--path", "array->view")


def test_a_reader_that_goes_early_hears_no_complaint():
    reading, writing = os.pipe()
    os.close(reading)
    run = process(*RUN, stdout=writing)
    os.close(writing)
    assert (run.code, run.sentences) == (0, [])


@pytest.mark.parametrize("words", [("explain", "DLP001"), ("--version",)], ids=" ".join)
def test_a_full_stdout_is_told_in_one_sentence(words):
    with Path("/dev/full").open("wb") as full:
        run = process(*words, stdout=full)
    assert run.code == 2
    assert "No space left on device" in run.sentence()


def test_the_help_has_no_colors_in_a_pipe_on_github():
    run = process("report", "--help", GITHUB_ACTIONS="true")
    assert "Usage" in run.out
    assert "\x1b" not in run.out


@pytest.mark.skipif(shutil.which("script") is None, reason="needs script(1) for a terminal")
@pytest.mark.parametrize(("no_color", "colored"), [(None, True), ("1", False)])
def test_a_terminal_has_colors_unless_they_are_not_wanted(no_color, colored):
    words = " ".join([*COMMAND, "list", "paths", "numpy", "numpy"])
    done = subprocess.run(
        ["script", "-qec", words, "/dev/null"],
        env=environment(NO_COLOR=no_color, TERM="xterm", COLUMNS="200"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (b"\x1b[1m" in done.stdout) is colored
