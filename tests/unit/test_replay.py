"""A worker that is no process: it answers from the journal of a real run."""

from __future__ import annotations

import json
import sys

import pytest
from builders import make_answer
from recordings import NUMPY_TORCH

from dlprof import cli
from dlprof.runner.replay import Recording, replayed
from dlprof.session import model as sessions

pytestmark = pytest.mark.unit


def request_of(recording, number=0, **changes):
    """What a worker is asked for the case with this number."""
    case = recording.header["cases"][number]
    names = {name: ("builtin", case[name]) for name in ("producer", "consumer")}
    return {"do": "case", "instruments": ("host_time",), **case, **names, **changes}


@pytest.fixture
def recording():
    return Recording(NUMPY_TORCH)


def test_a_verb_measures_without_a_process(tmp_path, monkeypatch, capfd):
    path = tmp_path / "session.json"
    words = ["dlprof", "run", "numpy", "torch", "--shape", "64", "--no-survey", "-o", str(path)]
    monkeypatch.setattr(sys, "argv", words)
    monkeypatch.setattr(cli, "stop_in_order", lambda: None)  # signals and streams are the tests'
    for stream in ("stdout", "stderr"):
        monkeypatch.setattr(sys, stream, getattr(sys, stream))
    with replayed(NUMPY_TORCH), pytest.raises(SystemExit) as ended:
        cli.main()
    assert not ended.value.code
    assert "torch.from_numpy(x)" in capfd.readouterr().out
    assert {result.status for result in sessions.load(path).results} == {"ok"}


def test_a_case_is_answered_round_by_round_and_then_from_the_first_again(recording):
    answers = [recording.outcome(request_of(recording)).parts["host_time"] for _ in range(4)]
    assert answers[0] != answers[1] != answers[2]
    assert answers[3] == answers[0]


def test_a_recorded_crash_ends_the_worker(tmp_path):
    first = NUMPY_TORCH.read_text().splitlines()[0]
    crash = make_answer("crashed", "killed by SIGSEGV", output="last words")
    line = {"of": 0, "round": 0, "answer": crash}
    path = tmp_path / "crash.journal"
    path.write_text(f"{first}\n{json.dumps(line)}\n")
    recording = Recording(path)
    outcome = recording.outcome(request_of(recording))
    assert (outcome.status, outcome.alive, outcome.output) == ("crashed", False, "last words")


def test_a_request_that_was_not_recorded_fails(recording):
    outcome = recording.outcome(request_of(recording, shape=(7,)))
    assert (outcome.status, outcome.alive) == ("failed", True)
