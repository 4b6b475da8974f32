"""What stops a run loses nothing that was measured, and ``--resume`` finishes it."""

from __future__ import annotations

import json
import os
import shutil
import signal
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

from dlprof.errors import UsageError
from dlprof.measuring import measuring
from dlprof.session.interrupts import uninterrupted

pytestmark = pytest.mark.integration

GATE = str(PROBE_FILES / "gate.py")
ROUNDS = 2
RUN = ("run", "gate", "gate", "--probe", GATE, "--rounds", ROUNDS, "--no-diagnose", "--shape", "16")


def arrived(folder: Path) -> list[int]:
    """The workers that have come to the gate."""
    return [int(file.name.removeprefix("process-")) for file in folder.glob("process-*")]


def stopped_in_round_two(folder: Path, how) -> tuple:
    """Stop a run when every case has been measured once; its end, and the session."""
    path = folder / "session.json"
    gate = folder / "gate"
    gate.mkdir()
    without_hold = ("--path", "*->[vcg]*")
    with running(*RUN, *without_hold, "-o", path, state=folder, DLPROF_TEST_GATE=str(gate)) as run:
        wait_until(lambda: len(arrived(gate)) == ROUNDS, "the second round has come to the gate")
        how(run)
        finished = ended(run)
    (gate / "open").touch()
    return finished, path


def interrupt(run) -> None:
    run.send_signal(signal.SIGINT)


def interrupt_group(run) -> None:
    kill_group(run, signal.SIGINT)


def terminate(run) -> None:
    run.send_signal(signal.SIGTERM)


def hang_up(run) -> None:
    run.send_signal(signal.SIGHUP)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory) -> tuple:
    return stopped_in_round_two(tmp_path_factory.mktemp("stopped"), interrupt)


@pytest.fixture
def session(stopped, tmp_path) -> Path:
    """A copy of the stopped session, to be resumed or broken."""
    return Path(shutil.copy(stopped[1], tmp_path / "session.json"))


def processes(path: Path) -> dict[tuple, dict]:
    """Every process's samples, by the way in, the measure and the round."""
    return {
        (result["case"]["import"], measure, process["round"]): process
        for result in content(path)["results"]
        for measure in ("host_time", "ready_time")
        for process in (result[measure] or {"processes": []})["processes"]
    }


def resumed(path: Path, stopped: tuple, tmp_path: Path, *words: object):
    gate = str(stopped[1].parent / "gate")
    return dlprof("run", "--resume", path, *words, state=tmp_path, DLPROF_TEST_GATE=gate)


def test_ctrl_c_keeps_what_was_measured_and_says_how_to_finish_it(stopped):
    run, path = stopped
    assert run.code == 130
    assert run.sentence() == f"dlprof: stopped; finish it with: dlprof run --resume {path}"
    assert "The run was stopped" in run.out
    session = content(path)
    assert session["complete"] is False
    assert all(result["rounds"][0] == 0 for result in session["results"])


@pytest.mark.parametrize("how", [interrupt_group, terminate, hang_up])
def test_other_signals_that_stop_a_run_do_what_ctrl_c_does(tmp_path, how):
    run, path = stopped_in_round_two(tmp_path, how)
    assert run.code == 130
    assert all(result["rounds"][0] == 0 for result in content(path)["results"])


def test_resume_measures_only_what_is_missing(stopped, session, tmp_path):
    before = processes(session)
    run = resumed(session, stopped, tmp_path)
    assert run.code == 0, run.err
    after = processes(session)
    assert {key: after[key] for key in before} == before
    finished = content(session)
    assert finished["complete"] is True
    assert all(result["rounds"] == [0, 1] for result in finished["results"])


def test_resume_into_another_file_leaves_the_first_one(stopped, session, tmp_path):
    before = session.read_bytes()
    other = tmp_path / "other.json"
    assert resumed(session, stopped, tmp_path, "-o", other).code == 0
    assert session.read_bytes() == before
    assert content(other)["complete"] is True


def test_resume_of_a_complete_session_changes_no_result(tmp_path):
    path = tmp_path / "session.json"
    dlprof("run", "fake", "fake", "--probe", FAKE, *QUICK, "-o", path, state=tmp_path)
    before = path.read_text().splitlines()[1:]
    assert dlprof("run", "--resume", path, state=tmp_path).code == 0
    assert path.read_text().splitlines()[1:] == before


def test_resume_keeps_a_crash_with_all_that_came_before_it(tmp_path):
    path = tmp_path / "session.json"
    probe = ("--probe", PROBE_FILES / "unlucky.py", "--path", "*->later_crash", "--path", "*->view")
    dlprof("run", "unlucky", "unlucky", *probe, *QUICK, "-o", path, state=tmp_path)
    before = content(path)["results"]
    assert dlprof("run", "--resume", path, state=tmp_path).code == 0
    assert content(path)["results"] == before


