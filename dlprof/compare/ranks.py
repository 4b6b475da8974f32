"""The rank test of the processes of two finished sessions: Mann and Whitney's.

Every process of HEAD is compared with every process of BASE. Where the code is the same, each order
of the processes is as likely as any other, whatever their distribution is: heavy tails, single
disturbed processes and processes in two states cannot make it wrong. For rounds measured in turns
see :mod:`dlprof.compare.ranks`.

All arrays have the processes on their last axis and any axes before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtr, stdtrit

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


Floats = NDArray[np.float64]

Size = tuple[int, int]
"""Processes of BASE and of HEAD."""

EXACT_PAIRS = 3600
"""Of more pairs, 60 processes a side, the chances are approximated."""


@dataclass(frozen=True, eq=False)
class Ranks:
    """``differences``: of each pair of processes, HEAD - BASE, in logarithms."""

    differences: Floats
    size: Size

    @cached_property
    def ordered(self) -> Floats:
        return np.sort(self.differences, axis=-1)

    @property
    def location(self) -> Floats:
        """Hodges and Lehmann's estimate: the median of all differences."""
        return np.asarray(np.median(self.differences, axis=-1))

    def p_above(self, shift: Floats | float) -> Floats:
        """How likely so large a HEAD is if it is ``shift`` above BASE, or less."""
        return self._tail(self.differences > np.asarray(shift)[..., None])

    def p_below(self, shift: Floats | float) -> Floats:
        """How likely so small a HEAD is if it is ``shift`` above BASE, or more."""
        return self._tail(self.differences < np.asarray(shift)[..., None])

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """The shifts that neither test rejects at ``level``; infinite where none can be."""
        needed = critical(self.size, level)
        if needed is None:
            infinite = np.full(self.differences.shape[:-1], np.inf)
            return -infinite, infinite
        return self.ordered[..., -needed], self.ordered[..., needed - 1]

    def _tail(self, held: NDArray[np.bool_]) -> Floats:
        found: Floats = upper_tail(self.size)[held.sum(axis=-1)]
        return found


def ranks(base: Floats, head: Floats) -> Ranks:
    """The test of the logarithms of two sides; raises ValueError for one without any process."""
    size = base.shape[-1], head.shape[-1]
    if not min(size):
        raise ValueError("a side has no processes")
    differences = head[..., :, None] - base[..., None, :]
    return Ranks(differences.reshape(*base.shape[:-1], -1), size)


def reaches(size: Size, level: float) -> bool:
    """Whether so many processes can be significant at ``level`` at all."""
    return critical(size, level) is not None


@lru_cache(maxsize=4096)
def critical(size: Size, level: float) -> int | None:
    """The fewest pairs that must be above for significance at ``level``; None if no number is."""
    enough = np.flatnonzero(upper_tail(size) <= level)
    return int(enough[0]) if enough.size else None


@lru_cache(maxsize=1024)
def upper_tail(size: Size) -> Floats:
    """Probability of at least 0, 1, 2, … pairs with HEAD above BASE, if the sides are alike."""
    base, head = size
    chances = (_exact if base * head <= EXACT_PAIRS else _normal)(base, head)
    return np.minimum(np.cumsum(chances[::-1])[::-1], 1.0)


def _exact(base: int, head: int) -> Floats:
    """Probability of each number of pairs with HEAD above, of ``base`` x ``head`` pairs.

    The largest process is one of HEAD, and then above all of BASE, or one of BASE: Mann and
    Whitney's recursion (1947), in probabilities so that large numbers of processes do not overflow.
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
    """The same for many processes, where the number of pairs is all but normally distributed.

    Far out the chance is too large, down to one in 10^30: that is the careful side.
    """
    pairs = base * head
    spread = np.sqrt(pairs * (base + head + 1) / 12)
    edges = (np.arange(-0.5, pairs + 1) - pairs / 2) / spread
    found: Floats = np.diff(ndtr(edges))
    return found


@dataclass(frozen=True, eq=False)
class Signed:
    """``differences``: HEAD - BASE of each round, in logarithms."""

    differences: Floats

    @property
    def rounds(self) -> int:
        return int(self.differences.shape[-1])

    @property
    def averages(self) -> Floats:
        """The averages of each two differences, and of each with itself (Walsh)."""
        first, second = np.triu_indices(self.rounds)
        found: Floats = (self.differences[..., first] + self.differences[..., second]) / 2
        return found

    @cached_property
    def ordered(self) -> Floats:
        """All averages by size."""
        return np.sort(self.averages, axis=-1)

    @property
    def location(self) -> Floats:
        """Hodges and Lehmann's estimate: the median of all averages."""
        return np.asarray(np.median(self.averages, axis=-1, overwrite_input=True))

    def p_above(self, shift: Floats | float) -> Floats:
        """How likely so large a HEAD is if it is ``shift`` above BASE, or less."""
        return _tail(self.differences - np.asarray(shift)[..., None])

    def p_below(self, shift: Floats | float) -> Floats:
        """How likely so small a HEAD is if it is ``shift`` above BASE, or more."""
        return _tail(np.asarray(shift)[..., None] - self.differences)

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """The shifts that neither test rejects at ``level``; infinite where none can be."""
        needed = signed_critical(self.rounds, level)
        if needed is None:
            infinite = np.full(self.differences.shape[:-1], np.inf)
            return -infinite, infinite
        return self.ordered[..., -needed], self.ordered[..., needed - 1]


def signed(differences: Floats) -> Signed:
    """The test of HEAD - BASE of each round; raises ValueError for no round."""
    if not differences.shape[-1]:
        raise ValueError("no round has processes of both sides")
    return Signed(differences)


def _tail(above: Floats) -> Floats:
    """How likely so many averages of ``above`` are over zero by chance.

    Their number is the sum of the ranks of those over zero, by distance from it (Tukey 1949). Of
    two as far from it on either side the lower has the higher rank: their average is not over zero.
    """
    order = np.lexsort((above <= 0, np.abs(above)), axis=-1)
    held = np.take_along_axis(above > 0, order, axis=-1)
    rounds = above.shape[-1]
    found: Floats = signed_upper_tail(rounds)[(held * np.arange(1, rounds + 1)).sum(axis=-1)]
    return found


@lru_cache(maxsize=4096)
def signed_critical(rounds: int, level: float) -> int | None:
    """The fewest averages above that are significant at ``level``; None if no number is."""
    enough = np.flatnonzero(signed_upper_tail(rounds) <= level)
    return int(enough[0]) if enough.size else None


@lru_cache(maxsize=1024)
def signed_upper_tail(rounds: int) -> Floats:
    """Probability of at least 0, 1, 2, … averages above zero, if the sides are alike.

    Each rank is in their sum or not with equal chance (Wilcoxon 1945).
    """
    chances = np.ones(1)
    for rank in range(1, rounds + 1):
        longer = np.zeros(chances.size + rank)
        longer[: chances.size] += chances / 2
        longer[rank:] += chances / 2
        chances = longer
    return np.minimum(np.cumsum(chances[::-1])[::-1], 1.0)
