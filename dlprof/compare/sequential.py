"""When measuring in rounds may stop, with the error rates of a single look.

Looking at the numbers after every few rounds and stopping when they please finds something in
noise sooner or later. So the levels are spent: each look has a share of them, and the shares add up
to the whole. By Boole's inequality that holds whatever the looks have in common, and whichever of
them are never taken: one who runs out of time, or gives up, has spent less.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dlprof.compare.decision import (
    FAMILY_LEVEL,
    SAME,
    SAME_LEVEL,
    SLOWER,
    UNSURE,
    Proof,
    decide,
)

LOOKS = (8, 12, 16, 24, 32, 48, 64)
"""Rounds after which to look. Fewer than eight cannot say SAME with the share of the first look."""

FIRST_SHARE = 0.2
"""Of the levels, for the first look, so that eight rounds that agree can say SAME: their order has
a chance of 1 in 256, and the share of :data:`~dlprof.compare.decision.SAME_LEVEL` is 1 in 200. The
other looks have the rest in equal shares."""

PASS_LEVEL = 0.1
"""Chance of any false SLOWER in one pass of a gate that measures both sides in turns.

It fails only where a second pass agrees, which meets fresh processes: of what changes from process
to process it has nothing in common with the first, so that both err together 1 time in 100, which
is :data:`~dlprof.compare.decision.FAMILY_LEVEL`. What stays with a side it has in common: two
environments with the same frameworks differ by up to 1.5 % (docs/results/gate-noise.md), which the
half floor has to cover."""


@dataclass(frozen=True)
class Plan:
    """Looks after so many rounds, and the levels for all of them together."""

    looks: tuple[int, ...] = LOOKS
    level: float = FAMILY_LEVEL
    same_level: float = SAME_LEVEL
    faster_level: float = FAMILY_LEVEL

    def shares(self) -> tuple[float, ...]:
        """The share of each look; they add up to 1."""
        others = len(self.looks) - 1
        return (FIRST_SHARE, *[(1 - FIRST_SHARE) / others] * others) if others else (1.0,)


IN_TURNS = Plan(level=PASS_LEVEL)


def earliest(plan: Plan, cases: int) -> int | None:
    """Rounds in turns from which on a case could be called SLOWER, of so many; None for never.

    That all of n rounds agree has a chance of 1 in 2 to the n, and the first of a family is tested
    at its level over the number of cases (Holm): 8 rounds for up to 5 cases, 12 for up to 54. Where
    the time is used up between two looks, the later is taken then: 9 rounds for up to 6, 11 for up
    to 27.
    """
    shares = dict(zip(plan.looks, plan.shares(), strict=True))
    for rounds in range(plan.looks[0], plan.looks[-1] + 1):
        share = shares[next(look for look in plan.looks if look >= rounds)]
        if cases * 0.5**rounds <= share * plan.level:
            return rounds
    return None


@dataclass(frozen=True, eq=False)
class Course:
    """What is decided so far: a word per case, which never changes once it is not UNSURE."""

    plan: Plan
    words: NDArray[np.str_]
    looks_done: int = 0
    spent: float = field(default=0.0)

    @property
    def open(self) -> NDArray[np.bool_]:
        """Cases that are worth measuring on."""
        found: NDArray[np.bool_] = self.words == UNSURE
        return found

    @property
    def next_look(self) -> int | None:
        """Rounds after which to look again; None where all is decided or no look is left."""
        if self.looks_done == len(self.plan.looks) or not self.open.any():
            return None
        return self.plan.looks[self.looks_done]

    def slower(self) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = self.words == SLOWER
        return found

    def same(self) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = self.words == SAME
        return found


def begin(plan: Plan, cases: tuple[int, ...] | int) -> Course:
    """Nothing decided; ``cases`` is the shape of the suite."""
    return Course(plan, np.full(cases, UNSURE))


def look(course: Course, proof: Proof) -> Course:
    """What is decided after one more look; ``proof`` is of all rounds so far, of all cases.

    Cases that are decided count in the correction still: the family is the suite.
    Raises ValueError where no look is left.
    """
    if course.looks_done == len(course.plan.looks):
        raise ValueError("all looks of the plan are spent")
    plan = course.plan
    share = plan.shares()[course.looks_done]
    levels = plan.level, plan.same_level, plan.faster_level
    words = decide(proof, *(share * level for level in levels))
    return Course(
        plan,
        np.where(course.open, words, course.words),
        course.looks_done + 1,
        course.spent + share,
    )
