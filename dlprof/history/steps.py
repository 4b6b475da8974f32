"""Steps in a trend: at which session did the time change, and by how much?

The sample is the session: one value for each, the median of its processes' times. Processes of
one session share its machine's state (equal views, measured ten minutes apart, differ by up to 5 %
between sessions and by 1 % within), so processes of neighboring sessions are no independent
samples.

A window with many sessions on both sides is tested by their ranks (Mann and Whitney). A window with
few, and so the newest sessions, is tested by Student's test of the sessions *and* by ranks of all
their processes. The one knows that sessions differ, the other that processes run in states, and
both must agree. Which test it is does not depend on what was found.

A step is a change that surely exceeds half the floor, as in :mod:`dlprof.analysis.slower`. The
chance of any false step in a series is at most ``level``: half of it is for the ranks (see
:func:`threshold`), half for the few, by Boole's inequality over the windows. Found steps cut the
series in two (binary segmentation), and each part has its share of the level. Looking again with
every new session is not controlled: docs/history.md has the simulated rate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dlprof.analysis.rank_tests import (
    Floats,
    Test,
    mann_whitney,
    mann_whitney_chances,
    reaches,
    student,
)
from dlprof.analysis.slower import FAMILY_LEVEL, MARGIN, SAME_LEVEL

SESSION_SD = 0.02
"""What sessions of equal code are taken to differ by, at least: equal views, ten minutes apart,
differed by up to 4.8 %, two standard deviations of a difference."""

SIDES = (5, 10, 20, 40)
"""Sessions on a side; the longest is enough for any level that is asked for here."""

LEAST = 3
"""Sessions on a side: one that is slow, or two in a row, may be the machine's."""

HALVINGS = 40

