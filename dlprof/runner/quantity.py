"""Format numbers with readable units, and only the digits that the interval supports."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dlprof.runner.session import TimeMeasure

MARK = "~"
"""Before a time that another process may not repeat."""
UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "\N{MICRO SIGN}s"), (1.0, "ns"))
DIGITS = 2
"""Significant digits of a value whose interval is not known."""
LEAST, MOST = 1e-9, 1e15
"""Beyond these a number is written with an exponent."""
NOTHING = 1e-9
"""A smaller half width, as a part of its value, is rounding of floats."""
FAR = 100
"""Times whose ratio is as large have units of their own."""
WIDE = 0.5
"""An interval wider than this share of its value is written as a range, not as ±."""
FORMS = {
    "±": "±: the 95 % interval of the median of all processes",
    " to ": "a to b: the fastest and the slowest process",
}


def legend(texts: Iterable[str]) -> str:
    """Explain the forms of these times and shares."""
    shown = list(texts)
    found = [words for mark, words in FORMS.items() if any(mark in text for text in shown)]
    return f"{'; '.join(found)}." if found else ""


def time_text(measure: TimeMeasure | None, doubtful: bool = False) -> str:
    """Format a time: ``2.41 ±0.05 us``, or ``~2.4 us`` without an interval.

    If the interval is as wide as the value, the range of the processes: ``0.7 to 1.9 ms``.
    """
    if measure is None:
        return "-"
    mark = MARK if doubtful and measure.ci95_ns else ""
    if measure.ci95_ns is None or _range_ns(measure):
        return f"{mark}{brief_text(measure)}"
    return f"{mark}{with_interval(measure.median_ns, measure.ci95_ns)}"


def brief_text(measure: TimeMeasure) -> str:
    """Format as :func:`time_text` does, without an interval: ``2.4 us``."""
    if ends := _range_ns(measure):
        return range_text(*ends)
    return f"{'' if measure.ci95_ns else MARK}{plain_time(measure.median_ns)}"


def is_wide(measure: TimeMeasure) -> bool:
    """Whether processes differ so much that no single number describes them."""
    if measure.ci95_ns is None:
        return False
    half = max(measure.ci95_ns[1] - measure.median_ns, measure.median_ns - measure.ci95_ns[0])
    return half > WIDE * measure.median_ns


def _range_ns(measure: TimeMeasure) -> tuple[float, float] | None:
    """Return the fastest and the slowest process, if no single number describes all."""
    medians_ns = measure.medians_by_round.values()
    if not is_wide(measure) or len(medians_ns) < 2 or min(medians_ns) <= 0:  # noqa: PLR2004 - a range
        return None
    return min(medians_ns), max(medians_ns)


def range_text(low_ns: float, high_ns: float) -> str:
    """Format ``0.7 to 1.9 ms``: two digits each, in one unit unless they are far apart."""
    if high_ns >= FAR * low_ns > 0:
        return f"{plain_time(low_ns)} to {plain_time(high_ns)}"
    scale, unit = unit_for(high_ns)
    low, high = significant(low_ns / scale), significant(high_ns / scale)
    return f"{high} {unit}" if low == high else f"{low} to {high} {unit}"


def with_interval(value_ns: float, interval_ns: tuple[float, float]) -> str:
    """Format value and half width, rounded to the first digit of the half width; two for a 1."""
    scale, unit = unit_for(value_ns)
    half = max(interval_ns[1] - value_ns, value_ns - interval_ns[0]) / scale
    value = value_ns / scale
    if half <= abs(value) * NOTHING or not math.isfinite(half) or not LEAST <= abs(value) < MOST:
        return f"{significant(value, 3)} {unit}"
    leading, exponent = f"{half:.0e}".split("e")
    places = -int(exponent) + (1 if leading == "1" else 0)
    shown, half_shown = (_fixed(number, places) for number in (value, half))
    return f"{shown} ±{half_shown} {unit}"


def plain_time(value_ns: float, digits: int = DIGITS) -> str:
    """Format a time to this many significant digits."""
    scale, unit = unit_for(value_ns, digits)
    return f"{significant(value_ns / scale, digits)} {unit}"


def size_text(size_bytes: int, digits: int = 4) -> str:
    """Format bytes in binary units, to this many significant digits."""
    size, unit = float(size_bytes), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":  # noqa: PLR2004 - binary units
            break
        size /= 1024
    return f"{size:.{max(digits, len(str(round(size))))}g} {unit}"  # no exponent


def duration_text(seconds: float) -> str:
    """Format ``40 s``, ``7 min``, ``3.5 h``."""
    if seconds < 90:  # noqa: PLR2004 - a minute and a half
        return f"{max(seconds, 1):.0f} s"
    if seconds < 5400:  # noqa: PLR2004 - an hour and a half
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def unit_for(value_ns: float, digits: int = 3) -> tuple[float, str]:
    """Return scale and name of the unit in which a time has this many digits."""
    rounds_up = 1 - 0.5 * 10**-digits  # 999.6 ns are 1.00 µs
    for scale, unit in UNITS:
        if abs(value_ns) >= rounds_up * scale:
            return scale, unit
    return UNITS[-1]


def significant(value: float, digits: int = DIGITS) -> str:
    """Format a number to this many significant digits."""
    if value == 0:
        return "0"
    if not math.isfinite(value):  # of a session with numbers that were not measured
        return "∞"
    if not LEAST <= abs(value) < MOST:
        return f"{value:.{digits - 1}e}"
    exponent = int(f"{abs(value):.{digits - 1}e}".partition("e")[2])
    return _fixed(value, digits - 1 - exponent)


def _fixed(value: float, places: int) -> str:
    """Round to ``places`` decimals; negative places round to tens, hundreds."""
    step = 10.0**places
    return f"{round(value * step) / step:,.{max(places, 0)}f}"
