"""Wilcoxon's test of one difference a round, against scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import wilcoxon

from dlprof.compare.ranks import signed, signed_critical, signed_upper_tail

pytestmark = pytest.mark.unit

DIFFERENCES = np.array([0.011, -0.004, 0.023, 0.017, 0.002, -0.001, 0.031, 0.008, 0.014])


@pytest.mark.parametrize("shift", [0.0, 0.0057, -0.0113])
def test_the_chances_are_those_of_scipy(shift):
    test = signed(DIFFERENCES)
    for ours, theirs in ((test.p_above, "greater"), (test.p_below, "less")):
        expected = wilcoxon(DIFFERENCES - shift, alternative=theirs, method="exact").pvalue
        assert float(ours(shift)) == pytest.approx(expected)


def test_ranks_count_the_averages_of_each_two():
    chance = np.random.default_rng(1)
    values = chance.integers(-9, 10, (50, 12)).astype(float)
    first, second = np.triu_indices(12)
    averages = (values[:, first] + values[:, second]) / 2
    expected = signed_upper_tail(12)[(averages > 0).sum(axis=-1)]
    assert np.array_equal(signed(values).p_above(0.0), expected)


def test_the_location_is_the_median_of_the_averages_of_each_two():
    assert float(signed(np.array([0.0, 0.1, 0.9])).location) == pytest.approx(0.275)


def test_the_interval_holds_the_shifts_that_neither_test_rejects():
    test = signed(DIFFERENCES)
    low, high = (float(end) for end in test.interval(0.025))
    assert test.p_above(low - 1e-9) <= 0.025 < test.p_above(low + 1e-9)
    assert test.p_below(high + 1e-9) <= 0.025 < test.p_below(high - 1e-9)


@pytest.mark.parametrize(("rounds", "enough"), [(7, False), (8, True)])
def test_eight_rounds_that_agree_are_a_chance_of_one_in_256(rounds, enough):
    assert (signed_critical(rounds, 1 / 256) is not None) is enough


def test_too_few_rounds_leave_every_shift_possible():
    assert [float(end) for end in signed(np.zeros(3)).interval(0.001)] == [-np.inf, np.inf]


def test_no_round_is_refused():
    with pytest.raises(ValueError, match="no round"):
        signed(np.zeros(0))