Trend = Sequence[Sequence[float]]
"""For each session, in order, the logarithms of its processes' times; none is empty."""

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Step:
    """At session ``at``, the first of the new level. ``ratio`` is new over old time.

    ``interval`` is its 95 % interval; ``before`` and ``behind`` count the sessions it rests on.
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
    series = _Stretch(trend, values, MARGIN * floor)
    cuts = sorted(_cuts(series, level, len(trend)))
    edges = [0, *cuts, len(trend)]
    return tuple(
        _step(values, before, at, after)
        for before, at, after in zip(edges, cuts, edges[2:], strict=False)
    )


@dataclass(frozen=True, eq=False)
class _Stretch:
    """A part of a series, with the median of each session; ``margin`` must be exceeded."""

    trend: Trend
    values: Floats
    margin: float
    begins: int = 0

    def part(self, start: int, end: int) -> _Stretch:
        inside = slice(start, end)
        return _Stretch(self.trend[inside], self.values[inside], self.margin, self.begins + start)


_Window = tuple[float, int, int]
"""How likely a window is by chance, where it begins, and where it ends."""


def _cuts(stretch: _Stretch, level: float, whole: int) -> Iterator[int]:
    """Where a stretch of a series of ``whole`` sessions is to be cut."""
    count = len(stretch.values)
    found = min([*_by_ranks(stretch, level / 2), *_by_few(stretch, level / 2)], default=None)
    if found is None:
        return
    at = _best_boundary(stretch.values, found)
    yield stretch.begins + at
    for start, end in ((0, at), (at, count)):
        yield from _cuts(stretch.part(start, end), level * (end - start) / whole, whole)


def _best_boundary(values: Floats, window: _Window) -> int:
    """The boundary that leaves the least on both sides: several may be significant."""
    _, start, end = window
    places = range(max(start, LEAST), min(end, len(values) - LEAST) + 1)

    def left(side: Floats) -> float:
        return float(np.abs(side - np.median(side)).sum()) if side.size else 0.0

    return min(places, key=lambda at: left(values[start:at]) + left(values[at:end]))


def _by_ranks(stretch: _Stretch, level: float) -> Iterator[_Window]:
    """The surest windows, up and down, by the ranks of their sessions."""
    count = len(stretch.values)
    limit = threshold(count, level)
    if limit == 0.0:
        return
    windows = _windows(count)
    differences = stretch.values[None, :] - stretch.values[:, None]
    for differ in (differences > stretch.margin, differences < -stretch.margin):
        chances = windows.chance(windows.count(differ))
        best = int(np.argmin(chances))
        if chances[best] <= limit:
            at = int(windows.at[best])
            start, end = at - int(windows.before[best]), at + int(windows.behind[best])
            yield float(chances[best]), start, end


def _by_few(stretch: _Stretch, level: float) -> Iterator[_Window]:
    """The same for windows with too few sessions on a side for their ranks to say anything."""
    count, longest = len(stretch.values), SIDES[-1]
    limit = threshold(count, level)
    every = [
        (at, max(0, at - longest), min(count, at + longest))
        for at in range(LEAST, count - LEAST + 1)
    ]
    few = [one for one in every if not reaches(one[0] - one[1], one[2] - one[0], limit)]
    for at, start, end in few:
        chance = _chance_of_few(stretch, at, start, end, level / (2 * len(few)))
        if chance is not None:
            yield chance, start, end


def _chance_of_few(stretch: _Stretch, at: int, start: int, end: int, limit: float) -> float | None:
    """The chance by which both tests reject; None if one of them does not."""
    sessions = student(stretch.values[start:at], stretch.values[at:end], SESSION_SD)

    def chance_of(test: Test) -> float:
        up = sessions.location > 0
        return test.p_above(stretch.margin) if up else test.p_below(-stretch.margin)

    chance = chance_of(sessions)
    if chance > limit:
        return None
    before, behind = (
        [log for logs in side for log in logs]
        for side in (stretch.trend[start:at], stretch.trend[at:end])
    )
    other = chance_of(mann_whitney(before, behind))
    return max(chance, other) if other <= limit else None


def _step(values: Floats, start: int, at: int, end: int) -> Step:
    """The size of a step: between the levels on both of its sides."""
    before, behind = values[start:at], values[at:end]
    test = mann_whitney(before, behind)
    low, high = test.interval(SAME_LEVEL)
    if math.isinf(high):
        low, high = student(before, behind, SESSION_SD).interval(SAME_LEVEL)
    ratio, ends = math.exp(test.location), (math.exp(low), math.exp(high))
    return Step(at, ratio, ends, len(before), len(behind))


@dataclass(frozen=True, eq=False)
class _Windows:
    """All windows of so many sessions: those ``before`` the boundary ``at``, those ``behind`` it.

    ``chances`` holds, from ``offset`` on, the chance of at least 0, 1, 2, … pairs of sessions that
    differ in one direction if there is no step.
    """

    at: Integers
    before: Integers
    behind: Integers
    offset: Integers
    chances: Floats

    def count(self, differ: NDArray[np.bool_]) -> Integers:
        """In each window, the pairs of a session before and one behind that ``differ``."""
        sums = np.zeros((len(differ) + 1, len(differ) + 1), dtype=np.int64)
        sums[1:, 1:] = np.cumsum(np.cumsum(differ, axis=0), axis=1)
        at, first, last = self.at, self.at - self.before, self.at + self.behind
        found: Integers = sums[at, last] - sums[first, last] - sums[at, at] + sums[first, at]
        return found

    def chance(self, counts: Integers) -> Floats:
        """How likely so many pairs are, for each window."""
        found: Floats = self.chances[self.offset + counts]
        return found


@lru_cache(maxsize=256)
def _windows(count: int) -> _Windows:
    """The windows of ``count`` sessions; none for fewer than two sides of :data:`LEAST`."""
    found = [
        (at, one, other)
        for at in range(LEAST, count - LEAST + 1)
        for one, other in product(_lengths(at), _lengths(count - at))
    ]
    # The chance is the same whichever side is the longer one.
    sizes = [(min(one, other), max(one, other)) for _, one, other in found]
    tables: dict[tuple[int, int], int] = {}
    parts: list[Floats] = [np.zeros(0)]
    for size in sizes:
        if size not in tables:
            tables[size] = sum(part.size for part in parts)
            parts.append(mann_whitney_chances(*size))
    at, before, behind = np.array(found, dtype=np.int64).reshape(-1, 3).T
    offset = np.array([tables[size] for size in sizes], dtype=np.int64)
    return _Windows(at, before, behind, offset, np.concatenate(parts))


def _lengths(available: int) -> list[int]:
    return sorted({min(side, available) for side in SIDES})


@lru_cache(maxsize=1024)
def threshold(count: int, level: float) -> float:
    """The chance at which a window of ``count`` sessions is a step; 0 if none can be.

    By Boole's inequality the chance of any false step is at most the sum over all windows and both
    directions, whatever they have in common. The chances are discrete, so the sum counts what a
    window can really show: one that cannot be significant costs nothing (Tarone, 1990).
    """
    windows = _windows(count)
    if not windows.at.size:
        return 0.0
    least = float(windows.chance(windows.before * windows.behind).min())
    if _spent(windows, least) > level:
        return 0.0
    low, high = least, level
    for _ in range(HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if _spent(windows, middle) <= level else (low, middle)
    return low


def _spent(windows: _Windows, chance: float) -> float:
    """The chance of a false step if each window has ``chance`` to say so."""
    total = 0.0
    pairs = windows.before * windows.behind
    for offset, number in zip(*np.unique(windows.offset, return_counts=True), strict=True):
        place = int(np.flatnonzero(windows.offset == offset)[0])
        table = windows.chances[offset : offset + int(pairs[place]) + 1]
        reached = table[table <= chance]
        total += 2.0 * float(number) * (float(reached[0]) if reached.size else 0.0)
    return total
