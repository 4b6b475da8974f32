"""The tests of two sides: exact where they say so, careful where they cannot be."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from dlprof.compare.ranks import _exact, _normal, critical, ranks, reaches, student, upper_tail

pytestmark = pytest.mark.unit

BASE = np.array([0.01, -0.02, 0.005, 0.013, -0.004])
HEAD = np.array([0.04, 0.001, 0.031, 0.012])


def by_hand(base, head):
    """The chance of each number of pairs, by writing down every order."""
    counts = [
        sum(place - index for index, place in enumerate(heads))
        for heads in itertools.combinations(range(base + head), head)
    ]
    return [
        sum(count >= least for count in counts) / len(counts) for least in range(base * head + 1)
    ]


@pytest.mark.parametrize("size", [(1, 1), (3, 3), (2, 5), (4, 1)])
def test_the_chances_are_those_of_every_order_counted(size):
    assert upper_tail(size) == pytest.approx(by_hand(*size))


def test_it_is_the_test_of_mann_and_whitney():
    ours = ranks(BASE, HEAD).p_above(0.0)
    theirs = stats.mannwhitneyu(HEAD, BASE, alternative="greater", method="exact").pvalue
    assert float(ours) == pytest.approx(theirs)


def test_many_processes_do_not_overflow():
    tail = upper_tail((1000, 1000))
    assert tail[0] == pytest.approx(1.0)
    assert tail[500_001] == pytest.approx(0.5, abs=0.01)


def test_the_approximation_for_many_continues_the_exact_chances():
    exact, near = _exact(60, 60), _normal(60, 60)
    tails = [np.cumsum(chances[::-1])[::-1] for chances in (exact, near)]
    for tail in (0.5, 0.025, 6e-4):
        place = np.searchsorted(-tails[0], -tail)
        assert tails[1][place] == pytest.approx(tails[0][place], rel=0.15)
    far = (tails[0] < 1e-4) & (tails[0] > 1e-12)
    assert np.all(tails[1][far] >= tails[0][far])


def test_a_side_without_processes_is_refused():
    with pytest.raises(ValueError, match="no processes"):
        ranks(BASE, HEAD[:0])


@pytest.mark.parametrize("level", [0.025, 0.1])
def test_the_interval_is_what_the_tests_do_not_reject(level):
    test = ranks(BASE, HEAD)
    low, high = (float(end) for end in test.interval(level))
    assert float(test.p_above(low - 1e-9)) <= level < float(test.p_above(low + 1e-9))
    assert float(test.p_below(high + 1e-9)) <= level < float(test.p_below(high - 1e-9))


def test_too_few_processes_have_an_endless_interval():
    low, high = ranks(BASE[:3], HEAD[:3]).interval(0.025)
    assert (float(low), float(high)) == (-math.inf, math.inf)


def test_ties_prove_nothing():
    test = ranks(np.zeros(8), np.zeros(8))
    assert [float(test.p_above(0.0)), float(test.p_below(0.0))] == pytest.approx([1.0, 1.0])


def test_seven_processes_a_side_reach_one_case_of_sixteen():
    level = 0.01 / 16
    assert not reaches((6, 6), level)
    assert reaches((7, 7), level)
    assert critical((7, 7), level) == 48  # of 49 pairs: 2 of 3,432 orders


def test_student_agrees_with_the_t_test():
    ours = student(BASE, HEAD[:4], 0.0)
    theirs = stats.ttest_ind(HEAD, BASE, equal_var=True, alternative="greater")
    welch = stats.ttest_ind(HEAD, BASE, equal_var=False)
    t = min(abs(theirs.statistic), abs(welch.statistic))
    assert float(ours.p_above(0.0)) == pytest.approx(float(stats.t.sf(t, 7)))


def test_processes_that_agree_by_luck_are_held_to_the_floor():
    lucky = student(np.array([0.0, 1e-6, 2e-6]), np.array([0.01, 0.010001, 0.010002]), 0.02)
    low, high = lucky.interval(0.025)
    assert float(low) < 0 < float(high)


def test_one_process_has_no_test():
    with pytest.raises(ValueError, match="no spread"):
        student(BASE[:1], HEAD, 0.02)


def test_an_outlier_makes_student_careful():
    head = np.array([0.001, -0.001, 0.5])
    low, _ = student(BASE[:3], head, 0.02).interval(0.025)
    assert float(low) < 0
