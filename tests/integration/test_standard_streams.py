"""Standard streams that are closed, full, or read by somebody who has gone; widths and colours."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import ANSI, COMMAND, FAKE, QUICK, content, dlprof, environment

from dlprof.runner.worker_client import Worker

pytestmark = pytest.mark.integration

RUN = ("run", "fake", "fake", "--probe", FAKE, *QUICK, "--path", "array->view")


@pytest.mark.parametrize(
    "words",
    [RUN, ("probes",), ("paths", "numpy", "numpy"), ("--help",), ("run", "--help"), ("--version",)],
    ids=" ".join,
)
def test_a_reader_that_goes_early_hears_no_complaint(tmp_path, words):
    reading, writing = os.pipe()
    os.close(reading)
    run = dlprof(*words, state=tmp_path, stdout=writing)
    os.close(writing)
    assert run.code == 0
    assert run.sentences == []


@pytest.mark.parametrize(
    "words",
    [("paths", "numpy", "numpy"), ("--help",), ("run", "--help"), ("--version",)],
    ids=" ".join,
)
def test_a_full_stdout_is_told_in_one_sentence(tmp_path, words):
    with Path("/dev/full").open("wb") as full:
        run = dlprof(*words, state=tmp_path, stdout=full)
    assert run.code == 2
    assert run.sentence() == "dlprof: cannot print the report: No space left on device"


@pytest.mark.parametrize(
    ("words", "code"), [(("report", "nothing"), 2), (("--nonsense",), 2), (("--version",), 0)]
)
def test_a_full_stderr_changes_no_exit_code(tmp_path, words, code):
    line = ["sh", "-c", 'exec "$@" 2>/dev/full', "sh", *COMMAND, *words]
    done = subprocess.run(line, env=environment(tmp_path), timeout=60, check=False)
    assert done.returncode == code


@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_disturb_nothing(tmp_path, closed):
    path = tmp_path / "session.json"
    line = 'exec "$@" ' + closed
    words = ["sh", "-c", line, "sh", *COMMAND, *map(str, RUN), "-o", str(path)]
    done = subprocess.run(
        words, env=environment(tmp_path), timeout=60, capture_output=True, check=False
    )
    assert b"Traceback" not in done.stderr
    assert done.returncode == 0
    assert content(path)["results"][0]["status"] == "ok"


def test_an_encoding_without_arrows_disturbs_nothing(tmp_path):
    run = dlprof("paths", "numpy", "numpy", state=tmp_path, PYTHONIOENCODING="latin-1")
    assert run.code == 0
    assert "numpy -> numpy on cpu" in run.out


@pytest.mark.parametrize(
    "changes", [{}, {"FORCE_COLOR": "1"}, {"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str
)
def test_piped_output_has_no_colours_and_no_progress_bar(tmp_path, changes):
    run = dlprof(*RUN, state=tmp_path, **changes)
    assert run.code == 0
    assert not ANSI.search(run.out + run.err)
    assert "round 1" not in run.err


@pytest.mark.parametrize("columns", ["0", "²", "9" * 5000])
def test_an_odd_width_disturbs_nothing(tmp_path, columns):
    assert dlprof("paths", "numpy", "numpy", state=tmp_path, COLUMNS=columns).code == 0


@pytest.mark.skipif(shutil.which("script") is None, reason="needs script(1) for a terminal")
@pytest.mark.parametrize(("no_colour", "coloured"), [(None, True), ("1", False)])
def test_a_terminal_has_colours_unless_they_are_not_wanted(tmp_path, no_colour, coloured):
    words = " ".join(map(str, (*COMMAND, "paths", "numpy", "numpy")))
    done = subprocess.run(
        ["script", "-qec", words, "/dev/null"],
        env=environment(tmp_path, NO_COLOR=no_colour, TERM="xterm", COLUMNS="200"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (b"\x1b[1m" in done.stdout) is coloured


def test_a_worker_that_listens_no_more_and_does_not_end_is_killed():
    # A thread that is no daemon keeps the process after its main thread has failed.
    with Worker(sys.executable, {}) as worker:
        request = {"do": "inspect", "sources": [], "skip": []}
        assert worker.ask(request, 20.0).status == "ok"
        os.close(worker._requests)
        reading, worker._requests = os.pipe()
        os.close(reading)
        assert worker.ask(request, 20.0).status == "crashed"
