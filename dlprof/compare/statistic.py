"""Which test the processes of a case allow, and why none where none is honest."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dlprof.compare.decision import Test
from dlprof.compare.process import Side, alike, logs, modes_of
from dlprof.compare.ranks import LEAST, ranks, reaches, signed, student
from dlprof.compare.turn import in_turns, together

VIEW_SD = 0.02
"""What process medians of a view are taken to differ by, at least, where few were measured.

Between processes of one session they differ by 1.0 to 1.2 % in the middle of the cases, by 3 to 4 %
in a tenth of them; three that agree better than this did so by luck."""

APART = math.log(1.07)
"""What two finished sessions must differ by to be called different, however many processes they
have: equal views, measured ten minutes apart, differed by up to 4.8 %, and not all of them alike.
Where sessions of a case differ by a standard deviation of 1.7 %, as in :mod:`dlprof.history`, this
keeps false alarms of a suite of 16 below 1 in 100; with 5 % there were 4. In turns both sides meet
the same, and this is not asked."""

STATE = math.log(2.0)
"""What few processes must differ by to be called different. Those of one side may all be in another
state by chance: 1 time in 32 with three against three and two states of equal chance. States of
views were seen 1.7 times apart. Of as many processes as ranks need, this is not asked."""

STATEFUL_BYTES = 64 * 2**10
"""Copies from here on run in states: pages that are mapped anew or not, threads that wait for a
core or not. States are up to a hundred times apart, and three processes in one state by chance are
no rare event, so that no spread seen in few processes says anything about the next."""


ALIKE = 1 / 3
"""The share of the rounds with both sides in one mode from which on the modes are the machine's:
of two modes, whatever their chances, half of the rounds of equal code or more are such."""


@dataclass(frozen=True)
class Sample:
    """One measure of one case on both sides.

    ``in_turns`` where the samples of a round were taken in turns; not for two finished sessions.
    ``open_`` is what the speed of the machine leaves open of their ratio, in logarithms: the least
    (0 or below) and the most (0 or above) that it may have added to HEAD.
    """

    base: Side
    head: Side
    stateful: bool = False
    in_turns: bool = False
    open_: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True)
class Refusal:
    """Why a sample cannot be judged; ``rounds`` would be enough, where more help."""

    reason: str
    rounds: int | None = None


@dataclass(frozen=True)
class Tested:
    """The test, and which processes of each side went into it.

    ``least`` is what they must differ by, in logarithms; see :data:`STATE`.
    """

    test: Test
    base: Side
    head: Side
    note: str = ""
    least: float = 0.0

    @property
    def whole(self) -> bool:
        return not self.note


def tested(sample: Sample, level: float) -> Tested | Refusal:
    """The test that can be significant at ``level``, one case's share of the suite's.

    Signed ranks of the rounds where the sides were measured in turns. Of two sessions ranks of the
    processes where they are enough for them, and Student's for few. Which one does not depend on
    what was found, only on how much.
    """
    if not (sample.base and sample.head):
        return Refusal("a side has no times of single processes")
    return _in_turns(sample) if sample.in_turns else _apart(sample, level)


def _in_turns(sample: Sample) -> Tested | Refusal:
    """Like with like where enough rounds have both sides in one mode; else all rounds.

    The modes of a machine that changes are met by both sides in turns, so that where they seldom
    meet, what they are is the code's. Either is asked of rounds, whichever process is whose.
    """
    modes = modes_of(sample.base, sample.head)
    every = in_turns(sample.base, sample.head)
    if not every.base:
        return Refusal("no round has times of both sides")
    same = together([in_turns(mode.base, mode.head) for mode in modes])
    count, rounds = len(same.base), len(every.base)
    if len(modes) == 1:
        found, note = every, ""
    elif count < ALIKE * rounds:
        found, note = every, _other_modes(sample)
    else:
        found = same
        note = f"like with like: {count} of {rounds} rounds had both sides in one mode"
    return Tested(signed(found.differences), found.base, found.head, note)


def _apart(sample: Sample, level: float) -> Tested | Refusal:
    same = alike(sample.base, sample.head)
    if same is None:
        return Refusal(_other_modes(sample))
    note = "" if same.whole else _in_one_mode(sample, same.base, same.head)
    found = ranks(logs(same.base), logs(same.head))
    if reaches(found.size, level):
        return Tested(found, same.base, same.head, note, APART)
    return _few(sample, same.base, same.head, level, note)


def _few(sample: Sample, base: Side, head: Side, level: float, note: str) -> Tested | Refusal:
    count = min(len(base), len(head))
    needed = least_rounds(level)
    if count < LEAST:
        return Refusal("one process on a side: nothing was repeated", needed)
    if sample.stateful:
        return Refusal(
            f"copies of this size run in states: {count} processes a side tell nothing", needed
        )
    return Tested(student(logs(base), logs(head), VIEW_SD), base, head, note, STATE)


def least_rounds(level: float) -> int:
    """Processes a side from which on ranks can be significant at ``level``."""
    return next(count for count in range(2, 1000) if reaches((count, count), level))


def _other_modes(sample: Sample) -> str:
    sides = (_faults(sample.base), _faults(sample.head))
    return (
        f"the sides ran in different modes: {sides[0]} page faults per call in BASE, "
        f"{sides[1]} in HEAD"
    )


def _faults(side: Side) -> str:
    known = sorted(p.page_faults for p in side if p.page_faults is not None)
    if not known:
        return "unknown"
    low, high = f"{known[0]:.0f}", f"{known[-1]:.0f}"
    return low if low == high else f"{low} to {high}"


def _in_one_mode(sample: Sample, base: Side, head: Side) -> str:
    return (
        f"compared in the mode that both show: {len(base)} of {len(sample.base)} processes in "
        f"BASE, {len(head)} of {len(sample.head)} in HEAD, {_faults(base + head)} page faults"
    )
