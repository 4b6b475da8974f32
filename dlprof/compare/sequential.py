"""When measuring in rounds may stop, with the error rates of a single look.

Looking at the numbers after every few rounds and stopping when they please finds something in
noise sooner or later. So the levels are spent: each look has a share of them, and the shares add up
to the whole. By Boole's inequality that holds whatever the looks have in common. The shares grow
with the rounds to the power of :data:`POWER`: an early look can only see what is large, and must
leave most of the level to the last, which has all the data.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

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

BLOCK = 4
"""Rounds of one block: A B B A A B B A. Nothing is compared between blocks, so that a drift of the
machine over minutes is no difference; fewer rounds a block would give fewer comparisons."""

LOOKS = (8, 12, 16, 24, 32)
"""Rounds after which to look, in whole blocks. Fewer than two blocks cannot be significant."""

POWER = 3.0


@dataclass(frozen=True)
class Plan:
    """Looks after so many rounds, and the levels for all of them together."""

    looks: tuple[int, ...] = LOOKS
    level: float = FAMILY_LEVEL
    same_level: float = SAME_LEVEL

    def shares(self) -> tuple[float, ...]:
        """The share of each look; they add up to 1."""
        spent = [0.0, *((rounds / self.looks[-1]) ** POWER for rounds in self.looks)]
        return tuple(after - before for before, after in pairwise(spent))


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
    share = course.plan.shares()[course.looks_done]
    words = decide(proof, course.plan.level * share, course.plan.same_level * share)
    return Course(
        course.plan,
        np.where(course.open, words, course.words),
        course.looks_done + 1,
        course.spent + share,
    )
