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

from dlprof.compare.samples import (
    Sample,
    Tested,
    Untestable,
    bound,
    every_round,
    proofs_of,
    tested,
)
from dlprof.judge.slower import (
    FAMILY_LEVEL,
    MARGIN,
    SAME_LEVEL,
    SLOWER,
    UNSURE,
    decide,
    is_likely_slower,
)
from dlprof.runner import options

LOOKS = (8, 12, 16, 24, 32, 48, 64)
"""Rounds after which to look. Fewer than eight cannot say SAME with the share of the first look."""

FIRST_SHARE = 0.2
"""The first look's share of the levels. Eight rounds that agree have a chance of 1 in 256, and this
share of :data:`~dlprof.judge.slower.SAME_LEVEL` is 1 in 200. The other looks share the rest."""

PASS_LEVEL = 0.1
"""The chance of any false SLOWER in one pass of a gate that measures both sides in turns.

The gate fails only if a second pass in fresh processes agrees, so both err together 1 time in 100,
which is :data:`~dlprof.judge.slower.FAMILY_LEVEL`. Both passes share what stays with a side: two
environments with the same frameworks differ by up to 1.5 %, which the
half floor covers."""

LEANING = 0.05
"""A case leans to slower if so large a HEAD is as unlikely as this from equal code."""

WIDE_LIMIT = options.WIDE_LIMIT.default / 100
"""What stays open passes if it is slower by so much at most; ``--wide-limit`` says otherwise."""

EARLY, LATE = 16.0, 2.0
ENOUGH = 16
"""A case whose bound is above the limit is given up if it needs so many times the rounds that there
will be: LATE from ENOUGH rounds on, EARLY before that, since one process in another state may be
the end of the interval. A case that would pass as WIDE has no such slack from ENOUGH rounds on."""


@dataclass(frozen=True)
class Plan:
    """Looks after so many rounds, and the levels for all of them together.

    ``wide_limit`` is the bound below which a case that stays open passes: 0.25 is 25 %.
    """

    looks: tuple[int, ...] = LOOKS
    level: float = FAMILY_LEVEL
    same_level: float = SAME_LEVEL
    faster_level: float = FAMILY_LEVEL
    wide_limit: float = WIDE_LIMIT

    @property
    def shares(self) -> tuple[float, ...]:
        """The share of each look; they add up to 1."""
        others = len(self.looks) - 1
        return (FIRST_SHARE, *[(1 - FIRST_SHARE) / others] * others) if others else (1.0,)

    def share_at(self, rounds: int) -> float:
        """The share of the look that is taken of so many rounds."""
        looks = zip(self.looks, self.shares, strict=True)
        return next((share for look, share in looks if look >= rounds), self.shares[-1])

    def bound_level(self, rounds: int) -> float:
        """The level of the bound of what is WIDE after so many rounds.

        A case is called SAME or WIDE at one look only, so both together err no more often than the
        shares of ``same_level`` add up to.
        """
        return self.same_level * self.share_at(rounds)


IN_TURNS = Plan(level=PASS_LEVEL)


def earliest(plan: Plan, cases: int) -> int | None:
    """Rounds in turns from which on one of so many cases can be called SLOWER; None for never.

    All of n rounds agree by chance 1 time in 2 to the n, and the first of a family is tested at its
    level over the number of cases (Holm). If time runs out between two looks, the later is taken.
    """
    for rounds in range(plan.looks[0], plan.looks[-1] + 1):
        if cases * 0.5**rounds <= plan.share_at(rounds) * plan.level:
            return rounds
    return None


@dataclass(frozen=True)
class Course:
    """What is decided so far: a word per case, which never changes once it is not UNSURE."""

    plan: Plan
    words: tuple[str, ...]
    looks_done: int = 0

    @property
    def open(self) -> frozenset[int]:
        """The numbers of the cases that are not decided."""
        return frozenset(place for place, word in enumerate(self.words) if word == UNSURE)

    @property
    def next_look(self) -> int | None:
        """Rounds after which to look again; None if all is decided or no look is left."""
        if self.looks_done == len(self.plan.looks) or not self.open:
            return None
        return self.plan.looks[self.looks_done]


