"""Numbers for people: only the digits that the interval supports."""

from __future__ import annotations

import math
import re

import pytest
from builders import make_measure
from hypothesis import assume, given
from hypothesis import strategies as st

from dlprof.analysis.quantity import (
    bound_text,
    brief_text,
    plain_time,
    range_text,
    ratio_text,
    size_text,
    time_text,
    times_text,
    unit_for,
    with_interval,
)

pytestmark = pytest.mark.unit

SCALES = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}

values = st.floats(min_value=0.01, max_value=1e13)
shares = st.floats(min_value=1e-6, max_value=30.0)


@pytest.mark.parametrize(
    ("value", "half", "text"),
    [
        (2412.3, 52.0, "2.41 ±0.05 us"),
        (2412.3, 5.2, "2.412 ±0.005 us"),
        (2412.3, 520.0, "2.4 ±0.5 us"),
        (2412.3, 1200.0, "2.4 ±1.2 us"),
        (2412.3, 2400.0, "2 ±2 us"),
        (2412.3, 14.0, "2.412 ±0.014 us"),
        (2412.3, 19.6, "2.41 ±0.02 us"),
        (2412.3, 96.0, "2.41 ±0.10 us"),
        (812.0, 30.0, "810 ±30 ns"),
        (812.0, 300.0, "800 ±300 ns"),
        (812.0, 130.0, "810 ±130 ns"),
        (45.2, 0.31, "45.2 ±0.3 ns"),
        (0.52, 0.04, "0.52 ±0.04 ns"),
        (130_000_000.0, 2_000_000.0, "130 ±2 ms"),
        (1_500_000_000.0, 10_000_000.0, "1.500 ±0.010 s"),
        (4.2e12, 3e11, "4,200 ±300 s"),
        (1000.0, 4300.0, "1 ±4 us"),
    ],
)
def test_value_and_half_width_end_at_the_digit_that_the_interval_supports(value, half, text):
    assert with_interval(value, (value - half, value + half)) == text


def test_an_interval_that_is_not_symmetric_is_shown_by_its_wider_side():
    assert with_interval(1000.0, (990.0, 1050.0)) == "1.00 ±0.05 us"
    assert with_interval(1000.0, (950.0, 1010.0)) == "1.00 ±0.05 us"


def test_an_interval_of_no_width_shows_three_digits():
    assert with_interval(1234.5, (1234.5, 1234.5)) == "1.23 us"


def last_digit(half):
    """The worth of the last digit of a half width as it is shown; two digits if the first is 1."""
    exponent = math.floor(math.log10(half) + 1e-9)
    return 10.0 ** (exponent - (1 if f"{half:.10e}".startswith("1") else 0))


@given(values, shares)
def test_the_shown_value_is_within_the_shown_half_widths_rounding_of_the_true_value(value, share):
    text = with_interval(value, (value * (1 - share), value * (1 + share)))
    shown, half, unit = re.fullmatch(r"([\d.,]+) ±([\d.,]+) (ns|us|ms|s)", text).groups()
    shown, half = (float(number.replace(",", "")) for number in (shown, half))
    assert abs(shown * SCALES[unit] - value) <= 0.5001 * last_digit(half) * SCALES[unit]


@given(values, shares)
def test_the_shown_half_width_is_the_true_one_to_a_third(value, share):
    text = with_interval(value, (value * (1 - share), value * (1 + share)))
    _, half, unit = re.fullmatch(r"([\d.,]+) ±([\d.,]+) (ns|us|ms|s)", text).groups()
    assert float(half.replace(",", "")) * SCALES[unit] == pytest.approx(value * share, rel=0.34)


@given(values, shares)
def test_value_and_half_width_have_the_same_decimals(value, share):
    text = with_interval(value, (value * (1 - share), value * (1 + share)))
    shown, half, _ = re.split(r" ±| ", text)
    assert len(shown.partition(".")[2]) == len(half.partition(".")[2])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 ns"),
        (0.123, "0.12 ns"),
        (1.0, "1.0 ns"),
        (99.4, "99 ns"),
        (812.0, "810 ns"),
        (2412.3, "2.4 us"),
        (139_000_000, "140 ms"),
        (1.5e9, "1.5 s"),
        (4.56e12, "4,600 s"),
        (-2.5, "-2.5 ns"),
    ],
)
def test_a_time_without_interval_has_two_digits(value, text):
    assert plain_time(value) == text


@given(values)
def test_a_time_without_interval_is_right_to_five_percent(value):
    number, unit = plain_time(value).split(" ")
    assert float(number.replace(",", "")) * SCALES[unit] == pytest.approx(value, rel=0.0501)


@pytest.mark.parametrize(
    ("value", "unit"),
    [
        (0.0, "ns"),
        (0.5, "ns"),
        (999.0, "ns"),
        (1000.0, "us"),
        (1e6, "ms"),
        (1e9, "s"),
        (1e15, "s"),
        (-2e3, "us"),
    ],
)
def test_the_unit_is_the_largest_that_leaves_a_whole_number(value, unit):
    assert unit_for(value)[1] == unit