def test_resume_keeps_results_that_are_not_planned_any_more(stopped, session, tmp_path):
    text = content(session)
    stranger = json.loads(json.dumps(text["results"][0]).replace("from_buffer", "from_elsewhere"))
    session.write_text(json.dumps({**text, "results": [*text["results"], stranger]}))
    assert resumed(session, stopped, tmp_path).code == 0
    # The file was changed by hand: its source text is not taken for ours.
    assert content(session)["results"][-1] == {**stranger, "recipe": None}


@pytest.mark.parametrize(
    "change",
    [
        {"request": {}},
        {"request": {"pairs": 5}},
        {"settings": {"rounds": "many"}},
        {"settings": {"rounds": -1}},
        {"settings": {"sample_ns": 1e300}},
        {"settings": {"limit_s": None}},
        {"settings": {"unheard_of": 1}},
        {"settings": 5},
        {"axes": {"shapes": [["a"]]}},
        {"axes": {"shapes": [[-4]]}},
        {"axes": {"shapes": [[10**30]]}},
        {"axes": {"dtypes": ["float31"]}},
        {"axes": {"layouts": 5}},
        {"axes": {"device": "gpu"}},
        {"axes": None},
        {"python": 5},
        {"globs": [5]},
    ],
    ids=str,
)
def test_a_session_whose_request_makes_no_sense_cannot_be_finished(session, change):
    edit(session, change)
    with pytest.raises(
        UsageError, match=r"does not say what was asked for, so it cannot be finished$"
    ):
        measuring.resume(session, ("run",))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"python": "/nowhere/python"}, "cannot start the interpreter /nowhere/python: No such file or directory"),
        ({"globs": ["nothing like it"]}, "no path matches nothing like it"),
        ({"probe_files": ["/nowhere.py"]}, "cannot use the probe file /nowhere.py: FileNotFoundError"),
        ({"pairs": [["fakir", "fake"]]}, "there is no framework 'fakir'"),
    ],
    ids=str,
)  # fmt: skip
def test_a_session_whose_request_cannot_be_met_stays_as_it_is(session, tmp_path, change, reason):
    edit(session, change)
    before = session.read_bytes()
    run = dlprof("run", "--resume", session, state=tmp_path, DLPROF_TEST_GATE=str(tmp_path))
    assert run.code == 2
    assert reason in run.sentence()
    assert session.read_bytes() == before


def edit(path: Path, change: dict) -> None:
    """Change the request in a session file."""
    edited = content(path)
    for key, value in change.items():
        if key == "request":
            edited["request"] = value
        elif isinstance(value, dict):
            edited["request"][key].update(value)
        else:
            edited["request"][key] = value
    path.write_text(json.dumps(edited))


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A complete session of NumPy."""
    folder = tmp_path_factory.mktemp("finished")
    path = folder / "session.json"
    dlprof("run", "numpy", "numpy", "--path", "*->asarray", *QUICK, "-o", path, state=folder)
    return path


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"packages": {"numpy": "1.0"}}, "with other versions (numpy 1.0 → "),
        ({"python": "3.1.0"}, "with another Python (python 3.1.0 → "),
        ({"dlprof": "0.0"}, "by another dlprof (dlprof 0.0 → "),
        ({"cores": 4096}, "on another machine (cores 4096 → "),
    ],
    ids=str,
)
def test_what_was_measured_elsewhere_is_not_mixed_with_this(finished, tmp_path, change, reason):
    path = tmp_path / "session.json"
    edited = content(finished)
    edited["environment"] |= change
    path.write_text(json.dumps(edited))
    before = path.read_bytes()
    run = dlprof("run", "--resume", path, state=tmp_path)
    assert run.code == 2
    assert f"it was measured {reason}" in run.sentence()
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
def test_resume_takes_no_other_request(session, tmp_path, words, reason):
    run = dlprof("run", *words, "--resume", session, state=tmp_path)
    assert run.code == 2
    assert reason in run.sentence()


def test_a_killed_run_leaves_no_worker_and_a_whole_session(tmp_path):
    path = tmp_path / "session.json"
    hold = ("--path", "*->hold", "--timeout", "600")
    with running(*RUN, *hold, "-o", path, state=tmp_path, DLPROF_TEST_GATE=str(tmp_path)) as run:
        (worker,) = wait_until(lambda: arrived(tmp_path), "the worker hangs")
        assert children(run.pid) == [worker]
        run.kill()
        wait_until(lambda: not alive(worker), "the worker is gone")
    assert content(path)["complete"] is False
    assert [file.name for file in tmp_path.glob(".*")] == []


def test_two_runs_into_the_same_file_leave_one_whole_session(tmp_path):
    path = tmp_path / "session.json"
    words = ("run", "fake", "fake", "--probe", FAKE, *QUICK, "-o", path)
    with running(*words, state=tmp_path) as one, running(*words, state=tmp_path) as other:
        assert [ended(one).code, ended(other).code] == [0, 0]
    assert content(path)["complete"] is True


@pytest.fixture
def interruptible():
    # A shell ignores the signal for what it starts in the background, a test runner too.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_a_second_ctrl_c_does_not_stop_the_last_save():
    saved = []
    with uninterrupted():
        os.kill(os.getpid(), signal.SIGINT)
        saved.append(True)
    assert saved
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
