"""Student's test of a few processes, with a floor under the spread that they happen to show.

Three processes a side have twenty orders: no rank test can be significant after a correction. This
one assumes more: that the logarithms of process medians are spread about alike on both sides and
not narrower than ``floor_sd``, what processes are known to differ by. Outliers make it careful:
they add more to the spread than to the difference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from dlprof.compare.ranks import Floats

LEAST = 2
"""Processes a side: one has no spread."""


@dataclass(frozen=True, eq=False)
class Student:
    """``location``: difference of the means of logarithms; ``error``: its standard error."""

    location: Floats
    error: Floats
    freedom: int

    def p_above(self, shift: Floats | float) -> Floats:
        """How likely so large a HEAD is if it is ``shift`` above BASE, or less."""
        return np.asarray(stdtr(self.freedom, (shift - self.location) / self.error))

    def p_below(self, shift: Floats | float) -> Floats:
        """How likely so small a HEAD is if it is ``shift`` above BASE, or more."""
        return np.asarray(stdtr(self.freedom, (self.location - shift) / self.error))

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """The shifts that neither test rejects at ``level``."""
        reach = float(stdtrit(self.freedom, 1 - level)) * self.error
        return self.location - reach, self.location + reach


def student(base: Floats, head: Floats, floor_sd: float) -> Student:
    """The test of two arrays of logarithms; raises ValueError for fewer than two processes a side.

    The error is the larger of that from both sides pooled and that from each on its own (Welch).
    """
    few, many = base.shape[-1], head.shape[-1]
    if min(few, many) < LEAST:
        raise ValueError("one process has no spread")
    below, above = base.var(axis=-1, ddof=1), head.var(axis=-1, ddof=1)
    freedom = few + many - 2
    pooled = ((few - 1) * below + (many - 1) * above) / freedom
    share = 1 / few + 1 / many
    error = np.maximum(pooled * share, below / few + above / many)
    error = np.sqrt(np.maximum(error, floor_sd**2 * share))
    return Student(np.asarray(head.mean(axis=-1) - base.mean(axis=-1)), np.asarray(error), freedom)
