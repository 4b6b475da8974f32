"""A regression is one that two passes agree on; what they do not agree on is told with both numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from comparison_builders import compared, only_words, suite

from dlprof.compare.criteria import Criteria
from dlprof.compare.match import key
from dlprof.compare.outcome import outcome
from dlprof.gate.confirm import confirmed, flagged
from dlprof.reports.comparison_text import answers
from dlprof.session.model import Verdict

pytestmark = pytest.mark.unit

CRITERIA = Criteria()


def passed(slower=None, seed=0, count=16, **changes):
    """The comparison of one pass in turns; ``changes`` are of HEAD's results."""
    head = suite(slower, count, seed + 100, **changes)
    return compared(suite(None, count, seed), head, in_turns=True)[0]


def judged(first, second, criteria=CRITERIA):
    cases = flagged(first, criteria)
    found = confirmed(first, second, cases, criteria)
    return found, outcome(found, criteria)


def time_of(comparison, name):
    return next(case.times[0] for case in comparison.cases if case.case.import_ == name)


def test_slower_twice_is_a_regression_and_both_numbers_are_told():
    found, result = judged(passed({"c": 1.2}), passed({"c": 1.3}, seed=5))
    assert only_words(found)["c"] == "SLOWER"
    assert time_of(found, "c").note.startswith("1.2")
    assert "in the first pass, 1.3" in time_of(found, "c").note
    assert result.code() == 1


def test_slower_once_and_then_the_same_is_no_regression():
    found, result = judged(passed({"c": 1.2}), passed(seed=5))
    assert only_words(found)["c"] == "SAME"
    assert time_of(found, "c").reason.startswith("1.2")
    assert result.code() == 0


@pytest.mark.parametrize("ratio", [0.7, 1.045])
def test_slower_once_and_then_anything_else_is_unsure(ratio):
    found, result = judged(passed({"c": 1.2}), passed({"c": ratio}, seed=5, count=8))
    assert only_words(found)["c"] == "UNSURE"
    assert result.code() == 3


def test_what_there_was_no_time_to_measure_again_is_unsure():
    found, result = judged(passed({"c": 1.2}), None)
    assert only_words(found)["c"] == "UNSURE"
    assert "no time to measure it again" in time_of(found, "c").reason
    assert result.code() == 3


def test_what_one_pass_called_slower_and_the_other_did_not_refute_is_never_a_pass():
    found, never_again = judged(passed({"c": 1.2}), None)
    assert "Unsure: 1 of 8 times." in " ".join(answers(found, never_again))
    _, left_open = judged(passed({"c": 1.2}), passed({"c": 1.045}, seed=5, count=8))
    assert never_again.code(unsure=0) == left_open.code(unsure=0) == 3
    verdicts = replace(CRITERIA, times=False)
    found = confirmed(passed({"c": 1.2}), None, flagged(passed({"c": 1.2}), CRITERIA), CRITERIA)
    assert outcome(found, verdicts).code() == 0


def test_a_verdict_that_is_worse_in_the_second_pass_only_is_unsure():
    wrong = {"values": {"verdict": "wrong"}}
    right = {"values": {"verdict": "ok"}}
    first = compared(suite(None, 16, **right), suite({"c": 1.2}, 16, 100, **right), in_turns=True)
    second = compared(suite(None, 16, 5, **right), suite(None, 16, 105, **wrong), in_turns=True)
    found, result = judged(first[0], second[0])
    assert only_words(found)["c"] == "SAME"
    assert [str(change) for case in found.cases for change in case.changes] == [
        "values: ok, now wrong (in the second pass only)"
    ]
    assert result.code() == 3


def test_only_what_would_fail_is_measured_again():
    first = passed({"c": 1.2, "d": 0.5})
    assert {name[3] for name in flagged(first, CRITERIA)} == {"c"}
    assert flagged(passed(), CRITERIA) == frozenset()


def test_a_verdict_that_is_worse_twice_is_a_regression():
    worse = {"ownership": {"verdict": "copy"}}
    _, result = judged(passed(**worse), passed(seed=5, **worse))
    assert len(result.worse) == 8
    assert result.code() == 1


def test_a_verdict_that_is_worse_once_is_unsure():
    found, result = judged(passed(ownership={"verdict": "copy"}), passed(seed=5))
    assert not result.worse
    assert "copy (not seen again)" in str(found.cases[0].changes[0])
    assert result.code() == 3


def test_a_crash_in_one_of_two_passes_is_never_a_pass():
    crash = {"status": "crashed", "reason": "killed by SIGSEGV"}
    found, result = judged(passed(**crash), passed(seed=5))
    assert set(only_words(found).values()) == {"INVALID"}
    assert result.code(unsure=0) == 3


def test_a_crash_in_both_passes_is_a_regression():
    crash = {"status": "crashed", "reason": "killed by SIGSEGV"}
    _, result = judged(passed(**crash), passed(seed=5, **crash))
    assert result.code(unsure=0) == 1


def test_a_case_that_head_does_not_have_is_not_measured_again_and_is_gone():
    first, _ = compared(suite(), suite(seed=5, names="abcdefg"), in_turns=True)
    assert flagged(first, CRITERIA) == frozenset()
    found = confirmed(first, None, frozenset(), CRITERIA)
    assert [case.case.import_ for case in outcome(found, CRITERIA).gone] == ["h"]


def test_what_a_stopped_second_pass_did_not_see_is_not_held_against_anybody():
    first = passed({"c": 1.2}, status="crashed", reason="killed by SIGSEGV")
    found = confirmed(first, None, flagged(first, CRITERIA), CRITERIA, stopped=True)
    assert not any(case.failed_once for case in found.cases)
    found = confirmed(
        passed({"c": 1.2}), None, flagged(passed({"c": 1.2}), CRITERIA), CRITERIA, True
    )
    assert "stopped before it was measured again" in time_of(found, "c").reason


def test_a_crash_in_the_second_pass_alone_is_never_a_pass():
    crash = {"status": "crashed", "reason": "killed by SIGSEGV"}
    found, result = judged(passed({"c": 1.2}), passed(seed=5, **crash))
    assert only_words(found)["c"] == "INVALID"
    assert result.code(unsure=0) == 3


def test_a_crash_in_one_of_two_passes_is_no_pass_where_only_verdicts_are_judged():
    crash = {"status": "crashed", "reason": "killed by SIGSEGV"}
    _, result = judged(passed(**crash), passed(seed=5), replace(CRITERIA, times=False))
    assert result.code(unsure=0) == 3


CRASH = {"verdict": "unknown", "evidence": {"reason": "killed by SIGSEGV", "worker": "crashed"}}
SAFE = {"verdict": "safe", "evidence": {}}


def with_lifetime(found, seed=0):
    base, head = (suite(None, 16, number) for number in (seed, seed + 100))
    base = [one.model_copy(update={"lifetime": Verdict.model_validate(SAFE)}) for one in base]
    head = [one.model_copy(update={"lifetime": Verdict.model_validate(found)}) for one in head]
    return compared(base, head, in_turns=True)[0]


@pytest.mark.parametrize("order", [(CRASH, SAFE), (SAFE, CRASH)], ids=["first", "second"])
def test_a_crash_in_the_diagnosis_of_one_pass_only_is_no_pass_whatever_unsure_says(order):
    first, second = (with_lifetime(found, seed) for found, seed in zip(order, (0, 5), strict=True))
    cases = frozenset(key(case.case) for case in first.cases)
    found = outcome(confirmed(first, second, cases, CRITERIA), CRITERIA)
    assert len(found.invalid) == 8
    assert found.code(unsure=0) == 3
