"""Which test the processes of a case allow, and why none if none is honest.

Times that were measured in turns are tested by Wilcoxon's signed ranks of the rounds. Two finished
sessions are tested by Mann and Whitney's ranks of their processes, and by Student's test if there
are few. Which one depends on how much was measured, and never on what was found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dlprof.compare.processes import (
    Side,
    logs,
    median_ns,
    modes_of_both,
    rounds_of,
    shared_mode,
)
from dlprof.judge.rank_tests import (
    RankTest,
    Test,
    mann_whitney,
    reaches,
    sign,
    student,
    wilcoxon,
)
from dlprof.judge.slower import Proof, prove
from dlprof.runner.floors import DEFAULT, Floor

VIEW_SD = 0.02
"""What processes of a view are taken to differ by, at least, if few were measured.

Between processes of one session they differ by 1.0 to 1.2 % in the middle of the cases, by 3 to 4 %
in a tenth of them. Three that agree better did so by luck."""

APART = math.log(1.07)
"""What two finished sessions must differ by to be called different, however many processes they
have. Equal views, measured ten minutes apart, differed by up to 4.8 %, and not all alike."""

STATE = math.log(2.0)
"""What few processes must differ by to be called different. Those of one side may all be in
another state by chance: 1 time in 32 with three against three. Views had states 1.7 times apart."""

STATEFUL_BYTES = 64 * 2**10
"""Copies from here on run in states: pages that are mapped anew or not, threads that wait for a
core or not. States are up to a hundred times apart, so that the spread of few processes says
nothing about the next one."""

SAME_MODE = 1 / 3
"""The share of rounds with both sides in one mode from which on the modes are the machine's. Of two
modes, whatever their chances, half of the rounds of equal code or more are such."""

MOST_SHIFT = math.log(1.25)
"""A machine that became slower by more shows it otherwise; what goes beyond is the code's."""

MANY = 16
"""From so many rounds on a bound may be that of their signs."""
OF_SIGNS = 1 / 3
"""The share of a bound's level that goes to the signs then. With it four of 24 rounds may be in
another mode. With the rest for the ranks, an interval of normal noise is 5 % wider."""

EXCEPT = 0.1
"""The share of the cases that may differ from what the rest have in common."""


@dataclass(frozen=True)
class Sample:
    """One measure of one case on both sides.

    ``stateful`` copies run in states. ``in_turns`` says that both sides took the samples of a round
    in turns. If not, ``drift`` is what equal code may differ by from one session to the next, as a
    difference of logarithms; None if that is not known, and ``doubt`` says why it matters.
    """

    base: Side
    head: Side
    floor: Floor = DEFAULT[0]
    stateful: bool = False
    in_turns: bool = False
    drift: float | None = None
    doubt: str = ""

    @property
    def step(self) -> float:
        """The floor as a difference of logarithms; never 0, since it is divided by."""
        return max(self.floor.step(median_ns(self.base) or 0.0), 1e-12)


@dataclass(frozen=True)
class Tested:
    """A test, and which processes of each side went into it.

    ``least`` is what they must differ by, in logarithms. ``note`` says of which mode they are; what
    one mode says of a case is not all there is to say of it.
    """

    test: Test
    base: Side
    head: Side
    note: str = ""
    least: float = 0.0


@dataclass(frozen=True)
class Untestable:
    """Why a sample cannot be judged."""

    reason: str


def tested(sample: Sample, level: float) -> Tested | Untestable:
    """The test that can be significant at ``level``, one case's share of the suite's."""
    if not (sample.base and sample.head):
        return Untestable("a side has no times of single processes")
    return _by_rounds(sample) if sample.in_turns else _by_processes(sample, level)


