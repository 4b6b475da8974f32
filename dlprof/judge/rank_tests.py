"""Tests of whether HEAD's times lie above BASE's by more than a shift.

All times are natural logarithms, so that a shift is a ratio. The rank tests hold for times of any
distribution: if the code is the same, each order of the processes is as likely as any other. Heavy
tails, disturbed processes and processes in two states cannot make them wrong.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, ndtr, stdtr, stdtrit

Floats = NDArray[np.float64]

EXACT_PAIRS = 3600
"""The chances of more pairs, 60 processes a side, are approximated."""


@dataclass(frozen=True, eq=False)
class RankTest:
    """``shifts`` are sorted, and their number above a shift is the statistic.

    ``chances`` holds the probability that 0, 1, 2, … or more of them are above 0 in equal code.
    :meth:`p_above` is how likely so large a HEAD is if it is ``shift`` above BASE or less, and
    :meth:`p_below` the opposite. :meth:`interval` holds the shifts that neither rejects at
    ``level``; it is infinite if none can be rejected.
    """

    shifts: Floats
    chances: Floats

    @property
    def location(self) -> float:
        """Hodges and Lehmann's estimate."""
        return float(np.median(self.shifts))

    def p_above(self, shift: float) -> float:
        above = len(self.shifts) - np.searchsorted(self.shifts, shift, side="right")
        return float(self.chances[above])

    def p_below(self, shift: float) -> float:
        return float(self.chances[np.searchsorted(self.shifts, shift, side="left")])

    def interval(self, level: float) -> tuple[float, float]:
        enough = np.flatnonzero(self.chances <= level)
        if not enough.size:
            return -math.inf, math.inf
        return float(self.shifts[-enough[0]]), float(self.shifts[enough[0] - 1])


def mann_whitney(base: Sequence[float] | Floats, head: Sequence[float] | Floats) -> RankTest:
    """The test of two groups of processes; raises ValueError if one is empty."""
    if not (len(base) and len(head)):
        raise ValueError("a side has no processes")
    differences = np.subtract.outer(np.asarray(head), np.asarray(base))
    return RankTest(np.sort(differences, axis=None), mann_whitney_chances(len(base), len(head)))


def wilcoxon(differences: Sequence[float]) -> RankTest:
    """The signed-rank test of HEAD - BASE of each round; raises ValueError for no round.

    The sum of ranks is the number of averages of each two rounds, and of each with itself, that
    lie above zero (Tukey, 1949).
    """
    rounds = len(differences)
    if not rounds:
        raise ValueError("no round has processes of both sides")
    first, second = np.triu_indices(rounds)
    values = np.asarray(differences)
    return RankTest(np.sort((values[first] + values[second]) / 2), wilcoxon_chances(rounds))


def sign(differences: Sequence[float]) -> RankTest:
    """The sign test of HEAD - BASE of each round; raises ValueError for no round.

    It looks at no size: a few rounds with both sides in different states move its interval little,
    where those of :func:`wilcoxon` become wide.
    """
    rounds = len(differences)
    if not rounds:
        raise ValueError("no round has processes of both sides")
    return RankTest(np.sort(differences), _heads_chances(rounds))


def reaches(base: int, head: int, level: float) -> bool:
    """Whether Mann and Whitney's test of so many processes can be significant at ``level``."""
    return bool(mann_whitney_chances(base, head)[-1] <= level)


@lru_cache(maxsize=1024)
def mann_whitney_chances(base: int, head: int) -> Floats:
    """Probability of at least 0, 1, 2, … pairs with HEAD above BASE in equal code."""
    return _upper_tail((_exact if base * head <= EXACT_PAIRS else _normal)(base, head))


def _exact(base: int, head: int) -> Floats:
    """Probability of each number of pairs with HEAD above, of ``base`` x ``head`` pairs.

    The largest process is one of HEAD, and then above all of BASE, or one of BASE: Mann and
    Whitney's recursion (1947), in probabilities so that large numbers do not overflow.
    """
    rows: list[Floats] = [np.ones(1)] * (base + 1)
    for heads in range(1, head + 1):
        row = [np.ones(1)]
        for bases in range(1, base + 1):
            found = np.zeros(bases * heads + 1)
            found[bases:] += rows[bases] * heads / (bases + heads)
            found[: bases * heads - heads + 1] += row[-1] * bases / (bases + heads)
            row.append(found)
        rows = row
    return rows[base]


def _normal(base: int, head: int) -> Floats:
    """The same for many processes by the normal distribution, which errs on the careful side."""
    pairs = base * head
    spread = np.sqrt(pairs * (base + head + 1) / 12)
    edges = (np.arange(-0.5, pairs + 1) - pairs / 2) / spread
    found: Floats = np.diff(ndtr(edges))
    return found


@lru_cache(maxsize=1024)
def wilcoxon_chances(rounds: int) -> Floats:
    """Probability of a sum of ranks of at least 0, 1, 2, … in equal code (Wilcoxon, 1945)."""
    chances = np.ones(1)
    for rank in range(1, rounds + 1):  # each rank is in the sum with a chance of one half
        longer = np.zeros(chances.size + rank)
        longer[: chances.size] += chances / 2
        longer[rank:] += chances / 2
        chances = longer
    return _upper_tail(chances)


@lru_cache(maxsize=1024)
def _heads_chances(rounds: int) -> Floats:
    """Probability of at least 0, 1, 2, … rounds with HEAD above BASE in equal code."""
    return np.concatenate(([1.0], np.asarray(bdtrc(np.arange(rounds), rounds, 0.5), np.float64)))


def _upper_tail(chances: Floats) -> Floats:
    return np.minimum(np.cumsum(chances[::-1])[::-1], 1.0)


@dataclass(frozen=True)
class StudentTest:
    """As :class:`RankTest`; ``location`` is the difference of the means, ``error`` its standard
    error.
    """

    location: float
    error: float
    freedom: int

    def p_above(self, shift: float) -> float:
        return float(stdtr(self.freedom, (shift - self.location) / self.error))

    def p_below(self, shift: float) -> float:
        return float(stdtr(self.freedom, (self.location - shift) / self.error))

    def interval(self, level: float) -> tuple[float, float]:
        reach = float(stdtrit(self.freedom, 1 - level)) * self.error
        return self.location - reach, self.location + reach


Test = RankTest | StudentTest
"""A test of HEAD against BASE; ``location`` is its estimate of the shift."""


def student(
    base: Sequence[float] | Floats, head: Sequence[float] | Floats, least_sd: float
) -> StudentTest:
    """The test of few processes, whose standard deviation is taken to be ``least_sd`` or more.

    The error is the larger of that of both sides pooled and that of each on its own (Welch).
    Raises ValueError for fewer than two processes a side.
    """
    few, many = len(base), len(head)
    if min(few, many) < 2:  # noqa: PLR2004 - one has no spread
        raise ValueError("one process has no spread")
    below, above = float(np.var(base, ddof=1)), float(np.var(head, ddof=1))
    freedom = few + many - 2
    share = 1 / few + 1 / many
    pooled = ((few - 1) * below + (many - 1) * above) / freedom
    square = max(pooled * share, below / few + above / many, least_sd**2 * share)
    return StudentTest(float(np.mean(head) - np.mean(base)), math.sqrt(square), freedom)
