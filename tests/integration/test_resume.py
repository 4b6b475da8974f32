"""What stops a run loses nothing that was measured, and ``--resume`` finishes it; real processes."""

import signal
import sys
from contextlib import closing
from pathlib import Path

import pytest
from command_line import (
    PROBE_FILES,
    RUN_FAKE,
    RUN_RECORDED,
    alive,
    content,
    dlprof,
    ended,
    replay,
    running,
    signal_group,
    wait_until,
)

from dlprof.runner import session as sessions
from dlprof.runner.journal import Journal
from dlprof.runner.state import journal_of

ROUNDS = 2
RUN = (
    *("run", "gate", "gate", "--probe", PROBE_FILES / "gate.py", "--path", "*->[vcg]*"),
    *("--rounds", ROUNDS, "--no-diagnose", "--no-survey", "--shape", "16"),
)


@pytest.fixture
def gate(tmp_path, monkeypatch):
    """The folder in which workers say that they came to the gate."""
    folder = tmp_path / "gate"
    folder.mkdir()
    monkeypatch.setenv("DLPROF_TEST_GATE", str(folder))
    return folder


def arrived(gate: Path) -> list[int]:
    return [int(file.name.removeprefix("process-")) for file in gate.glob("process-*")]


def samples(path: Path) -> dict[tuple, dict]:
    """Every process's samples, by the way in, the measure and the round."""
    return {
        (result["case"]["import"], measure, process["round"]): process
        for result in content(path)["results"]
        for measure in ("host_time", "ready_time")
        for process in (result[measure] or {"processes": []})["processes"]
    }


def kill(running):
    running.kill()
    running.wait()


HOW = {
    "Ctrl-C of a terminal": lambda run: signal_group(run, signal.SIGINT),
    "SIGTERM": lambda run: run.send_signal(signal.SIGTERM),
    "SIGKILL": kill,
}


@pytest.mark.parametrize("how", HOW)
def test_a_run_that_is_stopped_leaves_no_worker_and_is_finished(tmp_path, gate, how):
    path = tmp_path / "session.json"
    with running(*RUN, "-o", path) as run:
        wait_until(lambda: len(arrived(gate)) == ROUNDS, "the second round has come to the gate")
        HOW[how](run)
        stopped = ended(run)
    wait_until(lambda: not any(map(alive, arrived(gate))), "the workers are gone")
    (gate / "open").touch()
    if how != "SIGKILL":
        assert stopped.code == 130
        assert f"dlprof run --resume {path}" in stopped.sentence()
        assert "fastest" in stopped.out
    assert content(path)["complete"] is False
    before = samples(path)

    run = dlprof("run", "--resume", path)
    assert run.code == 0, run.err
    assert content(path)["complete"] is True
    assert all(result["rounds"] == [0, 1] for result in content(path)["results"])
    after = samples(path)
    assert {key: after[key] for key in before} == before
    assert not journal_of(path).exists()


def test_a_complete_session_is_not_finished_again(tmp_path):
    path = tmp_path / "session.json"
    replay(*RUN_RECORDED, "-o", path)
    before = path.read_bytes()
    run = dlprof("run", "--resume", path)
    assert run.code == 2
    assert "is complete" in run.sentence()
    assert path.read_bytes() == before


def test_a_second_run_into_a_file_keeps_its_session_beside_it_and_says_so(tmp_path):
    path, beside = tmp_path / "session.json", tmp_path / "session-2.json"
    with closing(Journal(journal_of(path), {"python": sys.executable})):
        run = dlprof(*RUN_FAKE, "-o", path)
    assert run.code == 0, run.err
    assert str(path) in run.err
    assert str(beside) in run.err
    assert sessions.load(beside).complete
    assert not path.exists()
    assert not journal_of(beside).exists()


@pytest.fixture
def begun(tmp_path, monkeypatch):
    """A session that was stopped, whose interpreter says that it was started."""
    path, started = tmp_path / "session.json", tmp_path / "started"
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\ntouch {started}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr("dlprof.runner.rounds.Runner.run", _interrupted)
    assert dlprof(*RUN_FAKE, "--python", python, "-o", path).code == 130
    monkeypatch.undo()
    started.unlink()
    return path, started


def _interrupted(_):
    raise KeyboardInterrupt


@pytest.mark.parametrize("begun_by", ["somebody else", "this user"])
def test_a_session_of_somebody_else_starts_no_interpreter_unasked(
    begun, begun_by, monkeypatch, tmp_path
):
    path, started = begun
    if begun_by == "somebody else":
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
        run = dlprof("run", "--resume", path)
        assert run.code == 2
        assert f"runs the interpreter {tmp_path / 'python'}" in run.sentence()
        assert "--yes" in run.sentence()
        assert not started.exists()
        assert dlprof("run", "--resume", path, "--yes").code == 0
    else:
        assert dlprof("run", "--resume", path).code == 0
    assert started.exists()
