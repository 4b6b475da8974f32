"""When a gate measures another round, and when it may stop with the error rates of a single look.

Each look has a share of the levels, and the shares add up to the whole: by Boole's inequality that
holds however the looks depend on each other. If time runs out between two looks, the later one is
taken of the rounds that there are, with its own share.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
    SidePair,
    bound_level,
    decide,
    look_share,
    prove,
)

DECIDED = "every case is decided"
LAST = "the last look is taken"
BUDGET = "the time is used up"
SETTLED = "more rounds would not help"
STOPPED = "it was stopped"

WHOLE = 0.98
"""Share of the budget for all rounds: the rest is for files and reports."""
FIRST = 0.75
"""Share of the budget for the first pass if a case is slower. In 15 of 16 gates with two slower
views the second pass had decided both after 8 rounds."""
LEANING = 0.05
"""A case leans to slower if so large a HEAD is as unlikely as this from equal code."""
ENOUGH = 16
"""Rounds before which no case is given up: one process in another state widens the interval of
fewer. A case with a high bound gets twice as many."""


def earliest(cases: int) -> int | None:
    """Return the rounds from which on one of ``cases`` can be called SLOWER; None for never.

    All of n rounds agree by chance 1 time in 2 to the n, and the first of a family is tested at its
    level over the number of cases (Holm).
    """
    for rounds in range(LOOKS[0], LOOKS[-1] + 1):
        if cases * 0.5**rounds <= look_share(rounds) * PASS_LEVEL:
            return rounds
    return None


@dataclass
class Course:
    """The progress of a pass: its words, looks and rounds, and why it stopped.

    There is a word per case, which never changes once it is not UNSURE. ``given_up`` are cases that
    more rounds are not spent on.
    """

    words: tuple[str, ...]
    looks: int = 0
    rounds: int = 0
    round_s: float = 0.0
    stopped: str = ""
    given_up: frozenset[int] = frozenset()

    @property
    def open(self) -> frozenset[int]:
        """The numbers of the cases that are not decided."""
        return frozenset(place for place, word in enumerate(self.words) if word == UNSURE)

    @property
    def next_look(self) -> int | None:
        """Rounds after which to look again; None if all is decided or no look remains."""
        return LOOKS[self.looks] if self.looks < len(LOOKS) and self.open else None

    @property
    def interrupted(self) -> bool:
        return self.stopped == STOPPED

    def look(self, samples: Sequence[SidePair]) -> None:
        """Decide once more on the whole suite: cases that are decided count in the correction."""
        proofs = [prove(sample.test, sample.step) for sample in samples]
        levels = (SHARES[self.looks] * level for level in (PASS_LEVEL, SAME_LEVEL, FAMILY_LEVEL))
        words = zip(self.words, decide(proofs, *levels), strict=True)
        self.words = tuple(new if old == UNSURE else old for old, new in words)
        self.looks += 1

    def give_up(self, samples: Sequence[SidePair], wide_limit: float = WIDE_LIMIT) -> None:
        """Give up the open cases that are not worth more rounds.

        A case is worth them if it leans to slower, if the rounds to come would decide it, or if its
        bound is above ``wide_limit``. If another case is SLOWER, only a case that seems slower by
        half the floor is. A case that is given up is neither SAME nor SLOWER.
        """

        def is_worth_more(sample: SidePair) -> bool:
            if sample.test is None:
                return False
            if SLOWER in self.words:
                return sample.test.location > MARGIN * sample.step
            rounds = len(sample.differences)
            high = sample.bound(bound_level(rounds))
            is_high = high is None or high > math.log1p(wide_limit)
            if rounds < (2 * ENOUGH if is_high else ENOUGH) or sample.test.p_above(0.0) <= LEANING:
                return True
            # The interval narrows with the square root of the rounds.
            low, high = sample.test.interval(SAME_LEVEL)
            return rounds * ((high - low) / (2 * sample.step)) ** 2 <= LOOKS[-1]

        self.given_up |= {place for place in self.open if not is_worth_more(samples[place])}


class Suite(Protocol):
    """The cases of a pass. A case is a number, which stands for a measure of a conversion."""

    def measure(self, round_: int, cases: frozenset[int]) -> None:
        """One round of these cases on both sides; the first round is of all."""

    def samples(self) -> Sequence[SidePair]:
        """All cases with all rounds so far."""

    def settled(self) -> frozenset[int]:
        """Cases that further rounds would not change: refused, crashed."""


@dataclass(frozen=True)
class Budget:
    """Seconds for all rounds; a ``patient`` budget lasts until a time can be called slower."""

    seconds: float
    start_s: float
    clock: Callable[[], float] = time.monotonic
    patient: bool = False

    def is_over(self, share: float, within_s: float = 0.0) -> bool:
        """Whether this share of it will be used up ``within_s`` seconds."""
        return self.clock() + within_s >= self.start_s + share * self.seconds


def run(
    suite: Suite, cases: int, budget: Budget, first: bool = True, wide_limit: float = WIDE_LIMIT
) -> Course:
    """Measure until every case is decided or given up, no look remains, or the time is used up.

    No round but the first begins that would end beyond the budget. The ``first`` pass leaves time
    for a second one. Ctrl-C ends it in order.
    """
    course = Course((UNSURE,) * cases)
    try:
        while not course.stopped:
            start_s = budget.clock()
            suite.measure(course.rounds, _unfinished(course, suite))
            course.rounds += 1
            course.round_s = budget.clock() - start_s
            if course.rounds == course.next_look:
                course.look(suite.samples())
                course.give_up(suite.samples(), wide_limit)
            course.stopped = _reason_to_stop(course, suite, budget, first)
        if course.stopped == BUDGET and course.looks and course.rounds > LOOKS[course.looks - 1]:
            course.look(suite.samples())
    except KeyboardInterrupt:
        course.stopped = STOPPED
    if not course.open and cases and not course.interrupted:
        course.stopped = DECIDED
    return course


def _unfinished(course: Course, suite: Suite) -> frozenset[int]:
    return course.open - suite.settled() - course.given_up


def _reason_to_stop(course: Course, suite: Suite, budget: Budget, first: bool) -> str:
    """Return why no other round begins; empty if one does."""
    if course.open and course.next_look is None:
        return LAST
    if not _unfinished(course, suite):
        return SETTLED if course.open - suite.settled() else DECIDED
    if budget.patient and course.rounds < (earliest(len(course.words)) or 0):
        return ""
    # The first round also looks at what each conversion is: its time is longer than the next.
    if budget.is_over(WHOLE, course.round_s if course.rounds > 1 else 0.0):
        return BUDGET
    is_kept_back = first and SLOWER in course.words
    return BUDGET if is_kept_back and budget.is_over(FIRST) else ""
