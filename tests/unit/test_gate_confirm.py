"""Confirmation: a regression must show in both passes; if they disagree, both numbers are shown."""

import pytest
from comparison_builders import case_words, compared, only_words, suite

from dlprof.compare.comparison import NOT_KNOWN, REGRESSION, exit_code
from dlprof.compare.gate import confirmed

CRASH = {"status": "crashed", "reason": "killed by SIGSEGV"}
DIED = {"verdict": "unknown", "evidence": {"reason": "SIGSEGV", "worker": "crashed"}}
SAFE = {"verdict": "safe", "evidence": {}}


def passed(slower=None, seed=0, *fail_on, count=16, base=None, **changes):
    """Return the comparison of one pass in turns; ``changes`` apply to HEAD's results."""
    head = suite(slower, count, seed + 100, **changes)
    return compared(suite(None, count, seed, **(base or {})), head, *fail_on, in_turns=True)


def judged(first, second=None):
    """Merge both passes; return the result and the exit code with --unsure pass."""
    found = confirmed(first, second)
    return found, exit_code(found, 0)


def time_of(comparison, name="c"):
    return next(time for case, time in comparison.times if case.case.import_ == name)


def test_slower_twice_is_a_regression_and_both_numbers_are_reported():
    found, code = judged(passed({"c": 1.2}), passed({"c": 1.3}, seed=5))
    assert "1.2" in time_of(found).reason.split("first pass")[0]
    assert "1.3" in time_of(found).reason.split("first pass")[1]
    assert code == REGRESSION


def test_slower_once_and_then_the_same_is_no_regression():
    found, code = judged(passed({"c": 1.2}), passed(seed=5))
    assert (only_words(found)["c"], code) == ("SAME", 0)


@pytest.mark.parametrize("ratio", [0.7, 1.045, None])
def test_slower_once_and_then_anything_else_is_never_a_pass(ratio):
    second = None if ratio is None else passed({"c": ratio}, seed=5, count=8)
    found, code = judged(passed({"c": 1.2}), second)
    assert (only_words(found)["c"], code) == ("INVALID", NOT_KNOWN)


@pytest.mark.parametrize(("second", "code"), [("copy", REGRESSION), ("view", NOT_KNOWN)])
def test_a_verdict_that_is_worse_in_both_passes_is_a_regression(second, code):
    again = passed(seed=5, ownership={"verdict": second})
    found = confirmed(passed(ownership={"verdict": "copy"}), again)
    assert exit_code(found) == code


def test_a_verdict_that_is_worse_in_the_second_pass_only_is_unsure():
    right, wrong = ({"values": {"verdict": word}} for word in ("ok", "wrong"))
    first, second = passed({"c": 1.2}, base=right, **right), passed(seed=5, base=right, **wrong)
    assert exit_code(confirmed(first, second)) == NOT_KNOWN


@pytest.mark.parametrize("order", [(CRASH, {}), ({}, CRASH)], ids=["first", "second"])
def test_a_crash_in_one_of_two_passes_is_never_a_pass(order):
    passes = [passed({"c": 1.2}, seed, **what) for seed, what in zip((0, 5), order, strict=True)]
    found, code = judged(*passes)
    assert (case_words(found)["c"], code) == ("INVALID", NOT_KNOWN)


def test_a_crash_in_both_passes_is_a_regression():
    assert judged(passed(**CRASH), passed(seed=5, **CRASH))[1] == REGRESSION


@pytest.mark.parametrize("order", [(DIED, SAFE), (SAFE, DIED)], ids=["first", "second"])
def test_a_crash_in_the_diagnosis_of_one_pass_is_never_a_pass(order):
    slower = dict.fromkeys("abcdefgh", 1.2)
    first, second = (
        passed(slower if seed == 0 else None, seed, base={"lifetime": SAFE}, lifetime=found)
        for seed, found in zip((0, 5), order, strict=True)
    )
    found, code = judged(first, second)
    assert (set(case_words(found).values()), code) == ({"INVALID"}, NOT_KNOWN)
