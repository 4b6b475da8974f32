"""What is expected and not met is measured again, and fails only if it is not met again."""

from __future__ import annotations

import pytest
from comparison_builders import compared, suite

from dlprof.compare.criteria import Criteria
from dlprof.compare.match import key
from dlprof.compare.outcome import NOT_KNOWN, REGRESSION, outcome
from dlprof.gate.measure import agreed, of_unmet

pytestmark = pytest.mark.unit


def passed(verdict, text="no warning", reason=""):
    header = {"expectations": [{"text": text, "verdict": verdict, "reason": reason}]}
    return compared(suite(), suite(seed=50), head_header=header)[0]


def judged(first, second, stopped=False):
    again = passed(*second) if second else None
    found = agreed(passed(first), again, stopped)
    return found.head.expectations[0], outcome(found, Criteria())


def test_not_met_twice_is_a_regression():
    one, result = judged("not met", ["not met"])
    assert one.verdict == "not met"
    assert result.code() == REGRESSION


@pytest.mark.parametrize(
    ("second", "stopped", "why"),
    [
        (["met"], False, "not met in the first pass, met in the second"),
        (
            ["not checked", "no warning", "one process only"],
            False,
            "in the second: one process only",
        ),
        (None, False, "there was no time to measure it again"),
        (["not met"], True, "it was stopped before it was measured again"),
    ],
)
def test_not_met_once_is_no_regression_and_no_pass(second, stopped, why):
    one, result = judged("not met", second, stopped)
    assert one.verdict == "not checked"
    assert why in one.reason
    assert [result.code(unsure) for unsure in (NOT_KNOWN, 0)] == [NOT_KNOWN, NOT_KNOWN]


@pytest.mark.parametrize("second", [["met"], ["not met"], None])
def test_what_is_met_in_the_first_pass_is_met(second):
    assert judged("met", second)[0].verdict == "met"


def test_what_is_not_met_is_measured_again_with_its_other_direction():
    everything = frozenset(key(case.case) for case in passed("met").cases)
    pair = passed("met").cases[0].case
    there, back = f"{pair.producer}->{pair.consumer}", f"{pair.consumer}->{pair.producer}"
    for text in (f"no DLP013 on {there}", f"no DLP013 on {back}", "no info"):
        assert of_unmet(passed("not met", text)) == everything


def test_what_takes_no_times_to_tell_is_not_measured_again():
    first = passed("not met", "no error")
    assert not of_unmet(first)
    assert agreed(first, None).head.expectations == first.head.expectations


def test_one_round_confirms_nothing_that_takes_times_to_tell():
    found = agreed(passed("not met"), passed("not met"), rounds=1)
    one = found.head.expectations[0]
    assert (one.verdict, one.reason) == (
        "not checked",
        "not met in the first pass, and the one round that was measured again tells nothing of times",
    )


def test_what_is_met_or_of_another_pair_is_not_measured_again():
    assert not of_unmet(passed("not met", "no DLP013 on mxnet->*"))
    assert not of_unmet(passed("met"))
