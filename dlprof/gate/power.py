"""What the gate would catch of a case, from how the machine measured it against itself.

Gates are played with rounds that were really measured. Which process of a round stands for which
side is drawn anew, since they ran the same code; heavy tails, modes and transients stay as they
were. The seed is fixed.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dlprof.compare.decision import SAME, SLOWER, UNSURE
from dlprof.compare.outlook import outlook
from dlprof.compare.process import Process, Side, median_ns
from dlprof.compare.sequential import Plan, begin
from dlprof.compare.simulation import Suites, gate
from dlprof.compare.statistic import Sample
from dlprof.compare.times import Work
from dlprof.compare.turn import difference
from dlprof.compare.turns import after
from dlprof.plan.floors import Floor
from dlprof.session import stats

SIZES = (0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0, 2.0)
"""Slowdowns that are tried: 0.05 is 5 %."""

CAUGHT = 0.975
"""Of the gates in a pass; as many of the second pass make 95 of 100 together."""

GATES = 200
FEW_GATES = 60
"""Of cases with modes, which are judged process by process."""

SEED = 20


@dataclass(frozen=True)
class Power:
    """What the gate can tell of a case.

    ``caught`` is the least slowdown of :data:`SIZES` that it would catch with the floor that was
    asked for; ``floor`` the least relative floor at which equal code is called SAME and a slowdown
    by the floor SLOWER. None where no size is enough: too noisy to gate.
    """

    caught: float | None
    floor: float | None


Round = tuple[Process, Process]
"""Both processes of a round, which ran the same code."""


def power(rounds: Sequence[Round], floor: Floor, cases: int, plan: Plan, most: int) -> Power:
    """What a pass of ``most`` rounds tells; ``cases`` is how many share the error rate."""
    plan = replace(plan, level=plan.level / max(cases, 1))
    play = _play(rounds, plan, most)

    def catches(size: float) -> bool:
        return _share(play(1 + size, floor), SLOWER) >= CAUGHT

    def tells(size: float) -> bool:
        own = replace(floor, relative=size)
        return (
            _share(play(1.0, own), SAME) >= CAUGHT and _share(play(1 + size, own), SLOWER) >= CAUGHT
        )

    return Power(_least(catches), _least(tells))


def lasting(rounds: Sequence[Round], floor: Floor, cases: int, plan: Plan) -> tuple[int, ...]:
    """After how many rounds gates of equal code are done with the case: decided, or given up."""
    plan = replace(plan, level=plan.level / max(cases, 1))
    return tuple(played.rounds for played in _play(rounds, plan, plan.looks[-1])(1.0, floor))


def rounds_of(base: Side, head: Side) -> tuple[Round, ...]:
    """The rounds that have processes of both sides."""
    befores = {process.round: process for process in base}
    return tuple((befores[after.round], after) for after in head if after.round in befores)


def spread(rounds: Sequence[Round]) -> float:
    """Standard deviation of the logarithms from process to process, measured in turns."""
    squares = [difference(*round_) ** 2 / 2 for round_ in rounds]
    return math.sqrt(statistics.fmean(squares)) if squares else math.inf


def modes_of(side: Side) -> tuple[tuple[int, ...], ...]:
    return stats.find_modes([p.time_ns for p in side], [p.page_faults for p in side])


def _least(enough: Callable[[float], bool]) -> float | None:
    """The least size that is enough; larger ones are, too."""
    low, high = 0, len(SIZES)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(SIZES[middle]) else (middle + 1, high)
    return SIZES[low] if low < len(SIZES) else None


@dataclass(frozen=True)
class Played:
    """What a gate said of a case, and after how many rounds it measured it no more."""

    word: str
    rounds: int


def _share(gates: Sequence[Played], word: str) -> float:
    return sum(played.word == word for played in gates) / len(gates)


Play = Callable[[float, Floor], Sequence[Played]]


def _play(rounds: Sequence[Round], plan: Plan, most: int) -> Play:
    if len(rounds) < plan.looks[0]:  # a gate would not have a look either
        return lambda _ratio, _floor: [Played(UNSURE, plan.looks[0])]
    both = tuple(process for round_ in rounds for process in round_)
    several = len(modes_of(both)) > 1
    return _in_modes(rounds, plan, most) if several else _at_once(rounds, plan, most)


def _drawn(count: int, gates: int, most: int) -> tuple[NDArray[np.int_], NDArray[np.int_]]:
    """Which measured round stands for each of a gate, and which way round: 1 or -1."""
    chance = np.random.default_rng(SEED)
    shape = gates, most
    return chance.integers(count, size=shape), chance.choice((-1, 1), size=shape)


def _at_once(rounds: Sequence[Round], plan: Plan, most: int) -> Play:
    measured = np.array([difference(*round_) for round_ in rounds])
    which, way = _drawn(len(rounds), GATES, most)
    differences = (measured[which] * way.astype(float))[:, None]
    suites = Suites(np.zeros(differences.shape), differences)
    around_ns = median_ns([process for round_ in rounds for process in round_]) or 0.0

    def play(ratio: float, floor: Floor) -> Sequence[Played]:
        course, used = gate(suites.slowed(0, ratio), plan, floor.step(around_ns))
        words = course.words[:, 0]
        return [Played(str(word), int(done)) for word, done in zip(words, used, strict=True)]

    return play


def _in_modes(rounds: Sequence[Round], plan: Plan, most: int) -> Play:
    """The same process by process: like is compared with like."""
    which, way = _drawn(len(rounds), FEW_GATES, most)

    def play(ratio: float, floor: Floor) -> Sequence[Played]:
        gates = (zip(*drawn, strict=True) for drawn in zip(which, way, strict=True))
        dealt = (
            [_dealt(rounds[r], w, number, ratio) for number, (r, w) in enumerate(drawn)]
            for drawn in gates
        )
        return [_one_gate(one, floor, plan) for one in dealt]

    return play


def _dealt(round_: Round, way: int, number: int, ratio: float) -> Round:
    """A round as round ``number`` of a gate whose HEAD is slower by ``ratio``."""
    base, head = (replace(process, round=number) for process in round_[::way])
    return base, head.times(ratio)


def _one_gate(rounds: Sequence[Round], floor: Floor, plan: Plan) -> Played:
    course, done = begin(plan, 1), 0
    while course.next_look is not None and course.next_look <= len(rounds):
        done = course.next_look
        base, head = zip(*rounds[:done], strict=True)
        works = [Work(0, floor, Sample(base, head, in_turns=True))]
        course = after(course, works)
        found = outlook(course, works)
        if not found.leaning | found.decidable:
            break
    return Played(str(course.words[0]), done)
