"""Estimates and intervals from process medians.

The independent sample is the process, not the loop iteration: an interval over the iterations of
one process is narrow around a biased value.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

MODE_GAP = 1.3
"""Neighbouring process medians further apart than this ratio belong to different modes."""


@dataclass(frozen=True)
class Estimate:
    """``median_ns`` of the process medians with a 95 % confidence interval.

    The interval is Student's on the logarithms of the process medians (times are skewed, and
    their errors are proportional), widened where needed to hold the median, which it is shown
    with: the mean of seven and more processes in two heaps lies between the heaps. It is None
    for one process, where nothing independent was repeated, and where the processes fall into
    several modes, over which nothing may be averaged.
    """

    median_ns: float
    ci95_ns: tuple[float, float] | None
    modes: tuple[tuple[int, ...], ...]


def estimate(medians_ns: Sequence[float], page_faults: Sequence[float | None]) -> Estimate:
    """The estimate from one median per process, of which there is one at least.

    With several modes it is that of the mode most processes are in; where several hold as many,
    of the mode of the median process, the slower of two: nothing is averaged over modes, and no
    extreme stands for a few processes of which each is in a mode of its own.
    ``page_faults`` are per call, one per process; see :func:`find_modes`.
    """
    modes = find_modes(medians_ns, page_faults)
    median = statistics.median(medians_ns[index] for index in _typical(modes))
    interval = student_interval(medians_ns) if len(modes) == 1 else None
    if interval is not None:
        interval = min(interval[0], median), max(interval[1], median)
    return Estimate(median, interval, modes)


def _typical(modes: Sequence[Sequence[int]]) -> Sequence[int]:
    """The mode that stands for all; ``modes`` are sorted, fastest first."""
    most = max(map(len, modes))
    largest = [mode for mode in modes if len(mode) == most]
    if len(largest) == 1:
        return largest[0]
    places = [mode for mode in modes for _ in mode]
    return places[len(places) // 2]


def student_interval(medians_ns: Sequence[float]) -> tuple[float, float] | None:
    """95 % interval in ns; None for fewer than two values, for one that is not positive, and
    where it would reach beyond what a float can hold.
    """
    if len(medians_ns) < 2 or min(medians_ns) <= 0:  # noqa: PLR2004 - two make a spread
        return None
    low, high = _student([math.log(value) for value in medians_ns])
    try:
        return math.exp(low), math.exp(high)
    except OverflowError:
        return None


_QUANTILES = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
)


def student_quantile(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's distribution; from a table up to 20."""
    if freedom <= len(_QUANTILES):
        return _QUANTILES[freedom - 1]
    return 1.95996 + 2.37227 / freedom + 2.8225 / freedom**2  # Cornish and Fisher


def _student(values: Sequence[float]) -> tuple[float, float]:
    centre, error = statistics.fmean(values), statistics.stdev(values) / math.sqrt(len(values))
    reach = student_quantile(len(values) - 1) * error
    return centre - reach, centre + reach


def mean_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Student's 95 % interval of values that may be negative, such as differences, widened where
    needed to hold their median; None for fewer than two.
    """
    if len(values) < 2:  # noqa: PLR2004 - two make a spread
        return None
    (low, high), median = _student(values), statistics.median(values)
    return min(low, median), max(high, median)


def find_modes(
    medians_ns: Sequence[float], page_faults: Sequence[float | None]
) -> tuple[tuple[int, ...], ...]:
    """Indices of the processes of each mode, fastest mode first.

    A split needs a ratio above :data:`MODE_GAP` between neighbouring medians and a cause that can
    be seen: ``page_faults`` per call that differ. Without the cause it is noise, and noise belongs
    into the interval.
    """

    def place(index: int) -> tuple[float, float]:
        # Equal medians are ordered too, so that the order of the processes is no cause.
        fault = page_faults[index]
        return medians_ns[index], -1.0 if fault is None else fault

    order = sorted(range(len(medians_ns)), key=place)
    modes: list[list[int]] = [[order[0]]]
    for before, after in pairwise(order):
        far = medians_ns[after] > MODE_GAP * medians_ns[before]
        if far and differ(page_faults[before], page_faults[after]):
            modes.append([])
        modes[-1].append(after)
    return tuple(tuple(mode) for mode in modes)


def differ(few: float | None, many: float | None) -> bool:
    """Whether page faults per call are of two kinds: eight more, and twice as many."""
    if few is None or many is None:
        return False
    low, high = sorted((few, many))
    return high - low >= 8 and high >= 2 * low  # noqa: PLR2004 - see the docstring
