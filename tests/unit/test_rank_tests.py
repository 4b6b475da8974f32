"""The tests of processes: their chances are exact, and their intervals agree with them."""

import math
import warnings

import numpy as np
import pytest
import scipy.stats

from dlprof.judge.rank_tests import (
    mann_whitney,
    mann_whitney_chances,
    reaches,
    student,
    wilcoxon,
)

CHANCE = np.random.default_rng(7)
BASE, HEAD = CHANCE.normal(0.0, 0.1, 9), CHANCE.normal(0.05, 0.1, 8)


@pytest.mark.parametrize(("base", "head"), [(1, 1), (3, 3), (2, 5), (4, 1), (9, 8)])
def test_mann_and_whitney_agree_with_scipy(base, head):
    expected = scipy.stats.mannwhitneyu(
        HEAD[:head], BASE[:base], alternative="greater", method="exact"
    )
    found = mann_whitney(BASE[:base], HEAD[:head])
    assert found.p_above(0.0) == pytest.approx(expected.pvalue)


def test_many_processes_are_approximated_on_the_careful_side():
    exact, normal = mann_whitney_chances(60, 60)[2200], mann_whitney_chances(61, 60)[2240]
    assert normal == pytest.approx(exact, rel=0.2)


@pytest.mark.parametrize("shift", [0.0, 0.0057, -0.0113])
def test_the_signed_ranks_agree_with_scipy(shift):
    differences = CHANCE.normal(0.01, 0.03, 12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = scipy.stats.wilcoxon(differences - shift, alternative="greater")
    assert wilcoxon(differences).p_above(shift) == pytest.approx(expected.pvalue)


@pytest.mark.parametrize("test", [mann_whitney(BASE, HEAD), wilcoxon(HEAD - BASE[:8])])
@pytest.mark.parametrize("level", [0.025, 0.1])
def test_the_interval_holds_what_the_tests_do_not_reject(test, level):
    low, high = test.interval(level)
    assert test.p_above(low - 1e-9) <= level < test.p_above(low + 1e-9)
    assert test.p_below(high + 1e-9) <= level < test.p_below(high - 1e-9)
    assert low < test.location < high


def test_too_few_have_an_endless_interval():
    assert mann_whitney([0.0], [1.0]).interval(0.025) == (-math.inf, math.inf)
    assert wilcoxon([1.0, 2.0]).interval(0.025) == (-math.inf, math.inf)


def test_ties_prove_nothing():
    assert mann_whitney([0.0] * 8, [0.0] * 8).p_above(0.0) == pytest.approx(1.0)
    assert wilcoxon([0.0] * 8).p_above(0.0) == 1.0


def test_seven_processes_a_side_can_convict_one_case_of_sixteen():
    assert reaches(7, 7, 0.01 / 16)
    assert not reaches(6, 6, 0.01 / 16)


def test_student_agrees_with_scipy():
    expected = scipy.stats.ttest_ind(HEAD[:6], BASE[:6], alternative="greater").pvalue
    assert student(BASE[:6], HEAD[:6], 0.0).p_above(0.0) == pytest.approx(expected, rel=0.05)


def test_processes_that_agree_by_luck_are_held_to_the_least_spread():
    lucky, honest = [1.0, 1.0001, 1.0], [1.03, 1.0301, 1.03]
    assert student(lucky, honest, 0.0).p_above(0.0) < 1e-6 < student(lucky, honest, 0.02).p_above(0)
