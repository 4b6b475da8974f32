"""When measuring in rounds may stop, with the error rates of a single look.

Looking at the numbers after every few rounds and stopping when they please finds something in
noise sooner or later. So the levels are spent: each look has a share of them, and the shares add up
to the whole. By Boole's inequality that holds whatever the looks have in common. The shares grow
with the rounds to the power of :data:`POWER`: an early look can only see what is large, and must
leave most of the level to the last, which has all the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
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

EXTRA_SHARE = 0.2
"""Of the levels, for the looks that are taken only where there is nothing to measure again. It is
little: what is found there for the first time is seldom measured again before the time is over."""


@dataclass(frozen=True)
class Plan:
    """Looks after so many rounds, and the levels for all of them together.

    ``extra`` are looks after these, which may be left out whatever was found: they have a share of
    the levels of their own, and what is not spent makes no error likelier.
    """

    looks: tuple[int, ...] = LOOKS
    extra: tuple[int, ...] = ()
    level: float = FAMILY_LEVEL
    same_level: float = SAME_LEVEL

    def shares(self) -> tuple[float, ...]:
        """The share of each look, the extra ones last; they add up to 1."""
        kept = EXTRA_SHARE if self.extra else 0.0
        return (
            *(share * (1 - kept) for share in _shares(0, self.looks)),
            *(share * kept for share in _shares(self.looks[-1], self.extra)),
        )

    @property
    def all_looks(self) -> tuple[int, ...]:
        return (*self.looks, *self.extra)

    def fitting(self, most: float, most_extra: float) -> Plan:
        """The looks that come within ``most`` rounds, and as extra ones those within more.

        The first look stays in any case.
        """
        looks = tuple(n for n in self.looks if n <= most) or self.looks[:1]
        extra = tuple(n for n in self.looks if looks[-1] < n <= most_extra)
        return replace(self, looks=looks, extra=extra)


def _shares(begin_: int, looks: tuple[int, ...]) -> Iterator[float]:
    """By the rounds to a power, from ``begin_`` on; they add up to 1."""
    if not looks:
        return
    first, last = float(begin_) ** POWER, float(looks[-1]) ** POWER
    spent = [0.0, *((rounds**POWER - first) / (last - first) for rounds in looks)]
    yield from (after - before for before, after in pairwise(spent))


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
        if self.looks_done == len(self.plan.all_looks) or not self.open.any():
            return None
        return self.plan.all_looks[self.looks_done]

    @property
    def next_is_extra(self) -> bool:
        """Whether the next look is one that only those take who have nothing to measure again."""
        return self.looks_done >= len(self.plan.looks)

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
    if course.looks_done == len(course.plan.all_looks):
        raise ValueError("all looks of the plan are spent")
    share = course.plan.shares()[course.looks_done]
    words = decide(proof, course.plan.level * share, course.plan.same_level * share)
    return Course(
        course.plan,
        np.where(course.open, words, course.words),
        course.looks_done + 1,
        course.spent + share,
    )
