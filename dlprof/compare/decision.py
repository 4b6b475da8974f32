"""From tests to words: SLOWER, FASTER, SAME or UNSURE, for whole suites at once.

Effect size and significance are one question here: not "is there a difference?", which is yes for
any two builds if one measures long enough, but "is HEAD more than half the floor slower?". So a
case without a difference is half a floor away from a false alarm, and one that is slower by the
whole floor is half a floor away from being missed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dlprof.compare.ranks import Floats

FAMILY_LEVEL = 0.01
"""Chance of any false SLOWER among all cases together; the same again for FASTER."""

SAME_LEVEL = 0.025
"""Chance of calling a case SAME that is slower by the whole floor: both ends of a 95 % interval."""

MARGIN = 0.5
"""The share of the floor that a difference must be proven to exceed."""

NEARER = 25
"""So many times the proof of SAME is needed where the estimate is above :data:`MARGIN` of the
floor: 1 in 1,000 in place of 1 in 40."""

SLOWER, FASTER, SAME, UNSURE = "SLOWER", "FASTER", "SAME", "UNSURE"


class Test(Protocol):
    """What :class:`~dlprof.compare.ranks.Ranks` and ``student.Student`` have in common."""

    @property
    def location(self) -> Floats: ...
    def p_above(self, shift: Floats | float) -> Floats: ...
    def p_below(self, shift: Floats | float) -> Floats: ...
    def interval(self, level: float) -> tuple[Floats, Floats]: ...


@dataclass(frozen=True, eq=False)
class Proof:
    """How likely each case is by chance, if it were not slower, not faster, not the same."""

    slower: Floats
    faster: Floats
    same: Floats


def prove(
    test: Test,
    step: Floats | float,
    common: Floats | float = 0.0,
    least: float = 0.0,
    open_: tuple[float, float] = (0.0, 0.0),
) -> Proof:
    """The three questions asked of a test; see :func:`decide`.

    All in logarithms: ``step`` is the floor. ``common`` is a shift that all cases of two sessions
    share: it may be the machine's, so a case must be slower with and without it. ``least`` is what
    so few processes must differ by to be called different at all. ``open_`` is what the machine may
    have had a part in by itself, from 0 or below to 0 or above.

    What is nearer to the whole floor than to nothing takes more proof that it is the same: of cases
    that are slower by the floor, one in forty comes out surely below it by chance.
    """
    up, down = np.maximum(common, open_[1]), np.minimum(common, open_[0])
    half = MARGIN * np.asarray(step)
    margin = np.maximum(half, least)
    within = np.maximum(test.p_below(step + down), test.p_above(-np.asarray(step) + up))
    return Proof(
        slower=test.p_above(margin + up),
        faster=test.p_below(-margin + down),
        same=np.where(test.location <= half + down, within, np.minimum(NEARER * within, 1.0)),
    )


def decide(
    proof: Proof,
    level: float = FAMILY_LEVEL,
    same_level: float = SAME_LEVEL,
    faster_level: float | None = None,
) -> NDArray[np.str_]:
    """The word of each case; the last axis is the suite.

    SAME comes first: an interval that lies within the floor on both sides proves that whatever
    difference there is does not matter, also where it is known not to be zero. SLOWER and FASTER
    are corrected over the suite, ``level`` for each unless FASTER has its own. SAME is not: a
    regression that is missed is one case's error.
    """
    faster_level = level if faster_level is None else faster_level
    words = np.full(proof.slower.shape, UNSURE)
    words = np.where(holm(proof.faster) <= faster_level, FASTER, words)
    words = np.where(holm(proof.slower) <= level, SLOWER, words)
    return np.where(proof.same <= same_level, SAME, words)


def holm(p: Floats) -> Floats:
    """Corrected p-values: compare each with the level of the whole family.

    The family is the last axis; NaN counts in it and is never significant.
    """
    filled = np.where(np.isnan(p), 1.0, p)
    order = np.argsort(filled, axis=-1, kind="stable")
    count = p.shape[-1]
    stepped = np.take_along_axis(filled, order, axis=-1) * np.arange(count, 0, -1)
    corrected = np.minimum(np.maximum.accumulate(stepped, axis=-1), 1.0)
    found = np.empty_like(corrected)
    np.put_along_axis(found, order, corrected, axis=-1)
    return found
