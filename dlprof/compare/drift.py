"""The shift that all cases of two sessions have in common: the machine's, or the code's?

Two sessions are measured one after the other. A machine that is 4 % slower for the second makes
every case of it 4 % slower, as exactly as one likes: no number of processes helps. What all cases
share is therefore counted as uncertain. A change of the code rarely has this form: it adds so many
nanoseconds to some cases and none to others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

LEAST_CASES = 4
"""Fewer cases may well share a cause in the code."""

EXCEPT = 0.1
"""The share of the cases that may differ from the rest without a word on what the rest share."""

MOST = math.log(1.25)
"""A machine that became a quarter slower shows it otherwise; what goes beyond is the code's."""


def common_shift(shifts: Sequence[float]) -> float:
    """What at least nine in ten of ``shifts`` (logarithms of ratios) have in common; often 0."""
    finite = sorted(shift for shift in shifts if math.isfinite(shift))
    if len(finite) < LEAST_CASES:
        return 0.0
    left_out = int(EXCEPT * len(finite))
    low, high = finite[left_out], finite[-1 - left_out]
    if low > 0:
        return min(low, MOST)
    return max(high, -MOST) if high < 0 else 0.0
