"""Estimates: intervals with the coverage they claim."""

import numpy
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dlprof.runner.merge import merge_time, student_interval

times = st.floats(min_value=0.1, max_value=1e12)
several = st.lists(times, min_size=2, max_size=12)


def coverage(count, spread, trials=3000):
    """Return the share of runs of ``count`` processes whose interval holds the true median."""
    chance = numpy.random.default_rng(seed=count)
    true = 1234.0
    runs = true * numpy.exp(chance.normal(0.0, spread, size=(trials, count)))
    intervals = [student_interval(run.tolist()) for run in runs]
    return sum(low <= true <= high for low, high in intervals) / trials


@pytest.mark.parametrize("count", [2, 3, 5, 10])
def test_the_interval_of_log_normal_process_medians_covers_95_percent(count):
    assert 0.93 < coverage(count, spread=0.5) < 0.97


@given(several)
@example([100.0] * 16 + [200.0] * 14)
def test_the_median_lies_inside_its_interval(medians):
    timings = [{"time": {"loops": 1, "samples_ns": [median]}} for median in medians]
    found = merge_time(list(enumerate(timings)), "time")
    low, high = found.ci95_ns
    assert low <= found.median_ns <= high
