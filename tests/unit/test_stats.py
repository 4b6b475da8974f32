"""Estimates: an interval that covers what it says, and modes only where they have a cause."""

import statistics

import numpy
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dlprof.runner.stats import estimate, student_interval

times = st.floats(min_value=0.1, max_value=1e12)
several = st.lists(times, min_size=2, max_size=12)
faults = st.one_of(st.none(), st.floats(min_value=0, max_value=1e6))
processes = st.lists(st.tuples(times, faults), min_size=1, max_size=10)

FEW, MANY = 0.0, 1000.0


def quiet(medians):
    """The estimate of processes without page faults."""
    return estimate(medians, [FEW] * len(medians))


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
    assert found.modes == ((1, 3), (0, 2))


@pytest.mark.parametrize("page_faults", [[FEW, FEW], [MANY, MANY], [None, MANY], [None, None]])
def test_a_gap_without_a_cause_is_noise_and_widens_the_interval(page_faults):
    found = estimate([100.0, 400.0], page_faults)
    assert found.modes == ((0, 1),)
    assert found.ci95_ns is not None


@given(several)
@example([100.0] * 16 + [200.0] * 14)
def test_the_median_lies_inside_its_interval(medians):
    found = quiet(medians)
    low, high = found.ci95_ns
    assert low <= found.median_ns <= high


@given(several)
def test_the_estimate_is_the_median_of_the_processes(medians):
    assert quiet(medians).median_ns == statistics.median(medians)


@given(processes.flatmap(lambda found: st.tuples(st.just(found), st.permutations(found))))
def test_the_order_of_the_processes_does_not_matter(both):
    first, second = (
        estimate([time for time, _ in run], [fault for _, fault in run]) for run in both
    )
    assert (first.median_ns, first.ci95_ns) == (second.median_ns, second.ci95_ns)
    times_of = [
        [sorted(run[index][0] for index in mode) for mode in found.modes]
        for run, found in zip(both, (first, second), strict=True)
    ]
    assert times_of[0] == times_of[1]
