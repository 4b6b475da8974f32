"""A line through points that are disturbed now and then, and how sure its slope is."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

LEAST_POINTS = 6
HALF = 0.5


@dataclass(frozen=True)
class Fit:
    """A line through points, by the median of the slopes between them (Theil, Sen).

    ``interval`` is Sen's 95 % interval of the slope (J. Am. Stat. Assoc. 63, 1968). ``scatter``
    is how far the points lie from the line, as a share of the queue (both medians).
    """

    slope: float
    intercept_ns: float
    interval: tuple[float, float]
    scatter: float = 0.0


NOTHING_KNOWN = Fit(HALF, 0.0, (0.0, 1.0))
"""The fit to too few points: anything between no wait and a full one."""


def fit(points: Sequence[tuple[float, float]]) -> Fit:
    """The line through ``points``; :data:`NOTHING_KNOWN` where they are too few or too close."""
    slopes = sorted(
        (b[1] - a[1]) / (b[0] - a[0])
        for a, b in itertools.combinations(points, 2)
        if abs(b[0] - a[0]) > 0.2 * max(a[0], b[0])  # repeats of one length say nothing of a slope
    )
    n = len(points)
    if n < LEAST_POINTS or not slopes:
        return NOTHING_KNOWN
    slope = statistics.median(slopes)
    intercept = statistics.median(y - slope * x for x, y in points)
    reach = 1.96 * math.sqrt(n * (n - 1) * (2 * n + 5) / 18)
    low = max(0, math.floor((len(slopes) - reach) / 2))
    high = min(len(slopes) - 1, math.ceil((len(slopes) + reach) / 2))
    scatter = statistics.median(abs(y - slope * x - intercept) for x, y in points)
    scatter /= max(1, statistics.median(x for x, _ in points))
    return Fit(slope, intercept, (slopes[low], slopes[high]), scatter)
