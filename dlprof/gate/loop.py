"""When to measure another round, and when it is enough.

After the first block of rounds the looks are chosen that fit into the budget; they are never
changed after that, since looks that depend on what was found would cost the error rate.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from dlprof.compare.sequential import BLOCK, Course, Plan, begin
from dlprof.compare.times import Work
from dlprof.compare.turns import after

DECIDED = "every case is decided"
LAST = "the last look is taken"
NO_TIME = "there was no time for another look"
BUDGET = "the time is used up"
SETTLED = "more rounds would not decide what is left"
STOPPED = "it was stopped"


class Turns(Protocol):
    """What is measured; the numbers of the cases are those of the suite."""

    def measure(self, round_: int, cases: frozenset[int]) -> None:
        """One round of these cases, of both sides; the first round is of all."""

    def works(self) -> Sequence[Work]:
        """The suite with all rounds so far."""

    def settled(self) -> frozenset[int]:
        """Cases that no further round would tell more of: refused, crashed."""


@dataclass(frozen=True)
class Deadline:
    """Until when rounds may begin; ``at_s`` None is for ever. ``clock`` is in seconds."""

    at_s: float | None = None
    clock: Callable[[], float] = time.monotonic

    @classmethod
    def after(cls, budget_s: float | None, clock: Callable[[], float] = time.monotonic) -> Deadline:
        return cls(None if budget_s is None else clock() + budget_s, clock)

    @property
    def passed(self) -> bool:
        return self.at_s is not None and self.clock() >= self.at_s

    def fits(self, round_s: float) -> float:
        """How many rounds of ``round_s`` seconds are left."""
        if self.at_s is None or round_s <= 0:
            return float("inf")
        return max(self.at_s - self.clock(), 0.0) / round_s


@dataclass(frozen=True)
class Ran:
    """How far it came: the words, rounds a side, and why it stopped."""

    course: Course
    rounds: int
    stopped: str

    @property
    def interrupted(self) -> bool:
        return self.stopped == STOPPED


def nothing_flagged() -> bool:
    return False


@dataclass(frozen=True)
class Reserve:
    """Time that is kept back from ``at`` on, where something is ``flagged`` by then."""

    at: Deadline
    flagged: Callable[[], bool] = nothing_flagged


def run(
    turns: Turns,
    cases: int,
    deadline: Deadline,
    plan: Plan | None = None,
    reserve: Reserve | None = None,
) -> Ran:
    """Measure until every case is decided, no look is left, or the time is used up.

    At least one round is measured, whatever the deadline says. Ctrl-C ends it in order. Where there
    is a ``reserve``, no round begins in its time once there is something to measure again.
    """
    loop = _Loop(turns, deadline, begin(plan or Plan(), cases), reserve or Reserve(deadline))
    try:
        stopped = loop.until_done()
    except KeyboardInterrupt:
        stopped = STOPPED
    return Ran(loop.course, loop.rounds, stopped)


@dataclass
class _Loop:
    turns: Turns
    deadline: Deadline
    course: Course
    reserve: Reserve
    rounds: int = 0
    block_begun_s: float = 0.0
    shortened: bool = False

    def until_done(self) -> str:
        """Measure; returns why it stopped."""
        self._round()
        while self.course.next_look is not None:
            if not self._worth_measuring():
                return SETTLED
            if self.course.next_is_extra and self._flagged():
                return NO_TIME
            if not self._until(self.course.next_look):
                return BUDGET
            self.course = after(self.course, self.turns.works())
        if not self.course.open.any():
            return DECIDED
        return NO_TIME if self.shortened else LAST

    def _until(self, rounds: int) -> bool:
        """Measure up to so many rounds, or fewer if they do not fit; False if time is used up."""
        while self.rounds < rounds:
            if self.deadline.passed or (self.reserve.at.passed and self._flagged()):
                return False
            self._round()
            if self.rounds == BLOCK:
                self._choose_looks()
                rounds = self.course.plan.looks[0]
        return True

    def _round(self) -> None:
        if self.rounds == 1:  # the first one also looks at what the cases are
            self.block_begun_s = self.deadline.clock()
        self.turns.measure(self.rounds, self._worth_measuring())
        self.rounds += 1

    def _flagged(self) -> bool:
        return bool(self.course.slower().any()) or self.reserve.flagged()

    def _worth_measuring(self) -> frozenset[int]:
        left = {int(place) for place in self.course.open.nonzero()[0]}
        return frozenset(left - self.turns.settled())

    def _choose_looks(self) -> None:
        """Leave out the looks that there is no time for: the level is for those that are taken."""
        round_s = (self.deadline.clock() - self.block_begun_s) / (BLOCK - 1)
        most, most_extra = (
            self.rounds + until.fits(round_s) for until in (self.reserve.at, self.deadline)
        )
        plan = self.course.plan.fitting(most, most_extra)
        self.shortened = plan.all_looks != self.course.plan.looks
        self.course = begin(plan, len(self.course.words))
