"""The rank test of two sides that were measured in turns: Wilcoxon's, of one difference a round.

In a round one process of each side takes its samples in turn with the other's, so that whatever the
machine does meets both; what remains of a round is one difference. Where the code is the same,
either side of a round may as well have been the other: the differences are spread alike to both
sides of zero, whatever their distribution is. Heavy tails, single disturbed processes, processes
in two states and a machine that drifts cannot make it wrong. What stays with one side for many
rounds can: its environment, or a state that outlasts its processes.

All arrays have the rounds on their last axis and any axes before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from dlprof.compare.ranks import Floats


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
        needed = critical(self.rounds, level)
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
    found: Floats = upper_tail(rounds)[(held * np.arange(1, rounds + 1)).sum(axis=-1)]
    return found


@lru_cache(maxsize=4096)
def critical(rounds: int, level: float) -> int | None:
    """The fewest averages above that are significant at ``level``; None if no number is."""
    enough = np.flatnonzero(upper_tail(rounds) <= level)
    return int(enough[0]) if enough.size else None


@lru_cache(maxsize=1024)
def upper_tail(rounds: int) -> Floats:
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
