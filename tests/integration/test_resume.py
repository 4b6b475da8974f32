"""A stopped run loses no measured result, and the same command finishes it; real processes."""

import signal
from pathlib import Path

import pytest
from command_line import (
    PROBE_FILES,
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

ROUNDS = 2
RUN = (
    *("run", "gate", "gate", "--probe", PROBE_FILES / "gate.py", "--path", "*->[vcg]*"),
    *("--rounds", ROUNDS, "--no-diagnose", "--no-survey", "--shape", "16"),
)


@pytest.fixture
def gate(tmp_path, monkeypatch):
    """Return the folder where workers report their arrival at the gate."""
    folder = tmp_path / "gate"
    folder.mkdir()
    monkeypatch.setenv("DLPROF_TEST_GATE", str(folder))
    return folder


def arrived(gate: Path) -> list[int]:
    return [int(file.name.removeprefix("process-")) for file in gate.glob("process-*")]


def samples(path: Path) -> dict[tuple, dict]:
    """Return every process's samples by import, measure and round."""
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
        assert "finish it with: dlprof run" in stopped.sentence()
        assert "fastest" in stopped.out
    assert content(path)["complete"] is False
    before = samples(path)

    run = dlprof(*RUN, "-o", path)
    assert run.code == 0, run.err
    assert content(path)["complete"] is True
    assert all(result["rounds"] == [0, 1] for result in content(path)["results"])
    after = samples(path)
    assert {key: after[key] for key in before} == before


def test_the_same_command_prints_a_complete_session_again(tmp_path):
    path = tmp_path / "session.json"
    first = replay(*RUN_RECORDED, "-o", path)
    before = path.read_bytes()
    again = replay(*RUN_RECORDED, "-o", path)
    assert again.code == 0, again.err
    assert again.out == first.out
    assert "nothing is measured" in again.err
    assert path.read_bytes() == before
