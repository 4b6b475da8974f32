"""When measuring in rounds may stop, with the error rates of a single look.

Looking at the numbers after every few rounds and stopping when they please finds something in
noise sooner or later. So the levels are spent: each look has a share of them, and the shares add up
to the whole. By Boole's inequality that holds whatever the looks have in common, and whichever of
them are never taken.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

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
    fails = SLOWER in course.words
    found = set()
    for place in course.open:
        sample = samples[place]
        if sample.test is None:
            found.add(place)
            continue
        seems_slower = sample.test.location > MARGIN * sample.step
        leans = sample.test.p_above(0.0) <= LEANING
        if late or fails:
            worth = seems_slower
        else:
            rounds = len(sample.differences)
            high = sample.bound(bound_level(rounds))
            is_high = high is None or high > math.log1p(wide_limit)
            enough = 2 * ENOUGH if is_high else ENOUGH
            worth = leans or rounds < enough or _rounds_needed(sample) <= LOOKS[-1]
        if not worth:
            found.add(place)
    return frozenset(found)


def _rounds_needed(sample: Sample) -> float:
    """Return about how many rounds would say SAME: the interval narrows with their square root."""
    rounds = len(sample.differences)
    if sample.test is None:
        return 0.0
    low, high = sample.test.interval(SAME_LEVEL)
    return rounds * ((high - low) / (2 * sample.step)) ** 2
