"""Numbers for people: readable units, and only the digits that the interval supports."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal

from dlprof.session.model import TimeMeasure

UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "\N{MICRO SIGN}s"), (1.0, "ns"))
LOOSE_DIGITS = 2
"""Significant digits of a value whose interval is not known."""


LEAST, MOST = 1e-9, 1e15
"""Beyond these a number is written with an exponent."""
NOTHING = 1e-9
"""A half width that is a smaller part of its value is what floats leave of equal times."""
FAR = 1000
"""Times whose ratio is as large have units of their own."""
WIDE = 0.5
"""An interval wider than this share of its value is not written as ±: a range says more."""


def time_text(measure: TimeMeasure | None, medians_ns: Sequence[float] = ()) -> str:
    """``2.41 ±0.05 us``; ``~2.4 us`` without an interval; ``0.14 | 0.41 ms`` for modes.

    Where the interval is as wide as the value, the range of ``medians_ns``, those of the
    processes: ``0.7-1.9 ms``.
    """
    if measure is None:
        return "-"
    if measure.modes:
        return modes_text([mode.median_ns for mode in measure.modes])
    if measure.ci95_ns is None:
        return "~" + plain_time(measure.median_ns)
    if is_range(measure, medians_ns):
        return range_text(min(medians_ns), max(medians_ns))
    return with_interval(measure.median_ns, measure.ci95_ns)


def is_narrow(measure: TimeMeasure) -> bool:
    """Whether its interval is known and narrow enough to be written as ±."""
    if measure.ci95_ns is None:
        return False
    half = max(measure.ci95_ns[1] - measure.median_ns, measure.median_ns - measure.ci95_ns[0])
    return half <= WIDE * measure.median_ns


def is_wide(measure: TimeMeasure) -> bool:
    """Whether processes differ so much that no one number stands for them: in modes, or widely."""
    return bool(measure.modes) or (measure.ci95_ns is not None and not is_narrow(measure))


def is_range(measure: TimeMeasure, medians_ns: Sequence[float]) -> bool:
    """Whether it is written as the range of ``medians_ns``, those of the processes."""
    return not measure.modes and is_wide(measure) and len(medians_ns) > 1 and min(medians_ns) > 0


def ends_ns(measure: TimeMeasure, medians_ns: Sequence[float] = ()) -> tuple[float, float]:
    """The least and the most that a time is written as: twice the median where that stands for it.

    Of modes the fastest and the slowest. Of a wide interval the range of ``medians_ns``, those of
    the processes, as it is written; its own ends where they are not there.
    """
    if measure.ci95_ns is None or not is_wide(measure) or measure.modes:
        return measure.modes_ns
    return (min(medians_ns), max(medians_ns)) if len(medians_ns) > 1 else measure.ci95_ns


def loop_time_text(measure: TimeMeasure | None) -> str:
    """The time of an iteration, as any other: the range over processes where they differ."""
    return time_text(measure, process_medians(measure))


def process_medians(measure: TimeMeasure | None) -> list[float]:
    """The median of each process in ns, as far as its samples are there."""
    processes = measure.processes if measure is not None else []
    return [statistics.median(one.samples_ns) for one in processes if one.samples_ns]


def brief_text(measure: TimeMeasure, medians_ns: Sequence[float] = ()) -> str:
    """A time without its interval: ``2.4 us``, and ``0.14 | 0.41 ms`` for modes.

    ``~2.4 us`` where no interval is known: the next process may give another one. Where the
    interval is as wide as the value, the range of ``medians_ns``, as in :func:`time_text`.
    """
    if measure.modes:
        return modes_text([mode.median_ns for mode in measure.modes])
    if is_range(measure, medians_ns):
        return range_text(min(medians_ns), max(medians_ns))
    return f"{'' if repeated(measure) else '~'}{plain_time(measure.median_ns)}"


def repeated(measure: TimeMeasure) -> bool:
    """Whether it is known how far processes differ."""
    return measure.ci95_ns is not None or bool(measure.modes)


AT_LEAST = "at least "
LEAST_TOLD = 1.1
"""What is less reads "at least 1.0 times", which says nothing."""


def times_text(
    longer: TimeMeasure,
    shorter: TimeMeasure,
    longer_medians_ns: Sequence[float] = (),
    shorter_medians_ns: Sequence[float] = (),
) -> str:
    """``3.3``: how many times as long; ``at least 3.3`` of modes and of wide intervals, between
    the nearest two :func:`ends_ns`; ``about 3.3`` where one of them has no interval.

    Empty where that is no number, or where the one reaches into the other, or nearly so.
    """
    low = ends_ns(longer, longer_medians_ns)[0]
    high = ends_ns(shorter, shorter_medians_ns)[1]
    wide = is_wide(longer) or is_wide(shorter)
    if high <= 0 or (wide and low <= LEAST_TOLD * high):
        return ""
    sure = repeated(longer) and repeated(shorter)
    how = (AT_LEAST if wide else "") if sure else "about "
    if how == AT_LEAST:
        return how + significant(low / high, LOOSE_DIGITS, ROUND_FLOOR)
    return f"{how}{ratio_text(low / high)}"


def range_text(low_ns: float, high_ns: float) -> str:
    """``0.7-1.9 ms``: two digits each, in the unit of the higher; far apart, each in its own."""
    if high_ns >= FAR * low_ns > 0:
        return f"{plain_time(low_ns)}-{plain_time(high_ns)}"
    scale, unit = unit_for(high_ns)
    low, high = (significant(value / scale, LOOSE_DIGITS) for value in (low_ns, high_ns))
    return f"{low}-{high} {unit}"


def with_interval(value_ns: float, interval_ns: tuple[float, float]) -> str:
    """Value and half width, both rounded to the first digit (two, if it is 1) of the half width."""
    scale, unit = unit_for(value_ns)
    half = max(interval_ns[1] - value_ns, value_ns - interval_ns[0]) / scale
    value = value_ns / scale
    if half <= abs(value) * NOTHING or not math.isfinite(half) or not LEAST <= abs(value) < MOST:
        return f"{significant(value, 3)} {unit}"
    places = decimals(half)
    return f"{fixed(value, places)} ±{fixed(half, places)} {unit}"


def plain_time(value_ns: float, digits: int = LOOSE_DIGITS) -> str:
    """A time to so many significant digits."""
    scale, unit = unit_for(value_ns)
    return f"{significant(value_ns / scale, digits)} {unit}"


def bound_text(value_ns: float) -> str:
    """A time to one digit that is no less: what is below ``value_ns`` is below it too."""
    scale, unit = unit_for(value_ns)
    return f"{significant(value_ns / scale, 1, ROUND_CEILING)} {unit}"


def modes_text(medians_ns: list[float]) -> str:
    if max(medians_ns) >= FAR * min(medians_ns) > 0:
        return " | ".join(map(plain_time, medians_ns))
    scale, unit = unit_for(medians_ns[0])
    return " | ".join(significant(value / scale, LOOSE_DIGITS) for value in medians_ns) + f" {unit}"


def ratio_text(ratio: float) -> str:
    """``27,000``: a ratio to two significant digits."""
    return significant(ratio, LOOSE_DIGITS)


def size_text(size_bytes: int) -> str:
    """Bytes in binary units."""
    size, unit = float(size_bytes), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":  # noqa: PLR2004 - binary units
            break
        size /= 1024
    return f"{size:.4g} {unit}"


def unit_for(value_ns: float) -> tuple[float, str]:
    for scale, unit in UNITS:
        if abs(value_ns) >= scale:
            return scale, unit
    return UNITS[-1]


def decimals(half: float) -> int:
    """Decimal places at which ``half`` shows its first digit, or two digits if the first is 1."""
    leading, exponent = f"{half:.0e}".split("e")
    return -int(exponent) + (1 if leading == "1" else 0)


def fixed(value: float, places: int, rounding: str = ROUND_HALF_UP) -> str:
    """Rounded half up to ``places`` decimals; negative places round to tens, hundreds."""
    step = Decimal(1).scaleb(-places)
    rounded = Decimal(repr(float(value))).quantize(step, rounding)
    return f"{rounded:,.{max(places, 0)}f}"


def significant(value: float, digits: int, rounding: str = ROUND_HALF_UP) -> str:
    if value == 0:
        return "0"
    if not math.isfinite(value):  # of a session in which numbers stand that nobody measured
        return "∞"
    if not LEAST <= abs(value) < MOST:
        return f"{value:.{digits - 1}e}"
    return fixed(value, digits - 1 - math.floor(math.log10(abs(value))), rounding)
