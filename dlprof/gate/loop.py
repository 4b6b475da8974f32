"""When to measure another round, and when it is enough.

A case is measured until it is decided, or given up: one that more rounds would not decide, and
where a round would end beyond half of the time every one that does not seem to be slower by enough.
Where the time is used up between two looks, the later one is taken of the rounds that there are,
with its own share of the level. How many rounds those are is the clock's doing, and depends on what
was found only where another case is flagged: a pass of equal code that flags any has erred already.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from dlprof.compare.outlook import outlook
from dlprof.compare.sequential import Course, Plan, begin
from dlprof.compare.times import Work
from dlprof.compare.turns import after

DECIDED = "every case is decided"
LAST = "the last look is taken"
BUDGET = "the time is used up"
SETTLED = "more rounds would not decide what is left"
HALF = "nearly half of the time is used up, and nothing that is left open seems slower"
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
    """When rounds are to be over; ``at_s`` None is never. ``clock`` is in seconds."""

    at_s: float | None = None
    clock: Callable[[], float] = time.monotonic

    @classmethod
    def after(cls, budget_s: float | None, clock: Callable[[], float] = time.monotonic) -> Deadline:
        return cls(None if budget_s is None else clock() + budget_s, clock)

    @property
    def passed(self) -> bool:
        return self.is_within(0.0)

    def is_within(self, seconds: float) -> bool:
        """Whether it will have passed in so many seconds."""
        return self.at_s is not None and self.clock() + seconds >= self.at_s

    def later(self, by_s: float) -> Deadline:
        """The same, by so much later."""
        return self if self.at_s is None else replace(self, at_s=self.at_s + by_s)


@dataclass(frozen=True)
class Ran:
    """How far it came: the words, rounds a side, and why it stopped.

    ``looked`` is the number of rounds at the last look; 0 where none was taken. ``last_s`` is what
    the last round took.
    """

    course: Course
    rounds: int
    stopped: str
    looked: int = 0
    last_s: float = 0.0

    @property
    def interrupted(self) -> bool:
        return self.stopped == STOPPED


def nothing_flagged() -> bool:
    return False


@dataclass(frozen=True)
class Reserve:
    """Time that is kept back from ``at`` on, where something is ``flagged`` by then.

    After the first look no round of other cases than those that seem to be slower by enough begins
    that would end beyond ``half``; None for never.
    """

    at: Deadline
    flagged: Callable[[], bool] = nothing_flagged
    half: Deadline | None = None


def run(
    turns: Turns,
    cases: int,
    deadline: Deadline,
    plan: Plan | None = None,
    reserve: Reserve | None = None,
) -> Ran:
    """Measure until every case is decided or given up, no look is left, or the time is used up.

    At least one round is measured, whatever the deadline says, and no later one begins that would
    end beyond it if it took as long as the one before. Ctrl-C ends it in order. Where there
    is a ``reserve``, no round begins in its time once there is something to measure again.
    """
    loop = _Loop(turns, deadline, begin(plan or Plan(), cases), reserve or Reserve(deadline))
    try:
        stopped = loop.until_done()
    except KeyboardInterrupt:
        stopped = STOPPED
    return Ran(loop.course, loop.rounds, stopped, loop.looked, loop.round_s)


@dataclass
class _Loop:
    turns: Turns
    deadline: Deadline
    course: Course
    reserve: Reserve
    rounds: int = 0
    looked: int = 0
    given_up: frozenset[int] = frozenset()
    late: bool = False
    round_s: float = 0.0
    """What the last round took."""

    def until_done(self) -> str:
        """Measure; returns why it stopped."""
        self._round()
        while self.course.next_look is not None:
            why_not = self._until(self.course.next_look)
            if why_not == BUDGET and 0 < self.looked < self.rounds:
                self._look()
                return BUDGET if self._open() - self.turns.settled() else self._ended(SETTLED)
            if why_not is not None:
                return why_not
            self._look()
            self._give_up()
        return self._ended(LAST)

    def _ended(self, open_: str) -> str:
        """Why it stopped: ``open_`` where a case is open still."""
        return open_ if self.course.open.any() else DECIDED

    def _look(self) -> None:
        self.course = after(self.course, self.turns.works())
        self.looked = self.rounds

    def _until(self, rounds: int) -> str | None:
        """Measure up to so many rounds; why not, if not."""
        while self.rounds < rounds:
            if not self._worth_measuring():
                return HALF if self.late and self.given_up else SETTLED
            if self._is_over() or (self.reserve.at.passed and self._flagged()):
                return BUDGET
            if self._is_half_over():
                self.late = True
                self._give_up()
                if not self._worth_measuring():
                    return HALF
            self._round()
        return None

    def _round(self) -> None:
        begun = self.deadline.clock()
        self.turns.measure(self.rounds, self._worth_measuring())
        self.rounds += 1
        self.round_s = self.deadline.clock() - begun

    def _is_over(self) -> bool:
        """Whether another round would end beyond the deadline; the first, which looks at what each
        conversion is, takes longer than any, and says nothing of the second.
        """
        return self.deadline.is_within(self.round_s if self.rounds > 1 else 0.0)

    def _flagged(self) -> bool:
        return bool(self.course.slower().any()) or self.reserve.flagged()

    def _is_half_over(self) -> bool:
        """Not before the first look: without one, nothing is known of what would be given up."""
        half = self.reserve.half
        looked = self.looked > 0
        return not self.late and looked and half is not None and half.is_within(self.round_s)

    def _give_up(self) -> None:
        """Sort out the open cases that more rounds are not spent on."""
        found = outlook(self.course, self.turns.works())
        worth = found.enough if self.late else found.leaning | found.decidable
        self.given_up |= self._open() - worth

    def _open(self) -> frozenset[int]:
        return frozenset(int(place) for place in self.course.open.nonzero()[0])

    def _worth_measuring(self) -> frozenset[int]:
        return self._open() - self.turns.settled() - self.given_up