def test_a_measure_that_is_missing_is_a_dash():
    assert time_text(None) == "-"


def test_a_measure_with_an_interval_shows_it():
    assert time_text(make_measure(2412.3, (2360.0, 2460.0))) == "2.41 ±0.05 us"


def test_a_measure_without_interval_is_only_about():
    assert time_text(make_measure(2412.3, None)) == "~2.4 us"


def test_an_interval_wider_than_half_its_value_is_a_range_of_the_processes():
    assert (
        time_text(make_measure(1000.0, (400.0, 2500.0)), [700.0, 1000.0, 1900.0]) == "0.70-1.9 us"
    )


def test_a_wide_interval_of_unknown_processes_is_shown_as_it_is():
    assert time_text(make_measure(1000.0, (400.0, 2500.0))) == "1 ±2 us"


def test_an_interval_of_half_its_value_is_no_range():
    assert time_text(make_measure(1000.0, (500.0, 1500.0)), [700.0, 1900.0]) == "1.0 ±0.5 us"


def test_a_measure_in_modes_shows_each_in_the_unit_of_the_fastest():
    modes = [{"median_ns": 140_000.0, "rounds": [0]}, {"median_ns": 1_410_000.0, "rounds": [1, 2]}]
    assert time_text(make_measure(1_410_000.0, None, modes=modes)) == "140 | 1,400 us"


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(1.06, "1.1"), (2.0, "2.0"), (27.4, "27"), (27_400, "27,000"), (99.6, "100"), (0.5, "0.50")],
)
def test_a_ratio_has_two_digits(ratio, text):
    assert ratio_text(ratio) == text


@given(st.floats(min_value=1.0, max_value=1e9))
def test_a_ratio_is_right_to_five_percent(ratio):
    assert float(ratio_text(ratio).replace(",", "")) == pytest.approx(ratio, rel=0.0501)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (4 * 4096 * 4096, "64 MiB"),
        (3 * 2**29, "1.5 GiB"),
        (5 * 2**40, "5 TiB"),
        (9000 * 2**40, "9000 TiB"),
    ],
)
def test_sizes_are_in_binary_units(size, text):
    assert size_text(size) == text


@given(st.integers(0, 2**63))
def test_a_size_is_right_to_a_thousandth(size):
    assume(size)
    number, unit = size_text(size).split(" ")
    factor = 1024 ** ("B", "KiB", "MiB", "GiB", "TiB").index(unit)
    assert float(number) * factor == pytest.approx(size, rel=0.001)


def test_a_number_that_nobody_measured_is_told_and_breaks_nothing():
    assert plain_time(1e308 * 10) == "∞ s"
    assert time_text(make_measure(1e308, (-1e308, 1e308))).endswith(" s")


def test_times_that_are_far_apart_have_units_of_their_own():
    modes = [{"median_ns": median, "rounds": [at]} for at, median in enumerate((18e3, 22e9))]
    assert time_text(make_measure(18e3, None, modes=modes)) == "18 us | 22 s"
    assert range_text(18e3, 22e9) == "18 us-22 s"


@pytest.mark.parametrize(
    ("value", "text"), [(1e308, "1.0e+299 s"), (-1e308, "-1.0e+299 s"), (5e-324, "4.9e-324 ns")]
)
def test_what_nobody_measured_is_written_with_an_exponent(value, text):
    assert plain_time(value) == text
    assert len(with_interval(value, (value, value * 0.9))) < 16


def test_a_brief_time_of_one_process_is_marked_as_such():
    assert brief_text(make_measure(4_100_000.0, None)) == "~4.1 ms"
    assert brief_text(make_measure(4_100_000.0, (4_000_000.0, 4_200_000.0))) == "4.1 ms"


def test_a_ratio_of_one_process_is_about_so_much():
    once, often = make_measure(2200.0, None), make_measure(10.0, (9.0, 11.0))
    assert times_text(once, often) == "about 220"
    assert times_text(make_measure(2200.0, (2190.0, 2210.0)), often) == "220"


def test_equal_times_are_written_without_the_rest_that_floats_leave():
    value = 45.12
    assert with_interval(value, (value * (1 - 3e-16), value * (1 + 3e-16))) == "45.1 ns"


def test_what_is_at_least_so_much_is_not_rounded_up():
    slow = make_measure(10.0, modes=[mode(10.69), mode(30.0)])
    fast = make_measure(1.0, modes=[mode(0.5), mode(1.0)])
    assert times_text(slow, fast) == "at least 10"


@pytest.mark.parametrize(("ns", "text"), [(1400.0, "2 us"), (440.0, "500 ns"), (500.0, "500 ns")])
def test_a_bound_is_not_rounded_down(ns, text):
    assert bound_text(ns) == text


def mode(median_ns):
    return {"median_ns": median_ns, "rounds": [0, 1]}
