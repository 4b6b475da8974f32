"""The rank test of the processes of two sides, in blocks if need be: Mann, Whitney, van Elteren.

Within a block every process of HEAD is compared with every process of BASE. Where the code is the
same, each order of the processes of a block is as likely as any other, whatever their distribution
is: heavy tails, single disturbed processes and processes in two states cannot make it wrong. A
drift from block to block cannot either, since nothing is compared between blocks. Two finished
sessions are one block; for rounds measured in turns see :mod:`dlprof.compare.signed`.

All arrays have the processes on their last axis and any axes before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

Floats = NDArray[np.float64]

Sizes = tuple[tuple[int, int], ...]
"""Processes of BASE and of HEAD in each block."""

EXACT_PAIRS = 3600
"""Of more pairs in one block, 60 processes a side, the chances are approximated."""


@dataclass(frozen=True, eq=False)
class Ranks:
    """``differences``: of each pair of processes in one block, HEAD - BASE, in logarithms."""

    differences: Floats
    sizes: Sizes

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
        needed = critical(self.sizes, level)
        if needed is None:
            infinite = np.full(self.differences.shape[:-1], np.inf)
            return -infinite, infinite
        return self.ordered[..., -needed], self.ordered[..., needed - 1]

    def _tail(self, held: NDArray[np.bool_]) -> Floats:
        found: Floats = upper_tail(self.sizes)[held.sum(axis=-1)]
        return found


def ranks(base: Sequence[Floats], head: Sequence[Floats]) -> Ranks:
    """The test of blocks of logarithms; raises ValueError for a side without any process."""
    blocks = [(b, h) for b, h in zip(base, head, strict=True) if b.shape[-1] and h.shape[-1]]
    if not blocks:
        raise ValueError("no block has processes of both sides")
    parts = [(h[..., :, None] - b[..., None, :]).reshape(*b.shape[:-1], -1) for b, h in blocks]
    sizes = tuple((b.shape[-1], h.shape[-1]) for b, h in blocks)
    return Ranks(np.concatenate(parts, axis=-1), sizes)


def reaches(sizes: Sizes, level: float) -> bool:
    """Whether so many processes can be significant at ``level`` at all."""
    return critical(sizes, level) is not None


@lru_cache(maxsize=4096)
def critical(sizes: Sizes, level: float) -> int | None:
    """The fewest pairs that must be above for significance at ``level``; None if no number is."""
    enough = np.flatnonzero(upper_tail(sizes) <= level)
    return int(enough[0]) if enough.size else None


@lru_cache(maxsize=1024)
def upper_tail(sizes: Sizes) -> Floats:
    """Probability of at least 0, 1, 2, … pairs with HEAD above BASE, if the sides are alike."""
    chances = np.ones(1)
    for base, head in sizes:
        block = _one_block if base * head <= EXACT_PAIRS else _normal_block
        chances = np.convolve(chances, block(base, head))
    return np.minimum(np.cumsum(chances[::-1])[::-1], 1.0)


@lru_cache(maxsize=1024)
def _one_block(base: int, head: int) -> Floats:
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


def _normal_block(base: int, head: int) -> Floats:
    """The same for many processes, where the number of pairs is all but normally distributed.

    Far out the chance is too large, down to one in 10^30: that is the careful side.
    """
    pairs = base * head
    spread = np.sqrt(pairs * (base + head + 1) / 12)
    edges = (np.arange(-0.5, pairs + 1) - pairs / 2) / spread
    found: Floats = np.diff(ndtr(edges))
    return found
