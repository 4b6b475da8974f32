"""Estimates: an interval that covers what it says, and modes only where they have a cause."""

import numpy
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dlprof.runner.merge import merge_time, student_interval

times = st.floats(min_value=0.1, max_value=1e12)
several = st.lists(times, min_size=2, max_size=12)

FEW, MANY = 0.0, 1000.0


def estimate(medians, page_faults):
    """The time of processes with one sample each."""
    timings = [
        {"loops": 1, "samples_ns": [median], "page_faults_per_call": faults}
        for median, faults in zip(medians, page_faults, strict=True)
    ]
    return merge_time([(round_, {"time": one}) for round_, one in enumerate(timings)], "time")


def coverage(count, spread, trials=3000):
    """The share of simulated runs of ``count`` processes whose interval holds the true median."""
    chance = numpy.random.default_rng(seed=count)
    true = 1234.0
    runs = true * numpy.exp(chance.normal(0.0, spread, size=(trials, count)))
    intervals = [student_interval(run.tolist()) for run in runs]
    return sum(low <= true <= high for low, high in intervals) / trials


@pytest.mark.parametrize("count", [2, 3, 5, 10])
def test_the_interval_of_log_normal_process_medians_covers_95_percent(count):
    assert 0.93 < coverage(count, spread=0.5) < 0.97


def test_a_gap_with_different_page_faults_is_two_modes_fastest_first():
    found = estimate([400.0, 100.0, 410.0, 101.0], [MANY, FEW, MANY, FEW])
    assert [mode.rounds for mode in found.modes] == [[1, 3], [0, 2]]


@pytest.mark.parametrize("page_faults", [[FEW, FEW], [MANY, MANY], [None, MANY], [None, None]])
def test_a_gap_without_a_cause_is_noise_and_widens_the_interval(page_faults):
    found = estimate([100.0, 400.0], page_faults)
    assert found.modes == []
    assert found.ci95_ns is not None


@given(several)
@example([100.0] * 16 + [200.0] * 14)
def test_the_median_lies_inside_its_interval(medians):
    found = estimate(medians, [FEW] * len(medians))
    low, high = found.ci95_ns
    assert low <= found.median_ns <= high
