"""The rank test of the processes of two finished sessions: Mann and Whitney's.

Every process of HEAD is compared with every process of BASE. Where the code is the same, each order
of the processes is as likely as any other, whatever their distribution is: heavy tails, single
disturbed processes and processes in two states cannot make it wrong. For rounds measured in turns
see :mod:`dlprof.compare.signed`.

All arrays have the processes on their last axis and any axes before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

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
