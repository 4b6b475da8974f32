"""What more rounds could still tell of the cases that are open.

To stop measuring a case makes no error likelier: its word stays UNSURE. So it may depend on what
was found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dlprof.compare.decision import SAME_LEVEL
from dlprof.compare.ranks import Floats
from dlprof.compare.sequential import Course
from dlprof.compare.statistic import Refusal, Tested, tested
from dlprof.compare.times import Work

LEANING = 0.05
"""A case leans to slower if so large a HEAD is as unlikely as this from equal code."""

LEAST_ROUNDS = 16
"""The interval of fewer is as wide as one process in a state that others were not in."""

WIDER = math.sqrt(2.0)
"""So many times wider an interval may be by chance. Without it a slowdown of 10 % was given up in 1
of 1,000 gates with one process in twenty disturbed."""


@dataclass(frozen=True)
class Outlook:
    """Numbers of open cases: those that lean to slower, and those that all looks would decide."""

    leaning: frozenset[int]
    decidable: frozenset[int]


def outlook(course: Course, works: Sequence[Work]) -> Outlook:
    """``works`` is the whole suite, as in :func:`dlprof.compare.turns.after`."""
    level = course.plan.level / max(len(works), 1)
    places = [int(place) for place in course.open.nonzero()[0]]
    tests = {place: tested(works[place].sample, level) for place in places}
    leaning = {place for place, test in tests.items() if _leans(test)}
    most = course.plan.looks[-1]
    decidable = {place for place, test in tests.items() if _rounds(test, works[place]) <= most}
    return Outlook(frozenset(leaning), frozenset(decidable))


def _leans(test: Tested | Refusal) -> bool:
    return isinstance(test, Tested) and float(test.test.p_above(0.0)) <= LEANING


def _rounds(test: Tested | Refusal, work: Work) -> float:
    """About how many rounds would tell SAME: the interval narrows with their square root.

    A finished BASE grows no more, so that of it this is the least.
    """
    if len(work.sample.head) < LEAST_ROUNDS:
        return 0.0
    if isinstance(test, Refusal):
        return float("inf")
    if not test.whole:
        return float("inf")  # what one mode says is not all there is to say
    low, high = (float(end) for end in test.test.interval(SAME_LEVEL))
    return float(rounds_for(len(test.head), np.asarray(high - low), work.step))


def rounds_for(rounds: int, width: Floats, step: float) -> Floats:
    """How many would narrow an interval of ``width`` after ``rounds`` to the floor either side.

    At least: a few processes in another state make the first intervals wider than they stay.
    """
    return np.asarray(rounds * (width / (2 * step)) ** 2 / WIDER**2)
