"""Steps in a trend: at which session did the time change, and by how much?

The sample is the session: one value for each, the median of its processes' times. Processes of
one session share its machine's state (equal views, measured ten minutes apart, differ by up to 5 %
between sessions and by 1 % within), so that processes of neighbouring sessions are no independent
samples.

Where there are sessions enough, a window is tested by ranks: if there is no step, every order of
the sessions is as likely as any other, whatever their distribution is. Where there are few, and
for the newest, by Student's test of the sessions (with the floor under the spread that sessions are
known to have) *and* by ranks of all their processes: the one knows that sessions differ, the other
that processes run in states, and both must agree. Which of them does not depend on what was found.

A step is a change that surely exceeds half the floor, as in :mod:`dlprof.compare.decision`. The
chance of any false step in a history of a series is at most ``level``: half of it is for the ranks
(see :func:`dlprof.history.steps.threshold`), half for the few, by Boole's inequality over the
windows. Found steps cut the series in two (binary segmentation), and each part has its share of the
level. What is not controlled is looking again with every new session: docs/history.md has the
simulated rate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dlprof.compare.decision import FAMILY_LEVEL, MARGIN, SAME_LEVEL
from dlprof.compare.ranks import Floats, ranks, reaches, student, upper_tail

SESSION_SD = 0.02
"""What sessions of equal code are taken to differ by, at least: equal views, ten minutes apart,
differed by up to 4.8 %, two standard deviations of a difference."""

Trend = Sequence[Floats]
"""For each session, in order, the logarithms of its processes' times; none is empty."""


@dataclass(frozen=True)
class Step:
    """At session ``at``, the first of the new level. ``ratio``: new over old time.

    ``interval`` is its 95 % interval; ``before`` and ``behind`` are the sessions that it rests on.
    """

    at: int
    ratio: float
    interval: tuple[float, float]
    before: int
    behind: int


def find_steps(trend: Trend, floor: float, level: float = FAMILY_LEVEL) -> tuple[Step, ...]:
    """The steps of one series, in order of time.

    ``floor`` is the change that matters, in logarithms; ``level`` the chance of any false step.
    """
    values = np.array([np.median(logs) for logs in trend])
    cuts = sorted(_cuts(Stretch(trend, values, MARGIN * floor), level, len(trend)))
    edges = [0, *cuts, len(trend)]
    return tuple(
        _step(values, before, at, after)
        for before, at, after in zip(edges, cuts, edges[2:], strict=False)
    )


@dataclass(frozen=True, eq=False)
class Stretch:
    """A part of a series, with the median of each session; ``margin`` must be exceeded."""

    trend: Trend
    values: Floats
    margin: float
    begins: int = 0

    def part(self, start: int, end: int) -> Stretch:
        inside = slice(start, end)
        return Stretch(self.trend[inside], self.values[inside], self.margin, self.begins + start)


def _cuts(stretch: Stretch, level: float, whole: int) -> Iterator[int]:
    """Where a stretch of a series of ``whole`` sessions is to be cut."""
    count = len(stretch.values)
    found = _surest(stretch, level)
    if found is None:
        return
    at = _placed(stretch.values, found)
    yield stretch.begins + at
    for start, end in ((0, at), (at, count)):
        yield from _cuts(stretch.part(start, end), level * (end - start) / whole, whole)


Found = tuple[float, int, int]
"""How likely a window is by chance, where it begins, and where it ends."""


def _surest(stretch: Stretch, level: float) -> Found | None:
    """The window that is surest to hold a step, if one is sure enough."""
    return min([*_by_ranks(stretch, level / 2), *_by_few(stretch, level / 2)], default=None)


def _placed(values: Floats, found: Found) -> int:
    """The boundary that leaves the least on both sides: several may be significant."""
    _, start, end = found
    first, last = max(start, LEAST), min(end, len(values) - LEAST)
    return min(
        range(first, last + 1), key=lambda at: _left(values[start:at]) + _left(values[at:end])
    )


def _left(values: Floats) -> float:
    """The sum of the distances from the median."""
    return float(np.abs(values - np.median(values)).sum()) if values.size else 0.0


def _by_ranks(stretch: Stretch, level: float) -> Iterator[Found]:
    """The surest windows, up and down, by the ranks of their sessions."""
    count = len(stretch.values)
    limit = threshold(count, level)
    if limit == 0.0:
        return
    found = windows(count)
    differences = stretch.values[None, :] - stretch.values[:, None]
    for differ in (differences > stretch.margin, differences < -stretch.margin):
        chances = found.chance(_counts(differ, found.at, found.before, found.behind))
        best = int(np.argmin(chances))
        if chances[best] <= limit:
            at = int(found.at[best])
            start, end = at - int(found.before[best]), at + int(found.behind[best])
            yield float(chances[best]), start, end


def _counts(
    differ: NDArray[np.bool_], at: Integers, before: Integers, behind: Integers
) -> Integers:
    """In each window, the pairs of a session before and one behind that ``differ``."""
    sums = np.zeros((len(differ) + 1, len(differ) + 1), dtype=np.int64)
    sums[1:, 1:] = np.cumsum(np.cumsum(differ, axis=0), axis=1)
    first, last = at - before, at + behind
    found: Integers = sums[at, last] - sums[first, last] - sums[at, at] + sums[first, at]
    return found


def _by_few(stretch: Stretch, level: float) -> Iterator[Found]:
    """The same where too few sessions stand on a side for their ranks to say anything."""
    count, longest = len(stretch.values), SIDES[-1]
    limit = threshold(count, level)
    few = [
        (at, max(0, at - longest), min(count, at + longest))
        for at in range(LEAST, count - LEAST + 1)
    ]
    few = [one for one in few if not reaches((one[0] - one[1], one[2] - one[0]), limit)]
    for at, start, end in few:
        chance = _chance_of_few(stretch, at, start, end, level / (2 * len(few)))
        if chance is not None:
            yield chance, start, end


def _chance_of_few(stretch: Stretch, at: int, start: int, end: int, limit: float) -> float | None:
    """The chance by which both tests reject; None if one of them does not."""
    tested = student(stretch.values[start:at], stretch.values[at:end], SESSION_SD)
    up = tested.location > 0
    chance = float(tested.p_above(stretch.margin) if up else tested.p_below(-stretch.margin))
    if chance > limit:
        return None
    sides = (np.concatenate(stretch.trend[start:at]), np.concatenate(stretch.trend[at:end]))
    ranked = ranks(sides[0], sides[1])
    other = float(ranked.p_above(stretch.margin) if up else ranked.p_below(-stretch.margin))
    return max(chance, other) if other <= limit else None


def _step(values: Floats, start: int, at: int, end: int) -> Step:
    """The size of a step: between the levels on both of its sides."""
    before, behind = values[start:at], values[at:end]
    test = ranks(before, behind)
    location = float(test.location)
    low, high = (float(one) for one in test.interval(SAME_LEVEL))
    if not math.isfinite(high - low):
        low, high = (float(one) for one in student(before, behind, SESSION_SD).interval(SAME_LEVEL))
    ratio, ends = math.exp(location), (math.exp(low), math.exp(high))
    return Step(at, ratio, ends, len(before), len(behind))


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
