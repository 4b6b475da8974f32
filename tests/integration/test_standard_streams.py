"""Standard streams that are closed, full, or read by somebody who has gone; widths and colors."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from command_line import COMMAND, RUN_FAKE, content, environment, process

RUN = (*RUN_FAKE, "--path", "array->view")


def shell(redirected, *words, **variables):
    """A dlprof whose standard streams are redirected like this."""
    line = ["sh", "-c", f'exec "$@" {redirected}', "sh", *COMMAND, *map(str, words)]
    return subprocess.run(
        line, env=environment(**variables), timeout=60, capture_output=True, check=False
    )


@pytest.mark.parametrize("words", [RUN, ("run", "--help")], ids=" ".join)
def test_a_reader_that_goes_early_hears_no_complaint(words):
    reading, writing = os.pipe()
    os.close(reading)
    run = process(*words, stdout=writing)
    os.close(writing)
    assert run.code == 0
    assert run.sentences == []


@pytest.mark.parametrize("words", [("explain", "DLP001"), ("--version",)], ids=" ".join)
def test_a_full_stdout_is_told_in_one_sentence(words):
    with Path("/dev/full").open("wb") as full:
        run = process(*words, stdout=full)
    assert run.code == 2
    assert "No space left on device" in run.sentence()


@pytest.mark.parametrize(("words", "code"), [(("report", "nothing"), 2), (("--version",), 0)])
def test_a_full_stderr_changes_no_exit_code(words, code):
    assert shell("2>/dev/full", *words).returncode == code


def test_closed_standard_streams_disturb_nothing(tmp_path):
    path = tmp_path / "session.json"
    assert shell("<&- >&- 2>&-", *RUN, "-o", path).returncode == 0
    assert content(path)["results"][0]["status"] == "ok"


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
