"""What more rounds could still tell of the cases that are open.

To stop measuring a case makes no error likelier: its word stays UNSURE. So it may depend on what
was found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dlprof.compare.decision import MARGIN, SAME_LEVEL
from dlprof.compare.ranks import Floats
from dlprof.compare.sequential import LOOKS, Course
from dlprof.compare.statistic import Refusal, Tested, tested
from dlprof.compare.times import Work

LEANING = 0.05
"""A case leans to slower if so large a HEAD is as unlikely as this from equal code."""

LIKELY, SURELY = 0.5, 0.1
"""And is worth the second half of the time if it is as unlikely as this from code that is slower by
what SLOWER must exceed: more likely slower than that than not; of what runs in states, surely. Of
equal code hardly a case is, and its gates are to be over by then: of 627 views, 11 in each of 57
gates, none was estimated to be slower by half of the floor. Views that were slower by the floor
were given up where the second was asked of them, too, with slow processes in half of 16 rounds. To
ask how unlikely equal code is would keep noisy cases that nothing decides (docs/results/gates.md).
"""

EARLY, LATE = 16.0, 2.0
ENOUGH = 16
"""A case is given up if it needed so many times the rounds that there will be: many times with few
rounds, where one process in another state is the end of the interval, and twice from ENOUGH on.
With less, and one process in twenty disturbed, a slowdown of 10 % was given up in 1 of 1,000."""


@dataclass(frozen=True)
class Outlook:
    """Numbers of open cases: those that lean to slower, those that seem to be by enough, and those
    that all looks would decide.
    """

    leaning: frozenset[int]
    enough: frozenset[int]
    decidable: frozenset[int]


def outlook(course: Course, works: Sequence[Work]) -> Outlook:
    """``works`` is the whole suite, as in :func:`dlprof.compare.turns.after`."""
    level = course.plan.level / max(len(works), 1)
    places = [int(place) for place in course.open.nonzero()[0]]
    tests = {place: tested(works[place].sample, level) for place in places}
    leaning = {place for place, test in tests.items() if _is_above(test, 0.0, LEANING)}
    enough = {place for place, test in tests.items() if _is_by_enough(test, works[place])}
    most = course.plan.looks[-1]
    decidable = {place for place, test in tests.items() if _rounds(test, works[place]) <= most}
    return Outlook(frozenset(leaning), frozenset(enough), frozenset(decidable))


def _is_above(test: Tested | Refusal, shift: float, level: float) -> bool:
    """Whether so large a HEAD is as unlikely as ``level`` from code slower by ``shift``."""
    return isinstance(test, Tested) and float(test.test.p_above(shift)) <= level


def _is_by_enough(test: Tested | Refusal, work: Work) -> bool:
    least = test.least if isinstance(test, Tested) else 0.0
    level = SURELY if work.sample.stateful else LIKELY
    return _is_above(test, max(MARGIN * work.step, least) + work.sample.open_[1], level)


def _rounds(test: Tested | Refusal, work: Work) -> float:
    """About how many rounds would tell SAME: the interval narrows with their square root.

    A finished BASE grows no more, so that of it this is the least.
    """
    rounds = len(work.sample.head)
    if rounds < LOOKS[0]:
        return 0.0
    if isinstance(test, Refusal) or not test.whole:
        # What one mode says is not all there is to say; few rounds may have few in one mode.
        return 0.0 if rounds < ENOUGH else float("inf")
    low, high = (float(end) for end in test.test.interval(SAME_LEVEL))
    down, up = work.sample.open_
    room = work.step - (up - down) / 2
    if room <= 0:  # no round makes the machine's speed better known than its references do
        return 0.0 if rounds < ENOUGH else float("inf")
    return float(rounds_for(len(test.head), np.asarray(high - low), room))


def rounds_for(rounds: int, width: Floats, step: float) -> Floats:
    """At least how many would narrow an interval of ``width`` after ``rounds`` to the floor."""
    slack = EARLY if rounds < ENOUGH else LATE
    return np.asarray(rounds * (width / (2 * step)) ** 2 / slack)