def begin(plan: Plan, cases: int) -> Course:
    return Course(plan, (UNSURE,) * cases)


def look(course: Course, samples: Sequence[Sample]) -> Course:
    """What is decided after one more look at the whole suite, with all rounds so far.

    Cases that are decided still count in the correction: the family is the suite.
    """
    plan = course.plan
    level = plan.level / max(len(samples), 1)
    proofs, _ = proofs_of(samples, [tested(sample, level) for sample in samples])
    share = plan.shares[course.looks_done]
    levels = (share * level for level in (plan.level, plan.same_level, plan.faster_level))
    words = zip(course.words, decide(proofs, *levels), strict=True)
    return replace(
        course,
        words=tuple(new if old == UNSURE else old for old, new in words),
        looks_done=course.looks_done + 1,
    )


def futile(course: Course, samples: Sequence[Sample], late: bool = False) -> frozenset[int]:
    """The open cases that more rounds are not spent on.

    A case is worth more rounds if it leans to slower, or if the rounds to come would decide it or
    bring its bound below the limit. If it is ``late``, or another case is SLOWER, a case that would
    be decided is not, and one leans to slower only if it seems slower by half the floor: of 627
    equal views in 57 gates none did. Beside one that is SLOWER
    no bound makes a pass either. To give a case up makes no error likelier, since it is called
    neither SAME nor SLOWER; so it may depend on what was found.
    """
    level = course.plan.level / max(len(samples), 1)
    fails = SLOWER in course.words
    found = set()
    for place in course.open:
        sample = samples[place]
        test = tested(sample, level)
        if late or fails:
            worth = isinstance(test, Tested) and test.test.location > MARGIN * sample.step
        else:
            leaning = isinstance(test, Tested) and test.test.p_above(0.0) <= LEANING
            worth = leaning or rounds_needed(sample, test) <= course.plan.looks[-1]
        if not (worth or (not fails and _bound_narrows(sample, course.plan))):
            found.add(place)
    return frozenset(found)


def likely_slower(course: Course, samples: Sequence[Sample]) -> frozenset[int]:
    """The open cases that are likely slower."""
    tests = {place: tested(samples[place], SAME_LEVEL) for place in course.open}
    return frozenset(
        place
        for place, test in tests.items()
        if isinstance(test, Tested)
        and is_likely_slower(test.test.interval(SAME_LEVEL)[0], samples[place].step)
    )


def rounds_needed(sample: Sample, test: Tested | Untestable) -> float:
    """About how many rounds would say SAME: the interval narrows with their square root."""
    rounds = len(sample.head)
    if rounds < LOOKS[0]:
        return 0.0
    if isinstance(test, Untestable) or test.note:
        # What one mode says is not all there is to say; few rounds may have few in one mode.
        return 0.0 if rounds < ENOUGH else float("inf")
    low, high = test.test.interval(SAME_LEVEL)
    slack = EARLY if rounds < ENOUGH else 1.0
    return len(test.head) * ((high - low) / (2 * sample.step)) ** 2 / slack


def _bound_narrows(sample: Sample, plan: Plan) -> bool:
    """Whether the bound is above the limit, and the rounds to come may bring it below."""
    rounds, most = len(sample.head), math.log1p(plan.wide_limit)
    high = bound(sample, plan.bound_level(rounds))
    if high is None:
        return 0 < rounds < ENOUGH
    test = every_round(sample)
    center = (0.0 if test is None else test.location) + (sample.drift or 0.0)
    if high <= most or center >= most:
        return False
    slack = EARLY if rounds < ENOUGH else LATE
    return rounds * ((high - center) / (most - center)) ** 2 / slack <= plan.looks[-1]
