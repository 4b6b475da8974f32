"""Numbers for people: only the digits that the interval supports."""

import math
import re

import pytest
from builders import make_measure
from hypothesis import given
from hypothesis import strategies as st

from dlprof.runner.quantity import (
    UNITS,
    brief_text,
    plain_time,
    size_text,
    time_text,
    with_interval,
)

SCALES = {unit: scale for scale, unit in UNITS}
US = UNITS[2][1]
values = st.floats(min_value=0.01, max_value=1e13)
shares = st.floats(min_value=1e-6, max_value=30.0)


@pytest.mark.parametrize(
    ("value", "half", "text"),
    [
        (2412.3, 52.0, f"2.41 ±0.05 {US}"),
        (2412.3, 2400.0, f"2 ±2 {US}"),
        (2412.3, 96.0, f"2.41 ±0.10 {US}"),
        (1_500_000_000.0, 10_000_000.0, "1.500 ±0.010 s"),
    ],
)
def test_value_and_half_width_end_at_the_digit_that_the_interval_supports(value, half, text):
    assert with_interval(value, (value - half, value + half)) == text


@given(values, shares)
def test_value_and_half_width_are_the_measured_ones_to_the_same_digit(value, share):
    text = with_interval(value, (value * (1 - share), value * (1 + share)))
    shown, half, unit = re.fullmatch(r"([\d.,]+) ±([\d.,]+) (\w+)", text).groups()
    assert len(shown.partition(".")[2]) == len(half.partition(".")[2])
    shown, half = (float(number.replace(",", "")) * SCALES[unit] for number in (shown, half))
    assert half == pytest.approx(value * share, rel=0.34)
    assert abs(shown - value) <= 0.51 * half


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 ns"),
        (999.4, f"1.0 {US}"),
        (2412.3, f"2.4 {US}"),
        (-2.5, "-2.5 ns"),
        (math.inf, "∞ s"),
    ],
)
def test_a_time_without_interval_has_two_digits(value, text):
    assert plain_time(value) == text


def processes(*medians_ns):
    return [
        {"round": number, "loops": 1, "samples_ns": [ns]} for number, ns in enumerate(medians_ns)
    ]


@pytest.mark.parametrize(
    ("measure", "text", "brief"),
    [
        (make_measure(2412.3, (2360.0, 2460.0)), f"2.41 ±0.05 {US}", f"2.4 {US}"),
        (make_measure(2412.3, None), f"~2.4 {US}", f"~2.4 {US}"),
        (make_measure(1000.0, (400.0, 2500.0), processes=processes(700.0, 1900.0)), f"0.70 to 1.9 {US}", f"0.70 to 1.9 {US}"),
        (make_measure(18e6, (1e6, 9e9), processes=processes(18e3, 22e9)), f"18 {US} to 22 s", f"18 {US} to 22 s"),
        (make_measure(1000.0, (400.0, 2500.0)), f"1 ±2 {US}", f"1.0 {US}"),
        (make_measure(1000.0, (500.0, 1500.0), processes=processes(700.0, 1900.0)), f"1.0 ±0.5 {US}", f"1.0 {US}"),
    ],
    ids=["interval", "one process", "wide", "wide and far apart", "wide, processes unknown", "half"],
)  # fmt: skip
def test_a_time_is_shown_as_far_as_its_processes_agree(measure, text, brief):
    assert (time_text(measure), brief_text(measure)) == (text, brief)


def test_a_size_that_rounds_up_to_another_digit_has_no_exponent():
    assert size_text(102_000, 2) == "99.6 KiB"
