"""Where a step may stand in so many sessions, and how many pairs must differ to prove one there.

A window is a boundary with some sessions before it and some behind it. Besides all there are (up to
40 on a side), shorter sides are looked at: a change that was taken back after a week does not show
where the weeks behind it are counted in.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dlprof.compare.ranks import Floats, upper_tail

SIDES = (5, 10, 20, 40)
"""Sessions on a side; the longest is enough for any level that is asked for here."""

LEAST = 3
"""Sessions on a side: one that is slow, or two in a row, may be the machine's."""

HALVINGS = 40

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Windows:
    """All windows of so many sessions: those ``before`` the boundary ``at``, those ``behind`` it.

    ``chances`` holds, from ``offset`` on, the chance of at least 0, 1, 2, … pairs of sessions that
    differ in one direction, if there is no step: Mann and Whitney's, exact for any distribution.
    """

    at: Integers
    before: Integers
    behind: Integers
    offset: Integers
    chances: Floats

    def chance(self, counts: Integers) -> Floats:
        """How likely so many pairs are, for each window."""
        found: Floats = self.chances[self.offset + counts]
        return found

    @property
    def pairs(self) -> Integers:
        return self.before * self.behind

    @property
    def least(self) -> Floats:
        """The smallest chance that each window can show."""
        return self.chance(self.pairs)


@lru_cache(maxsize=256)
def windows(count: int) -> Windows:
    """The windows of ``count`` sessions; none for fewer than two sides of :data:`LEAST`."""
    found = [
        (at, one, other)
        for at in range(LEAST, count - LEAST + 1)
        for one, other in product(_lengths(at), _lengths(count - at))
    ]
    tables: dict[tuple[int, int], int] = {}
    parts: list[Floats] = [np.zeros(0)]
    for _, one, other in found:
        # The chance is the same whichever side is the longer one.
        size = min(one, other), max(one, other)
        if size not in tables:
            tables[size] = sum(part.size for part in parts)
            parts.append(upper_tail(size))
    at, before, behind = np.array(found, dtype=np.int64).reshape(-1, 3).T
    offsets = [tables[min(one, other), max(one, other)] for _, one, other in found]
    offset = np.array(offsets, dtype=np.int64)
    return Windows(at, before, behind, offset, np.concatenate(parts))


def _lengths(available: int) -> tuple[int, ...]:
    return tuple(sorted({min(side, available) for side in SIDES}))


@lru_cache(maxsize=1024)
def threshold(count: int, level: float) -> float:
    """The chance at which a window of ``count`` sessions is a step.

    By Boole's inequality the chance of any false step is at most the sum over all windows and both
    directions, whatever they have in common. The chances are discrete, so the sum counts what a
    window can really show: one that cannot be significant costs nothing (Tarone, 1990).
    """
    found = windows(count)
    if not found.at.size or not _spent(found, float(found.least.min())) <= level:
        return 0.0
    low, high = float(found.least.min()), level
    for _ in range(HALVINGS):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if _spent(found, middle) <= level else (low, middle)
    return low


def _spent(found: Windows, chance: float) -> float:
    """The chance of a false step if each window has ``chance`` to say so."""
    total = 0.0
    for offset, number in zip(*np.unique(found.offset, return_counts=True), strict=True):
        place = int(np.flatnonzero(found.offset == offset)[0])
        table = found.chances[offset : offset + int(found.pairs[place]) + 1]
        reached = table[table <= chance]
        total += 2.0 * float(number) * (float(reached[0]) if reached.size else 0.0)
    return total
