"""When a gate measures another round, and when it may stop with the error rates of a single look.

Looking at the numbers after every few rounds and stopping when they please finds something in
noise sooner or later. So the levels are spent: each look has a share of them, and the shares add up
to the whole. By Boole's inequality that holds whatever the looks have in common, and whichever of
them are never taken. If time runs out between two looks, the later one is taken of the rounds that
there are, with its own share of the level.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from dlprof.compare.times import (
    FAMILY_LEVEL,
    LOOKS,
    MARGIN,
    PASS_LEVEL,
    SAME_LEVEL,
    SHARES,
    SLOWER,
    UNSURE,
    WIDE_LIMIT,
    Sample,
    bound_level,
    decide,
    prove,
    share_at,
)

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
LEANING = 0.05
"""A case leans to slower if so large a HEAD is as unlikely as this from equal code."""
ENOUGH = 16
"""No case is given up before so many rounds: one process in another state widens the interval of
fewer. A case with a high bound gets twice as many."""


def earliest(cases: int) -> int | None:
    """Return the rounds from which on one of so many cases can be called SLOWER; None for never.

    All of n rounds agree by chance 1 time in 2 to the n, and the first of a family is tested at its
    level over the number of cases (Holm).
    """
    for rounds in range(LOOKS[0], LOOKS[-1] + 1):
        if cases * 0.5**rounds <= share_at(rounds) * PASS_LEVEL:
            return rounds
    return None


@dataclass(frozen=True)
class Course:
    """What is decided so far: a word per case, which never changes once it is not UNSURE."""

    words: tuple[str, ...]
    looks_done: int = 0

    @property
    def open(self) -> frozenset[int]:
        """The numbers of the cases that are not decided."""
        return frozenset(place for place, word in enumerate(self.words) if word == UNSURE)

    @property
    def next_look(self) -> int | None:
        """Rounds after which to look again; None if all is decided or no look is left."""
        return LOOKS[self.looks_done] if self.looks_done < len(LOOKS) and self.open else None


def begin(cases: int) -> Course:
    """Return the course of so many cases before anything is measured."""
    return Course((UNSURE,) * cases)


def look(course: Course, samples: Sequence[Sample]) -> Course:
    """Return what is decided after one more look at the whole suite, with all rounds so far.

    Cases that are decided still count in the correction: the family is the suite.
    """
    share = SHARES[course.looks_done]
    proofs = [prove(sample.test, sample.step) for sample in samples]
    levels = (share * level for level in (PASS_LEVEL, SAME_LEVEL, FAMILY_LEVEL))
    words = zip(course.words, decide(proofs, *levels), strict=True)
    return replace(
        course,
        words=tuple(new if old == UNSURE else old for old, new in words),
        looks_done=course.looks_done + 1,
    )


def futile(
    course: Course,
    samples: Sequence[Sample],
    late: bool = False,
    wide_limit: float = WIDE_LIMIT,
) -> frozenset[int]:
    """Return the open cases that more rounds are not spent on.

    A case is worth more rounds if it leans to slower, if the rounds to come would decide it, or if
    its bound is above ``wide_limit``. If it is ``late``, or another case is SLOWER, only a case
    that seems slower by half the floor is: of 627 equal views in 57 gates none did. Giving up a
    case makes no error likelier, since it is called neither SAME nor SLOWER.
    """
    only_slower = late or SLOWER in course.words

    def is_worth_more(sample: Sample) -> bool:
        if sample.test is None:
            return False
        if only_slower:
            return sample.test.location > MARGIN * sample.step
        rounds = len(sample.differences)
        high = sample.bound(bound_level(rounds))
        is_high = high is None or high > math.log1p(wide_limit)
        if rounds < (2 * ENOUGH if is_high else ENOUGH) or sample.test.p_above(0.0) <= LEANING:
            return True
        # The interval narrows with the square root of the rounds.
        low, high = sample.test.interval(SAME_LEVEL)
        return rounds * ((high - low) / (2 * sample.step)) ** 2 <= LOOKS[-1]

    return frozenset(place for place in course.open if not is_worth_more(samples[place]))


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
    """The time for all rounds, in s, from ``begun`` on.

    A ``patient`` budget, which the user did not name, lasts until a time can be called slower.
    """

    seconds: float
    begun: float
    clock: Callable[[], float] = time.monotonic
    patient: bool = False

    def is_over(self, share: float, within_s: float = 0.0) -> bool:
        """Whether so much of it will be used up in so many seconds."""
        return self.clock() + within_s >= self.begun + share * self.seconds

    @property
    def left_s(self) -> float:
        """What is left of it, never less than nothing."""
        return max(self.begun + self.seconds - self.clock(), 0.0)


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
        while not ran.stopped:
            begun = budget.clock()
            suite.measure(ran.rounds, _left(ran, suite))
            ran.rounds += 1
            ran.round_s = budget.clock() - begun
            if ran.rounds == ran.course.next_look:
                _look(ran, suite)
                ran.given_up |= futile(ran.course, suite.samples(), ran.late, wide_limit)
            ran.stopped = _reason_to_stop(ran, suite, budget, first)
        if ran.stopped == BUDGET and 0 < ran.looked < ran.rounds:
            _look(ran, suite)
    except KeyboardInterrupt:
        ran.stopped = STOPPED
    if not ran.course.open and cases and ran.stopped != STOPPED:
        ran.stopped = DECIDED
    return ran


def _left(ran: Ran, suite: Suite) -> frozenset[int]:
    return ran.course.open - suite.settled() - ran.given_up


def _look(ran: Ran, suite: Suite) -> None:
    ran.course = look(ran.course, suite.samples())
    ran.looked = ran.rounds


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
