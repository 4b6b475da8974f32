"""A worker that was lost in the diagnosis: what that proves, and what is still to be asked."""

from __future__ import annotations

import pytest

from dlprof.protocol.messages import DIAGNOSIS
from dlprof.runner.diagnosis import take_over
from dlprof.runner.worker_client import Outcome

pytestmark = pytest.mark.unit

SEGV = "killed by SIGSEGV (Segmentation fault)"


def lost(stage, how=SEGV, **parts):
    outcome = Outcome("crashed", f"{how} during {stage}", stage=stage, alive=False, parts=parts)
    whole = Outcome("ok", None)
    return whole, take_over(whole, outcome, DIAGNOSIS)


@pytest.mark.parametrize("signal", ["SIGSEGV", "SIGBUS", "SIGABRT"])
def test_a_process_that_dies_of_reading_a_result_without_its_source_proves_it_dangling(signal):
    whole, left = lost("lifetime after drop", f"killed by {signal} (…)")
    assert whole.parts["lifetime"]["verdict"] == "dangling"
    assert left == ()


@pytest.mark.parametrize(
    ("stage", "how"),
    [
        ("lifetime after drop", "killed by SIGKILL (Killed)"),
        ("lifetime", SEGV),
        ("lifetime release", SEGV),
        ("lifetime repetition", SEGV),
    ],
)
def test_a_process_that_dies_otherwise_proves_nothing_and_keeps_what_it_knew(stage, how):
    whole, _ = lost(stage, how, after_drop={"changed_after_drop": False})
    reason = f"{how} during {stage}"
    evidence = {"changed_after_drop": False, "reason": reason, "worker": "crashed"}
    assert whole.parts == {"lifetime": {"verdict": "unknown", "evidence": evidence}}


def test_values_that_had_changed_are_proof_whatever_came_then():
    whole, _ = lost("lifetime repetition", after_drop={"changed_after_drop": True})
    assert whole.parts["lifetime"]["verdict"] == "dangling"


def test_a_worker_that_was_lost_before_any_instrument_is_a_failure_of_the_diagnosis():
    whole, left = lost("first call")
    assert left == ()
    assert whole.failures == [{"instrument": "diagnosis", "reason": f"{SEGV} during first call"}]
