"""When to measure another round, and when it is enough.

A case is measured until it is decided, or given up: see :func:`dlprof.compare.looks.futile`. If
time runs out between two looks, the later one is taken of the rounds that there are, with its own
share of the level.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from dlprof.compare.looks import Course, begin, earliest, futile, look
from dlprof.compare.times import SLOWER, WIDE_LIMIT, Sample

DECIDED = "every case is decided"
LAST = "the last look is taken"
BUDGET = "the time is used up"
SETTLED = "more rounds would not decide what is left"
STOPPED = "it was stopped"

WHOLE = 0.98
"""Of the budget, for all rounds: the rest is for files and reports."""
FIRST = 0.75
"""Of the budget, for the first pass if a case is slower. In 15 of 16 gates with two views that were
slower the second pass had decided both after 8 rounds."""
HALF = 0.46
"""Of the budget, so that all is over by half of it: a case that does not look slower by then is
left."""


class Suite(Protocol):
    """What is measured. Cases are numbers, which stand for a measure of a conversion."""

    def measure(self, round_: int, cases: frozenset[int]) -> None:
        """One round of these cases on both sides; the first round is of all."""

    def samples(self) -> Sequence[Sample]:
        """All cases with all rounds so far."""

    def settled(self) -> frozenset[int]:
        """Cases that no further round would tell more of: refused, crashed."""


@dataclass(frozen=True)
class Budget:
    """The time for all rounds, in s, from ``begun`` on; None is no limit.

    A ``patient`` budget, which the user did not name, lasts until a time can be called slower.
    """

    seconds: float | None
    begun: float
    clock: Callable[[], float] = time.monotonic
    patient: bool = False

    def is_over(self, share: float, within_s: float = 0.0) -> bool:
        """Whether so much of it will be used up in so many seconds."""
        if self.seconds is None:
            return False
        return self.clock() + within_s >= self.begun + share * self.seconds

    @property
    def left_s(self) -> float | None:
        """What is left of it, never less than nothing."""
        if self.seconds is None:
            return None
        return max(self.begun + self.seconds - self.clock(), 0.0)

    def later(self, by_s: float) -> Budget:
        """Return the budget, begun so much later."""
        return replace(self, begun=self.begun + by_s)


@dataclass
class Ran:
    """How far a pass came: its words, rounds a side, and why it stopped."""

    course: Course
    rounds: int = 0
    looked: int = 0
    """The rounds of the last look; 0 for none."""
    round_s: float = 0.0
    stopped: str = ""
    late: bool = False
    given_up: frozenset[int] = frozenset()

    @property
    def interrupted(self) -> bool:
        return self.stopped == STOPPED


def run(
    suite: Suite, cases: int, budget: Budget, first: bool = True, wide_limit: float = WIDE_LIMIT
) -> Ran:
    """Measure until every case is decided or given up, no look is left, or the time is used up.

    At least one round is measured. No later round begins that would end beyond the budget if it
    took as long as the one before. The ``first`` pass leaves time for a second one. Ctrl-C ends it
    in order.
    """
    ran = Ran(begin(cases))
    try:
        _round(ran, suite, budget)
        while not ran.stopped:
            ran.stopped = _reason_to_stop(ran, suite, budget, first)
            if not ran.stopped:
                _round(ran, suite, budget)
                if ran.rounds == ran.course.next_look:
                    _look(ran, suite)
                    ran.given_up |= futile(ran.course, suite.samples(), ran.late, wide_limit)
        if ran.stopped == BUDGET and 0 < ran.looked < ran.rounds:
            _look(ran, suite)
    except KeyboardInterrupt:
        ran.stopped = STOPPED
    if not ran.course.open and cases and ran.stopped != STOPPED:
        ran.stopped = DECIDED
    return ran


def _reason_to_stop(ran: Ran, suite: Suite, budget: Budget, first: bool) -> str:
    """Return why no other round begins; empty if one does."""
    if ran.course.open and ran.course.next_look is None:
        return LAST
    # Without a look nothing is known of what would be given up.
    if not ran.late and ran.looked and budget.is_over(HALF, ran.round_s):
        ran.late = True
        ran.given_up |= futile(ran.course, suite.samples(), late=True)
    if not _left(ran, suite):
        return SETTLED if ran.course.open - suite.settled() else DECIDED
    if budget.patient and ran.rounds < (earliest(len(ran.course.words)) or 0):
        return ""
    # The first round also looks at what each conversion is: its time says nothing of the next.
    if budget.is_over(WHOLE, ran.round_s if ran.rounds > 1 else 0.0):
        return BUDGET
    is_kept_back = first and SLOWER in ran.course.words
    return BUDGET if is_kept_back and budget.is_over(FIRST) else ""


def _left(ran: Ran, suite: Suite) -> frozenset[int]:
    return ran.course.open - suite.settled() - ran.given_up


def _round(ran: Ran, suite: Suite, budget: Budget) -> None:
    begun = budget.clock()
    suite.measure(ran.rounds, _left(ran, suite))
    ran.rounds += 1
    ran.round_s = budget.clock() - begun


def _look(ran: Ran, suite: Suite) -> None:
    ran.course = look(ran.course, suite.samples())
    ran.looked = ran.rounds
