"""A worker that is no process: it answers from the journal of a real run."""

import json

import pytest
from builders import make_answer
from recordings import NUMPY_TORCH

from dlprof.runner.replay import Recording


def request_of(recording, number=0, **changes):
    """What a worker is asked for the case with this number."""
    case = recording.header["cases"][number]
    names = {name: ("builtin", case[name]) for name in ("producer", "consumer")}
    return {"do": "case", "instruments": ("host_time",), **case, **names, **changes}


@pytest.fixture
def recording():
    return Recording(NUMPY_TORCH)


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
