"""The shift that all cases of two sessions have in common: the machine's, or the code's?

Two sessions are measured one after the other. A machine that is 4 % slower for the second makes
every case of it 4 % slower, as exactly as one likes: no number of processes helps. What all cases
share is therefore counted as uncertain. A change of the code rarely has this form: it adds so many
nanoseconds to some cases and none to others.
"""

from __future__ import annotations

import math

import numpy as np

from dlprof.compare.ranks import Floats

LEAST_CASES = 4
"""Fewer cases may well share a cause in the code."""

EXCEPT = 0.1
"""The share of the cases that may differ from the rest without a word on what the rest share."""

MOST = math.log(1.25)
"""A machine that became a quarter slower shows it otherwise; what goes beyond is the code's."""


def common_shift(shifts: Floats) -> Floats:
    """What at least nine in ten of ``shifts`` have in common; often 0.

    ``shifts`` are logarithms of ratios, with the cases on the last axis, which is reduced.
    """
    count = shifts.shape[-1]
    if count < LEAST_CASES:
        return np.zeros(shifts.shape[:-1])
    ordered = np.sort(shifts, axis=-1)
    left_out = int(EXCEPT * count)
    low, high = ordered[..., left_out], ordered[..., -1 - left_out]
    return np.asarray(np.clip(np.maximum(low, 0.0) + np.minimum(high, 0.0), -MOST, MOST))
