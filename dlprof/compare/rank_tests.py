"""Tests of whether HEAD's times lie above BASE's by more than a shift, for paired rounds.

All times are natural logarithms, so a shift is a ratio. The tests hold for times of any
distribution: if the code is the same, each round is as likely to favor one side as the other.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True)
class RankTest:
    """``shifts`` are sorted, and their number above a shift is the statistic.

    ``chances`` holds the probability that at least 0, 1, 2, … of them are above 0 in equal code.
    """

    shifts: tuple[float, ...]
    chances: tuple[float, ...]

    @property
    def location(self) -> float:
        """Return the estimate of the shift (Hodges and Lehmann, 1963)."""
        return statistics.median(self.shifts)

    def p_above(self, shift: float) -> float:
        """Return the chance of so large a HEAD if it is above BASE by ``shift`` or less."""
        return self.chances[len(self.shifts) - bisect_right(self.shifts, shift)]

    def p_below(self, shift: float) -> float:
        """Return the chance of so small a HEAD if it is above BASE by ``shift`` or more."""
        return self.chances[bisect_left(self.shifts, shift)]

    def interval(self, level: float) -> tuple[float, float]:
        """Return the shifts that neither side rejects at ``level``; infinite for too few rounds."""
        enough = next((n for n, chance in enumerate(self.chances) if chance <= level), None)
        if enough is None:
            return -math.inf, math.inf
        return self.shifts[-enough], self.shifts[enough - 1]


def wilcoxon(differences: Sequence[float]) -> RankTest:
    """Return the signed-rank test of HEAD - BASE of each round.

    The sum of ranks is the number of averages of each two rounds, and of each round with itself,
    that lie above zero (Tukey, 1949).
    """
    averages = [
        (first + second) / 2
        for place, first in enumerate(differences)
        for second in differences[place:]
    ]
    return RankTest(tuple(sorted(averages)), _rank_chances(len(differences)))


def sign(differences: Sequence[float]) -> RankTest:
    """Return the sign test of HEAD - BASE of each round, which a few outliers move little."""
    return RankTest(tuple(sorted(differences)), _sign_chances(len(differences)))


@lru_cache(maxsize=128)
def _rank_chances(rounds: int) -> tuple[float, ...]:
    """Return the chance of a sum of ranks of at least 0, 1, 2, … in equal code (Wilcoxon, 1945)."""
    chances = [1.0]
    for rank in range(1, rounds + 1):  # each rank is in the sum with a chance of one half
        longer = [chance / 2 for chance in chances] + [0.0] * rank
        for total, chance in enumerate(chances):
            longer[total + rank] += chance / 2
        chances = longer
    return _upper_tail(chances)


@lru_cache(maxsize=128)
def _sign_chances(rounds: int) -> tuple[float, ...]:
    """Return the chance of at least 0, 1, 2, … rounds with HEAD above BASE in equal code."""
    return _upper_tail([math.comb(rounds, above) * 0.5**rounds for above in range(rounds + 1)])


def _upper_tail(chances: Sequence[float]) -> tuple[float, ...]:
    found, total = [], 0.0
    for chance in reversed(chances):
        total += chance
        found.append(min(total, 1.0))
    return tuple(reversed(found))


def holm(chances: Sequence[float]) -> list[float]:
    """Return corrected chances (Holm, 1979), each to be compared with the level of all."""
    order = sorted(range(len(chances)), key=chances.__getitem__)
    found, highest = [1.0] * len(chances), 0.0
    for rank, place in enumerate(order):
        highest = max(highest, min((len(chances) - rank) * chances[place], 1.0))
        found[place] = highest
    return found
