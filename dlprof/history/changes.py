"""Steps in a trend: at which session did the time change, and by how much?

The sample is the session: one value for each, the median of its processes' times. Processes of
one session share its machine's state (equal views, measured ten minutes apart, differ by up to 5 %
between sessions and by 1 % within), so processes of neighboring sessions are no independent
samples.

A window with many sessions on both sides is tested by their ranks (Mann and Whitney). A window with
few, and so the newest sessions, is tested by Student's test of the sessions *and* by ranks of all
their processes. The one knows that sessions differ, the other that processes run in states, and
both must agree. Which test it is does not depend on what was found.

A step is a change that surely exceeds half the floor, as in :mod:`dlprof.judge.slower`. The
chance of any false step in a series is at most ``level``: half of it is for the ranks (see
:func:`threshold`), half for the few, by Boole's inequality over the windows. Found steps cut the
series in two (binary segmentation), and each part has its share of the level. Looking again with
every new session is not controlled: docs/history.md has the simulated rate.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dlprof.judge.rank_tests import (
    Floats,
    Test,
    mann_whitney,
    mann_whitney_chances,
    reaches,
    student,
)
from dlprof.judge.slower import FAMILY_LEVEL, MARGIN, SAME_LEVEL

SESSION_SD = 0.02
"""What sessions of equal code are taken to differ by, at least: equal views, ten minutes apart,
differed by up to 4.8 %, two standard deviations of a difference."""

SIDES = (5, 10, 20, 40)
"""Sessions on a side; the longest is enough for any level that is asked for here."""

LEAST = 3
"""Sessions on a side: one that is slow, or two in a row, may be the machine's."""

Trend = Sequence[Sequence[float]]
"""For each session, in order, the logarithms of its processes' times; none is empty."""


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
    cuts = sorted(_cuts(trend, values, MARGIN * floor, level, len(trend)))
    edges = [0, *cuts, len(trend)]
    return tuple(
        _step(values, before, at, after)
        for before, at, after in zip(edges, cuts, edges[2:], strict=False)
    )


_Found = tuple[float, int, int]
"""How likely a window is by chance, where it begins, and where it ends."""


def _cuts(trend: Trend, values: Floats, margin: float, level: float, whole: int) -> Iterator[int]:
    """Where a part of a series of ``whole`` sessions is to be cut. ``values`` are the medians of
    its sessions. Each part has its share of the level.
    """
    limit = threshold(len(values), level / 2)
    windows = [*_by_ranks(values, margin, limit), *_by_few(trend, values, margin, limit, level / 2)]
    if not windows:
        return
    _, start, end = min(windows)
    at = _best_boundary(values, start, end)
    yield at
    for begin, stop in ((0, at), (at, len(values))):
        share = level * (stop - begin) / whole
        part = _cuts(trend[begin:stop], values[begin:stop], margin, share, whole)
        yield from (begin + cut for cut in part)


def _best_boundary(values: Floats, start: int, end: int) -> int:
    """The boundary that leaves the least on both sides: several may be significant."""
    places = range(max(start, LEAST), min(end, len(values) - LEAST) + 1)

    def left(side: Floats) -> float:
        return float(np.abs(side - np.median(side)).sum()) if side.size else 0.0

    return min(places, key=lambda at: left(values[start:at]) + left(values[at:end]))


def _by_ranks(values: Floats, margin: float, limit: float) -> Iterator[_Found]:
    """The surest windows, up and down, by the ranks of their sessions."""
    if limit == 0.0:
        return
    at, first, last, tables, offsets = _windows(len(values))
    differences = values[None, :] - values[:, None]
    for differ in (differences > margin, differences < -margin):
        sums = np.zeros((len(values) + 1, len(values) + 1), dtype=np.int64)
        sums[1:, 1:] = np.cumsum(np.cumsum(differ, axis=0), axis=1)
        # In each window, the pairs of a session before and one behind that differ.
        pairs = sums[at, last] - sums[first, last] - sums[at, at] + sums[first, at]
        chances = tables[offsets + pairs]
        best = int(np.argmin(chances))
        if chances[best] <= limit:
            yield float(chances[best]), int(first[best]), int(last[best])


