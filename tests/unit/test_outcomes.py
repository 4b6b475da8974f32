"""Workers that were lost: what that says, and of which instrument."""

from __future__ import annotations

import pytest

from dlprof.protocol.messages import DIAGNOSIS
from dlprof.runner.interpreter import Outcome
from dlprof.runner.outcomes import take_over

pytestmark = pytest.mark.unit

SEGV = "killed by SIGSEGV (Segmentation fault)"


def lost(stage, how=SEGV, **parts):
    outcome = Outcome("crashed", f"{how} during {stage}", stage=stage, alive=False, parts=parts)
    whole = Outcome("ok", None)
    return whole.parts, take_over(whole, outcome, DIAGNOSIS)


@pytest.mark.parametrize("signal", ["SIGSEGV", "SIGBUS", "SIGABRT"])
def test_who_dies_of_reading_a_result_without_its_source_dangled(signal):
    parts, left = lost("lifetime after drop", f"killed by {signal} (…)")
    assert parts["lifetime"]["verdict"] == "dangling"
    assert left == ()


def test_a_process_that_was_killed_from_outside_meanwhile_proves_nothing():
    parts, _ = lost("lifetime after drop", "killed by SIGKILL (Killed)")
    assert parts["lifetime"]["verdict"] == "unknown"


@pytest.mark.parametrize("half", ["lifetime", "lifetime release", "lifetime repetition"])
def test_who_dies_before_the_source_is_dropped_or_after_the_result_was_read_did_not(half):
    parts, _ = lost(half, after_drop={"changed_after_drop": False})
    assert parts["lifetime"] == {
        "verdict": "unknown",
        "evidence": {
            "changed_after_drop": False,
            "reason": f"{SEGV} during {half}",
            "worker": "crashed",
        },
    }


def test_values_that_had_changed_are_proof_whatever_came_then():
    parts, _ = lost("lifetime repetition", after_drop={"changed_after_drop": True})
    assert parts["lifetime"]["verdict"] == "dangling"


def test_what_was_known_on_the_way_is_no_part_of_its_own():
    parts, _ = lost("lifetime repetition", after_drop={"changed_after_drop": False})
    assert set(parts) == {"lifetime"}


def test_the_instruments_after_the_lost_one_are_left():
    _, left = lost("ordering")
    assert left == DIAGNOSIS[1:]


def test_a_worker_that_was_lost_before_any_instrument_is_a_failure_of_the_diagnosis():
    whole = Outcome("ok", None)
    outcome = Outcome("crashed", f"{SEGV} during first call", stage="first call", alive=False)
    assert take_over(whole, outcome, DIAGNOSIS) == ()
    assert whole.failures == [{"instrument": "diagnosis", "reason": f"{SEGV} during first call"}]


def test_what_was_found_on_a_disturbed_device_is_kept_with_a_note():
    whole = Outcome("ok", None)
    found = {"lifetime": {"verdict": "retained", "evidence": {}}}
    disturbed = Outcome("invalid", "GPU 0 lowered its clocks", parts=found)
    disturbed.stage = "lifetime repetition"
    assert take_over(whole, disturbed, ("ordering", "lifetime")) == ()
    assert whole.parts == found
    assert whole.failures == [{"instrument": "diagnosis", "reason": "GPU 0 lowered its clocks"}]
