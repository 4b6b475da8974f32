"""A worker lost during the diagnosis: the proof it leaves, and the remaining requests."""

import pytest

from dlprof.protocol.messages import DIAGNOSIS
from dlprof.runner.evidence import Lost
from dlprof.runner.rounds import take_over
from dlprof.runner.worker_client import Outcome


def lost(stage, signal="SIGSEGV", **parts):
    ended = Lost(how=f"killed by {signal}", stage=stage, signal=signal)
    outcome = Outcome("crashed", str(ended), parts, stage=stage, alive=False, lost=ended)
    whole = Outcome("ok", None)
    return whole, take_over(whole, outcome, DIAGNOSIS)


@pytest.mark.parametrize("signal", ["SIGSEGV", "SIGBUS", "SIGABRT"])
@pytest.mark.parametrize("stage", ["lifetime after drop", "lifetime source after drop"])
def test_a_process_that_dies_reading_the_result_proves_it_dangling(signal, stage):
    whole, left = lost(stage, signal)
    assert whole.parts["lifetime"]["verdict"] == "dangling"
    assert left == tuple(name for name in DIAGNOSIS if name != "lifetime")


@pytest.mark.parametrize(
    ("stage", "signal"),
    [
        ("lifetime after drop", "SIGKILL"),
        ("lifetime", "SIGSEGV"),
        ("lifetime release", "SIGSEGV"),
        ("lifetime repetition", "SIGSEGV"),
    ],
)
def test_a_process_that_dies_otherwise_proves_nothing_and_keeps_its_answers(stage, signal):
    whole, _ = lost(
        stage, signal, after_drop={"changed_after_drop": False, "source_after_drop": "same"}
    )
    found = whole.parts["lifetime"]
    assert found["verdict"] == "unknown"
    assert found["evidence"]["changed_after_drop"] is False
    assert (found["evidence"]["worker"], found["evidence"]["lost"]["signal"]) == ("crashed", signal)


def test_earlier_answers_and_failures_are_not_requested_again():
    answered = {"ordering": {"verdict": "synchronous", "evidence": {}}}
    whole, ended = Outcome("ok", None), Outcome("crashed", "killed", answered)
    ended.stage, ended.alive = "early_write", False
    ended.failures.append({"instrument": "alignment", "reason": "it raised"})
    assert take_over(whole, ended, DIAGNOSIS) == ("peak_memory", "lifetime", "fork")


@pytest.mark.parametrize(
    "before", [{"changed_after_drop": True}, {"source_after_drop": "changed"}], ids=str
)
def test_changed_values_are_proof_regardless_of_later_events(before):
    whole, _ = lost("lifetime repetition", after_drop=before)
    assert whole.parts["lifetime"]["verdict"] == "dangling"


def test_a_worker_lost_before_any_instrument_is_a_failure_of_the_diagnosis():
    whole, left = lost("first call")
    assert left == ()
    assert whole.failures == [
        {"instrument": "diagnosis", "reason": "killed by SIGSEGV during first call"}
    ]
