"""A regression is what two passes agree on; both numbers are told of what they do not agree on."""

from __future__ import annotations

from dataclasses import replace

import pytest
from comparison_builders import compared, only_words, suite

from dlprof.compare.criteria import Criteria
from dlprof.compare.matching import key
from dlprof.compare.outcome import NOT_KNOWN, REGRESSION, outcome
from dlprof.gate.confirm import SecondPass, confirmed, flagged, missed

pytestmark = pytest.mark.unit

CRITERIA = Criteria()
CRASH = {"status": "crashed", "reason": "killed by SIGSEGV"}
DIED = {"verdict": "unknown", "evidence": {"reason": "SIGSEGV", "worker": "crashed"}}
SAFE = {"verdict": "safe", "evidence": {}}


def passed(slower=None, seed=0, count=16, base=None, **changes):
    """The comparison of one pass in turns; ``changes`` are of HEAD's results."""
    head = suite(slower, count, seed + 100, **changes)
    return compared(suite(None, count, seed, **(base or {})), head, in_turns=True)[0]


def judged(first, second=None, stopped=False, criteria=CRITERIA):
    again = SecondPass(second, 8 if second else 0, stopped)
    found = confirmed(first, again, flagged(first, criteria), criteria)
    return found, outcome(found, criteria)


def time_of(comparison, name="c"):
    return next(case.times[0] for case in comparison.cases if case.case.import_ == name)


def test_slower_twice_is_a_regression_and_both_numbers_are_told():
    found, result = judged(passed({"c": 1.2}), passed({"c": 1.3}, seed=5))
    assert "1.2" in time_of(found).note.split("first pass")[0]
    assert "1.3" in time_of(found).note.split("first pass")[1]
    assert result.code() == REGRESSION


def test_slower_once_and_then_the_same_is_no_regression():
    found, result = judged(passed({"c": 1.2}), passed(seed=5))
    assert (only_words(found)["c"], result.code()) == ("SAME", 0)


@pytest.mark.parametrize("ratio", [0.7, 1.045])
def test_slower_once_and_then_anything_else_is_never_a_pass(ratio):
    found, result = judged(passed({"c": 1.2}), passed({"c": ratio}, seed=5, count=8))
    assert (only_words(found)["c"], result.code(unsure=0)) == ("UNSURE", NOT_KNOWN)


@pytest.mark.parametrize(("stopped", "why"), [(False, "no time"), (True, "stopped")])
def test_what_was_not_measured_again_is_never_a_pass(stopped, why):
    found, result = judged(passed({"c": 1.2}), None, stopped)
    assert (only_words(found)["c"], result.code(unsure=0)) == ("UNSURE", NOT_KNOWN)
    assert why in time_of(found).reason


def test_only_what_would_fail_is_measured_again():
    assert {name[3] for name in flagged(passed({"c": 1.2, "d": 0.5}), CRITERIA)} == {"c"}
    assert flagged(passed(), CRITERIA) == frozenset()


def test_a_case_that_head_does_not_have_is_not_measured_again_and_is_gone():
    first, _ = compared(suite(), suite(seed=5, names="abcdefg"), in_turns=True)
    assert flagged(first, CRITERIA) == frozenset()
    assert len(judged(first)[1].gone) == 1


@pytest.mark.parametrize(("second", "code"), [("copy", REGRESSION), ("view", NOT_KNOWN)])
def test_a_verdict_that_is_worse_in_both_passes_is_a_regression(second, code):
    again = passed(seed=5, ownership={"verdict": second})
    assert judged(passed(ownership={"verdict": "copy"}), again)[1].code() == code


def test_a_verdict_that_is_worse_in_the_second_pass_only_is_unsure():
    right, wrong = ({"values": {"verdict": word}} for word in ("ok", "wrong"))
    first, second = passed({"c": 1.2}, base=right, **right), passed(seed=5, base=right, **wrong)
    assert judged(first, second)[1].code() == NOT_KNOWN


@pytest.mark.parametrize("order", [(CRASH, {}), ({}, CRASH)], ids=["first", "second"])
def test_a_crash_in_one_of_two_passes_is_never_a_pass(order):
    passes = [passed({"c": 1.2}, seed, **what) for seed, what in zip((0, 5), order, strict=True)]
    found, result = judged(*passes)
    assert (only_words(found)["c"], result.code(unsure=0)) == ("INVALID", NOT_KNOWN)
    verdicts = judged(passed(**CRASH), passed(seed=5), criteria=replace(CRITERIA, times=False))
    assert verdicts[1].code(unsure=0) == NOT_KNOWN


def test_a_crash_in_both_passes_is_a_regression():
    assert judged(passed(**CRASH), passed(seed=5, **CRASH))[1].code(unsure=0) == REGRESSION


def test_a_stopped_second_pass_says_nothing_of_a_crash_that_it_did_not_see():
    found, _ = judged(passed({"c": 1.2}, **CRASH), None, stopped=True)
    assert not any(case.failed_once for case in found.cases)


@pytest.mark.parametrize("order", [(DIED, SAFE), (SAFE, DIED)], ids=["first", "second"])
def test_a_crash_in_the_diagnosis_of_one_pass_is_never_a_pass(order):
    first, second = (
        passed({"c": 1.2}, seed, base={"lifetime": SAFE}, lifetime=found)
        for seed, found in zip((0, 5), order, strict=True)
    )
    cases = frozenset(key(case.case) for case in first.cases)
    found = outcome(confirmed(first, SecondPass(second, 8), cases, CRITERIA), CRITERIA)
    assert (len(found.invalid), found.code(unsure=0)) == (8, NOT_KNOWN)


def expecting(verdict, text="no warning", reason=""):
    header = {"expectations": [{"text": text, "verdict": verdict, "reason": reason}]}
    return compared(suite(), suite(seed=50), head_header=header, in_turns=True)[0]


@pytest.mark.parametrize(
    ("second", "rounds", "stopped", "code"),
    [
        ("not met", 8, False, REGRESSION),
        ("met", 8, False, NOT_KNOWN),
        ("not checked", 8, False, NOT_KNOWN),
        ("not met", 1, False, NOT_KNOWN),
        ("not met", 8, True, NOT_KNOWN),
        (None, 0, False, NOT_KNOWN),
    ],
)
def test_an_expectation_that_needs_times_fails_only_if_both_passes_miss_it(
    second, rounds, stopped, code
):
    again = SecondPass(expecting(second) if second else None, rounds, stopped)
    found = confirmed(expecting("not met"), again, frozenset(), CRITERIA)
    assert outcome(found, CRITERIA).code(unsure=0) == code


@pytest.mark.parametrize("second", ["met", "not met"])
def test_an_expectation_that_was_met_stays_met(second):
    found = confirmed(expecting("met"), SecondPass(expecting(second), 8), frozenset(), CRITERIA)
    assert found.head.expectations[0].verdict == "met"


def test_what_is_missed_is_measured_again_with_its_other_direction():
    case = expecting("met").cases[0].case
    there, back = f"{case.producer}->{case.consumer}", f"{case.consumer}->{case.producer}"
    for text in (f"no DLP013 on {there}", f"no DLP013 on {back}", "no info"):
        assert len(missed(expecting("not met", text))) == 8


@pytest.mark.parametrize("text", ["no error", "no DLP013 on mxnet->*"])
def test_what_needs_no_times_or_is_of_another_pair_is_not_measured_again(text):
    first = expecting("not met", text)
    assert not missed(first)
    found = confirmed(first, SecondPass(), frozenset(), CRITERIA)
    assert found.head.expectations == first.head.expectations