def bound(sample: Sample, level: float) -> float | None:
    """By how much HEAD is slower at most, as a difference of logarithms, at ``level``.

    It is that of all rounds, whatever modes they ran in; of two sessions it has the drift on top.
    None if so few rounds bound nothing, or if the drift is not known. Equal code of
    ``tf.constant(x)`` takes twice as long on one side in a sixth of all rounds: what many rounds
    have in common is bounded by their signs, what few have by their ranks.
    """
    test, drift = every_round(sample), 0.0 if sample.in_turns else sample.drift
    if test is None or drift is None:
        return None
    rounds = rounds_of((sample.base, sample.head)).differences if sample.in_turns else []
    if len(rounds) < MANY:
        high = test.interval(level)[1] + drift
    else:
        ranked = test.interval(level * (1 - OF_SIGNS))[1]
        high = min(ranked, sign(rounds).interval(level * OF_SIGNS)[1])
    return None if math.isinf(high) else high


def every_round(sample: Sample) -> RankTest | None:
    """The test of all rounds, whatever modes they ran in; None for no round."""
    if sample.in_turns:
        differences = rounds_of((sample.base, sample.head)).differences
        return wilcoxon(differences) if differences else None
    if not (sample.base and sample.head):
        return None
    return mann_whitney(logs(sample.base), logs(sample.head))


def _by_rounds(sample: Sample) -> Tested | Untestable:
    """Like with like if enough rounds have both sides in one mode, else all rounds.

    A machine changes its modes for both sides in turns. So if the modes seldom meet, they are the
    code's.
    """
    modes = modes_of_both(sample.base, sample.head)
    every = rounds_of((sample.base, sample.head))
    if not every.base:
        return Untestable("no round has times of both sides")
    found, note = every, ""
    if len(modes) > 1:
        alike, rounds = rounds_of(*modes), len(every.base)
        if len(alike.base) < SAME_MODE * rounds:
            note = _other_modes(sample)
        else:
            found = alike
            note = (
                f"like with like: {len(alike.base)} of {rounds} rounds had both sides in one mode"
            )
    return Tested(wilcoxon(found.differences), found.base, found.head, note)


def _by_processes(sample: Sample, level: float) -> Tested | Untestable:
    modes = modes_of_both(sample.base, sample.head)
    shared = shared_mode(modes)
    if shared is None:
        return Untestable(_other_modes(sample))
    base, head = shared
    note = "" if len(modes) == 1 else _in_one_mode(sample, base, head)
    if reaches(len(base), len(head), level):
        least = max(APART, sample.drift or 0.0)
        return Tested(mann_whitney(logs(base), logs(head)), base, head, note, least)
    count = min(len(base), len(head))
    if count == 1:
        return Untestable("one process on a side: nothing was repeated")
    if sample.stateful:
        return Untestable(
            f"copies of this size run in states: {count} processes a side say nothing"
        )
    return Tested(student(logs(base), logs(head), VIEW_SD), base, head, note, STATE)


def _other_modes(sample: Sample) -> str:
    base, head = _faults(sample.base), _faults(sample.head)
    return f"the sides ran in different modes: {base} page faults per call in BASE, {head} in HEAD"


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


def common_shift(shifts: Sequence[float]) -> float:
    """What at least nine in ten cases of two sessions have in common, in logarithms; often 0.

    A machine that is 4 % slower for the second session makes every case of it 4 % slower, and no
    number of processes helps. So what all cases share counts as uncertain. A change of the code
    rarely has this form: it adds so many nanoseconds to some cases and none to others.
    """
    if not shifts:
        return 0.0
    ordered = sorted(shifts)
    left_out = int(EXCEPT * len(ordered))
    low, high = ordered[left_out], ordered[-1 - left_out]
    return min(max(max(low, 0.0) + min(high, 0.0), -MOST_SHIFT), MOST_SHIFT)


def proofs_of(
    samples: Sequence[Sample], tests: Sequence[Tested | Untestable]
) -> tuple[list[Proof], float]:
    """What the tests prove, and the shift that all cases share.

    A case that no test can judge proves nothing, and counts in the family.
    """
    in_turns = all(sample.in_turns for sample in samples)
    shifts = [test.test.location for test in tests if isinstance(test, Tested)]
    common = 0.0 if in_turns else common_shift(shifts)
    proofs = []
    for sample, test in zip(samples, tests, strict=True):
        if isinstance(test, Untestable):
            proofs.append(Proof())
            continue
        proof = prove(test.test, sample.step, common, test.least)
        proofs.append(replace(proof, same=1.0) if test.note else proof)
    return proofs, common
