"""What stops a run loses nothing that was measured, and ``--resume`` finishes it; real processes."""

from __future__ import annotations

import signal
import sys
from contextlib import closing
from pathlib import Path

import pytest
from command_line import (
    FAKE,
    PROBE_FILES,
    QUICK,
    alive,
    children,
    content,
    dlprof,
    ended,
    kill_group,
    running,
    wait_until,
)

from dlprof.runner.journal import Journal
from dlprof.session.state import journal_of

pytestmark = pytest.mark.integration

GATE = str(PROBE_FILES / "gate.py")
ROUNDS = 2
RUN = ("run", "gate", "gate", "--probe", GATE, "--rounds", ROUNDS, "--no-diagnose", "--shape", "16")
WITHOUT_HOLD = ("--path", "*->[vcg]*")


def arrived(folder: Path) -> list[int]:
    """The workers that have come to the gate."""
    return [int(file.name.removeprefix("process-")) for file in folder.glob("process-*")]


def processes(path: Path) -> dict[tuple, dict]:
    """Every process's samples, by the way in, the measure and the round."""
    return {
        (result["case"]["import"], measure, process["round"]): process
        for result in content(path)["results"]
        for measure in ("host_time", "ready_time")
        for process in (result[measure] or {"processes": []})["processes"]
    }


SIGNALS = {
    "Ctrl-C": lambda run: run.send_signal(signal.SIGINT),
    "Ctrl-C of a terminal": lambda run: kill_group(run, signal.SIGINT),
    "SIGTERM": lambda run: run.send_signal(signal.SIGTERM),
    "SIGHUP": lambda run: run.send_signal(signal.SIGHUP),
}


@pytest.mark.parametrize("how", SIGNALS)
def test_a_run_that_is_stopped_says_how_to_finish_it_and_is_finished_so(tmp_path, how):
    path, gate = tmp_path / "session.json", tmp_path / "gate"
    gate.mkdir()
    with running(
        *RUN, *WITHOUT_HOLD, "-o", path, state=tmp_path, DLPROF_TEST_GATE=str(gate)
    ) as run:
        wait_until(lambda: len(arrived(gate)) == ROUNDS, "the second round has come to the gate")
        SIGNALS[how](run)
        stopped = ended(run)
    (gate / "open").touch()
    assert stopped.code == 130
    assert stopped.sentence() == f"dlprof: stopped; finish it with: dlprof run --resume {path}"
    assert "The run was stopped" in stopped.out
    assert content(path)["complete"] is False
    before = processes(path)

    run = dlprof("run", "--resume", path, state=tmp_path, DLPROF_TEST_GATE=str(gate))
    assert run.code == 0, run.err
    assert content(path)["complete"] is True
    assert all(result["rounds"] == [0, 1] for result in content(path)["results"])
    after = processes(path)
    assert {key: after[key] for key in before} == before
    assert not journal_of(path).exists()


def test_a_killed_run_leaves_no_worker_and_is_finished(tmp_path):
    path, gate = tmp_path / "session.json", tmp_path / "gate"
    gate.mkdir()
    with running(
        *RUN, *WITHOUT_HOLD, "-o", path, state=tmp_path, DLPROF_TEST_GATE=str(gate)
    ) as run:
        wait_until(lambda: len(arrived(gate)) == ROUNDS, "the second round has come to the gate")
        workers = children(run.pid)
        run.kill()
        wait_until(lambda: not any(map(alive, workers)), "the worker is gone")
    assert workers
    (gate / "open").touch()
    assert content(path)["complete"] is False

    run = dlprof("run", "--resume", path, state=tmp_path, DLPROF_TEST_GATE=str(gate))
    assert run.code == 0, run.err
    assert content(path)["complete"] is True


def test_a_complete_session_is_not_finished_again(tmp_path):
    path = tmp_path / "session.json"
    dlprof("run", "fake", "fake", "--probe", FAKE, *QUICK, "-o", path, state=tmp_path)
    before = path.read_bytes()
    run = dlprof("run", "--resume", path, state=tmp_path)
    assert run.code == 2
    assert run.sentence() == f"dlprof: {path} is complete: there is nothing to finish"
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("fake", "fake"), "leave the frameworks out"),
        (("--shape", "16"), "leave --shape out"),
        (("--rounds", "5"), "leave --rounds out"),
    ],
    ids=str,
)
def test_resume_takes_no_other_request(tmp_path, words, reason):
    run = dlprof("run", *words, "--resume", tmp_path / "session.json", state=tmp_path)
    assert run.code == 2
    assert reason in run.sentence()


def test_a_second_run_into_the_same_file_is_refused(tmp_path):
    path = tmp_path / "session.json"
    with closing(Journal(journal_of(path), {"python": sys.executable})):
        run = dlprof("run", "fake", "fake", "--probe", FAKE, *QUICK, "-o", path, state=tmp_path)
    assert run.code == 2
    assert "another run writes" in run.sentence()
    assert not path.exists()
