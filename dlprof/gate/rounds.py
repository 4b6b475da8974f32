"""When to measure another round, and when it is enough.

A case is measured until it is decided, or given up: see
:func:`dlprof.compare.sequential.hopeless`. If time runs out between two looks, the later one is
taken of the rounds that there are, with its own share of the level.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from dlprof.analysis.slower import SLOWER
from dlprof.compare.samples import Sample
from dlprof.compare.sequential import Course, Plan, begin, hopeless, look

DECIDED = "every case is decided"
LAST = "the last look is taken"
BUDGET = "the time is used up"
SETTLED = "more rounds would not decide what is left"
HALF = "nearly half of the time is used up, and nothing that is left open seems slower"
STOPPED = "it was stopped"


class Suite(Protocol):
    """What is measured. Cases are numbers, which stand for a measure of a conversion."""

    def measure(self, round_: int, cases: frozenset[int]) -> None:
        """One round of these cases on both sides; the first round is of all."""

    def samples(self) -> Sequence[Sample]:
        """All cases with all rounds so far."""

    def settled(self) -> frozenset[int]:
        """Cases that no further round would tell more of: refused, crashed."""


@dataclass(frozen=True)
class Deadline:
    """When rounds are to be over; ``at_s`` None is never. ``clock`` is in seconds."""

    at_s: float | None = None
    clock: Callable[[], float] = time.monotonic

    def is_within(self, seconds: float) -> bool:
        """Whether it will have passed in so many seconds."""
        return self.at_s is not None and self.clock() + seconds >= self.at_s

    def later(self, by_s: float) -> Deadline:
        return self if self.at_s is None else replace(self, at_s=self.at_s + by_s)


@dataclass(frozen=True)
class Limits:
    """``end`` is when all rounds are over.

    From ``reserve`` on, time is kept back for a second pass if something is ``flagged`` by then.
    After the first look, no round that would end beyond ``half`` is spent on a case that does not
    seem slower by enough.
    """

    end: Deadline
    reserve: Deadline = Deadline()
    half: Deadline = Deadline()
    flagged: Callable[[], bool] = lambda: False


@dataclass(frozen=True)
class Ran:
    """How far a pass came: its words, rounds a side, and why it stopped.

    ``looked`` are the rounds of the last look, 0 for none. ``last_s`` is what the last round took.
    """

    course: Course
    rounds: int
    stopped: str
    looked: int = 0
    last_s: float = 0.0

    @property
    def interrupted(self) -> bool:
        return self.stopped == STOPPED


def run(suite: Suite, cases: int, limits: Limits, plan: Plan) -> Ran:
    """Measure until every case is decided or given up, no look is left, or the time is used up.

    At least one round is measured. No later round begins that would end beyond the limit if it took
    as long as the one before. Ctrl-C ends it in order.
    """
    loop = _Loop(suite, limits, begin(plan, cases))
    try:
        stopped = loop.until_done()
    except KeyboardInterrupt:
        stopped = STOPPED
    return Ran(loop.course, loop.rounds, stopped, loop.looked, loop.round_s)


@dataclass
class _Loop:
    suite: Suite
    limits: Limits
    course: Course
    rounds: int = 0
    looked: int = 0
    given_up: frozenset[int] = frozenset()
    late: bool = False
    round_s: float = 0.0

    def until_done(self) -> str:
        """Measure; returns why it stopped."""
        self._round()
        while self.course.next_look is not None:
            while self.rounds < self.course.next_look:
                stop = self._stop()
                if stop == BUDGET and 0 < self.looked < self.rounds:
                    self._look()
                    undecided = self.course.open - self.suite.settled()
                    return BUDGET if undecided else self._ended(SETTLED)
                if stop:
                    return stop
                self._round()
            self._look()
            self._give_up()
        return self._ended(LAST)

    def _ended(self, reason: str) -> str:
        return reason if self.course.open else DECIDED

    def _left(self) -> frozenset[int]:
        return self.course.open - self.suite.settled() - self.given_up

    def _stop(self) -> str:
        """Why no other round begins; empty if one does."""
        if not self._left():
            return HALF if self.late and self.given_up else SETTLED
        # The first round also looks at what each conversion is: its time says nothing of the next.
        next_s = self.round_s if self.rounds > 1 else 0.0
        if self.limits.end.is_within(next_s):
            return BUDGET
        if self.limits.reserve.is_within(0.0) and self._is_flagged():
            return BUDGET
        # Without a look nothing is known of what would be given up.
        if not self.late and self.looked and self.limits.half.is_within(self.round_s):
            self.late = True
            self._give_up()
            if not self._left():
                return HALF
        return ""

    def _is_flagged(self) -> bool:
        return SLOWER in self.course.words or self.limits.flagged()

    def _round(self) -> None:
        begun = self.limits.end.clock()
        self.suite.measure(self.rounds, self._left())
        self.rounds += 1
        self.round_s = self.limits.end.clock() - begun

    def _look(self) -> None:
        self.course = look(self.course, self.suite.samples())
        self.looked = self.rounds

    def _give_up(self) -> None:
        self.given_up |= hopeless(self.course, self.suite.samples(), self.late)