def _by_few(
    trend: Trend, values: Floats, margin: float, limit: float, level: float
) -> Iterator[_Found]:
    """The same for windows with too few sessions on a side for their ranks to say anything: both
    tests must reject.
    """
    count, longest = len(values), SIDES[-1]
    every = [
        (at, max(0, at - longest), min(count, at + longest))
        for at in range(LEAST, count - LEAST + 1)
    ]
    few = [one for one in every if not reaches(one[0] - one[1], one[2] - one[0], limit)]
    for at, start, end in few:
        sessions = student(values[start:at], values[at:end], SESSION_SD)
        up, share = sessions.location > 0, level / (2 * len(few))
        chance = _chance(sessions, margin, up)
        if chance <= share:
            before, behind = (
                [log for logs in side for log in logs] for side in (trend[start:at], trend[at:end])
            )
            other = _chance(mann_whitney(before, behind), margin, up)
            if other <= share:
                yield max(chance, other), start, end


def _chance(test: Test, margin: float, up: bool) -> float:
    return test.p_above(margin) if up else test.p_below(-margin)


def _step(values: Floats, start: int, at: int, end: int) -> Step:
    """The size of a step: between the levels on both of its sides."""
    before, behind = values[start:at], values[at:end]
    test = mann_whitney(before, behind)
    low, high = test.interval(SAME_LEVEL)
    if math.isinf(high):
        low, high = student(before, behind, SESSION_SD).interval(SAME_LEVEL)
    ratio, ends = math.exp(test.location), (math.exp(low), math.exp(high))
    return Step(at, ratio, ends, len(before), len(behind))


_Integers = NDArray[np.int64]


@lru_cache(maxsize=256)
def _windows(count: int) -> tuple[_Integers, _Integers, _Integers, Floats, _Integers]:
    """All windows of ``count`` sessions: their boundary, begin and end. The chance of at least so
    many pairs that differ is at the window's offset plus that number, in one long table.
    """
    found = [
        (at, at - one, at + other)
        for at in range(LEAST, count - LEAST + 1)
        for one, other in product(_lengths(at), _lengths(count - at))
    ]
    at, first, last = np.array(found, dtype=np.int64).reshape(-1, 3).T
    tables: list[Floats] = [np.zeros(0)]
    offsets: dict[tuple[int, int], int] = {}
    for size in _sizes(count):
        if size not in offsets:
            offsets[size] = sum(table.size for table in tables)
            tables.append(mann_whitney_chances(*size))
    places = np.array([offsets[size] for size in _sizes(count)], dtype=np.int64)
    return at, first, last, np.concatenate(tables), places


def _sizes(count: int) -> list[tuple[int, int]]:
    """How many sessions the windows have on their sides; the chance is the same whichever side is
    the longer one.
    """
    return [
        (min(one, other), max(one, other))
        for at in range(LEAST, count - LEAST + 1)
        for one, other in product(_lengths(at), _lengths(count - at))
    ]


def _lengths(available: int) -> list[int]:
    return sorted({min(side, available) for side in SIDES})


@lru_cache(maxsize=1024)
def threshold(count: int, level: float) -> float:
    """The chance at which a window of ``count`` sessions is a step; 0 if none can be.

    By Boole's inequality the chance of any false step is at most the sum over all windows and both
    directions, whatever they have in common. The chances are discrete, so the sum counts what a
    window can really show: one that cannot be significant costs nothing (Tarone, 1990).
    """
    tables = [
        (np.sort(mann_whitney_chances(*size)), number)
        for size, number in Counter(_sizes(count)).items()
    ]
    if not tables:
        return 0.0
    chances = np.concatenate([table for table, _ in tables])
    growth = np.concatenate(
        [2.0 * number * np.diff(table, prepend=0.0) for table, number in tables]
    )
    order = np.argsort(chances)
    beyond = chances[order][np.cumsum(growth[order]) > level]
    return float(chances[chances < beyond[0]].max(initial=0.0))
