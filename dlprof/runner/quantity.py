"""Numbers for people: readable units, and only the digits that the interval supports."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from enum import Enum

from dlprof.runner.measured import Share
from dlprof.runner.session import TimeMeasure

MARK = "~"
"""Before a time that another process may not repeat."""
UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "\N{MICRO SIGN}s"), (1.0, "ns"))
LOOSE_DIGITS = 2
"""Significant digits of a value whose interval is not known."""
LEAST, MOST = 1e-9, 1e15
"""Beyond these a number is written with an exponent."""
NOTHING = 1e-9
"""A half width that is a smaller part of its value is what floats leave of equal times."""
FAR = 100
"""Times whose ratio is as large have units of their own."""
WIDE = 0.5
"""An interval wider than this share of its value is not written as ±: a range says more."""
LEAST_TOLD = 1.1
"""What is less reads "at least 1.0 times", which says nothing."""


class Form(Enum):
    """What stands for the processes of a measure, and what that means."""

    INTERVAL = "±: the 95 % interval of the median of all processes"
    RANGE = "a to b: the fastest and the slowest process"
    MODES = "a or b: groups of processes that differ"


def form_of(measure: TimeMeasure | Share | None) -> Form | None:
    """None for a single process, and for a share of which the processes do not agree."""
    if measure is None or isinstance(measure, Share):
        return Form.INTERVAL if measure is not None and measure.is_known else None
    if measure.modes or measure.ci95_ns is None:
        return Form.MODES if measure.modes else None
    return Form.RANGE if _range_ns(measure) else Form.INTERVAL


def legend(measures: Iterable[TimeMeasure | Share | None]) -> str:
    """What the forms of these measures mean."""
    found = {form_of(measure) for measure in measures}
    told = [form.value for form in Form if form in found]
    return f"{'; '.join(told)}." if told else ""


def time_text(measure: TimeMeasure | None, doubtful: bool = False) -> str:
    """``2.41 ±0.05 us``; ``~2.4 us`` without an interval; ``0.14 or 0.41 ms`` for modes.

    Where the interval is as wide as the value, the range of the processes: ``0.7 to 1.9 ms``.
    """
    if measure is None:
        return "-"
    mark = MARK if doubtful and measure.is_repeated else ""
    if measure.ci95_ns is None or form_of(measure) is not Form.INTERVAL:
        return f"{mark}{brief_text(measure)}"
    return f"{mark}{with_interval(measure.median_ns, measure.ci95_ns)}"


def brief_text(measure: TimeMeasure) -> str:
    """As :func:`time_text`, without an interval: ``2.4 us``."""
    if measure.modes:
        return modes_text([mode.median_ns for mode in measure.modes])
    if ends := _range_ns(measure):
        return range_text(*ends)
    return f"{'' if measure.is_repeated else MARK}{plain_time(measure.median_ns)}"


def is_wide(measure: TimeMeasure) -> bool:
    """Whether processes differ so much that no one number stands for them: in modes, or widely."""
    if measure.modes or measure.ci95_ns is None:
        return bool(measure.modes)
    half = max(measure.ci95_ns[1] - measure.median_ns, measure.median_ns - measure.ci95_ns[0])
    return half > WIDE * measure.median_ns


def _range_ns(measure: TimeMeasure) -> tuple[float, float] | None:
    """The least and the greatest of the processes, if no one number stands for them."""
    medians_ns = measure.medians_by_round.values()
    if not is_wide(measure) or len(medians_ns) < 2 or min(medians_ns) <= 0:  # noqa: PLR2004 - a range
        return None
    return min(medians_ns), max(medians_ns)


def times_text(longer: TimeMeasure, shorter: TimeMeasure) -> str:
    """``3.3``: how many times as long; ``at least 3.3`` of modes and of wide intervals;
    ``about 3.3`` where one of them has no interval.

    Empty where that is no number, or where the one reaches into the other, or nearly so.
    """
    wide = is_wide(longer) or is_wide(shorter)
    low, high = _nearest_ns(longer)[0], _nearest_ns(shorter)[1]
    if high <= 0 or (wide and low <= LEAST_TOLD * high):
        return ""
    if not (longer.is_repeated and shorter.is_repeated):
        return f"about {ratio_text(low / high)}"
    if wide:
        return f"at least {significant(low / high, LOOSE_DIGITS, ROUND_FLOOR)}"
    return ratio_text(low / high)


def _nearest_ns(measure: TimeMeasure) -> tuple[float, float]:
    """The fastest and the slowest that a time may be: twice the median where that stands for it."""
    wide = not measure.modes and is_wide(measure)
    return (measure.ci95_ns if wide else None) or measure.modes_ns


def range_text(low_ns: float, high_ns: float) -> str:
    """``0.7 to 1.9 ms``: two digits each, in the unit of the higher; far apart, each in its own."""
    if high_ns >= FAR * low_ns > 0:
        return f"{plain_time(low_ns)} to {plain_time(high_ns)}"
    scale, unit = unit_for(high_ns)
    low, high = (significant(value / scale, LOOSE_DIGITS) for value in (low_ns, high_ns))
    return f"{low} {unit}" if low == high else f"{low} to {high} {unit}"


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
    scale, unit = unit_for(float(_rounded(value_ns, digits)))  # 999.6 ns are 1.00 µs
    return f"{significant(value_ns / scale, digits)} {unit}"


def bound_text(value_ns: float) -> str:
    """A time to one digit that is no less: what is below ``value_ns`` is below it too."""
    scale, unit = unit_for(value_ns)
    return f"{significant(value_ns / scale, 1, ROUND_CEILING)} {unit}"


def modes_text(medians_ns: list[float]) -> str:
    if max(medians_ns) >= FAR * min(medians_ns) > 0:
        return " or ".join(map(plain_time, medians_ns))
    scale, unit = unit_for(medians_ns[0])
    return (
        " or ".join(significant(value / scale, LOOSE_DIGITS) for value in medians_ns) + f" {unit}"
    )


def ratio_text(ratio: float) -> str:
    """``27,000``: a ratio to two significant digits."""
    return significant(ratio, LOOSE_DIGITS)


def size_text(size_bytes: int, digits: int = 4) -> str:
    """Bytes in binary units, to so many significant digits."""
    size, unit = float(size_bytes), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":  # noqa: PLR2004 - binary units
            break
        size /= 1024
    return f"{size:.{max(digits, len(str(int(size))))}g} {unit}"  # no exponent


def duration_text(seconds: float) -> str:
    """``40 s``, ``7 min``, ``3.5 h``."""
    if seconds < 90:  # noqa: PLR2004 - a minute and a half
        return f"{max(seconds, 1):.0f} s"
    if seconds < 5400:  # noqa: PLR2004 - an hour and a half
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


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
    return fixed(value, digits - 1 - _rounded(value, digits).adjusted(), rounding)


def _rounded(value: float, digits: int) -> Decimal:
    """To so many significant digits: it may have one digit more before its point."""
    exact = Decimal(repr(float(value)))
    if not exact.is_finite():
        return exact
    return exact.quantize(Decimal(1).scaleb(exact.adjusted() - digits + 1), ROUND_HALF_UP)
