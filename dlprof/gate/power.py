"""What the gate would catch of a case, from how the machine measured it against itself.

Gates are played with blocks of rounds that were really measured. Within a block the processes of
both sides are shuffled, since they ran the same code; heavy tails, modes and transients stay as
they were, and what drifts from block to block as well. The seed is fixed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dlprof import stats
from dlprof.compare.decision import SAME, SLOWER
from dlprof.compare.floors import Floor
from dlprof.compare.process import Process, Side, logs, median_ns
from dlprof.compare.sequential import BLOCK, Plan, begin
from dlprof.compare.simulation import Suites, gate
from dlprof.compare.statistic import Sample
from dlprof.compare.times import Work
from dlprof.compare.turns import after

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


def power(side: Side, floor: Floor, cases: int, plan: Plan) -> Power:
    """``side`` are all processes of both sides; ``cases`` is how many share the error rate."""
    plan = replace(plan, level=plan.level / max(cases, 1))
    play = _play(side, plan)

    def catches(size: float) -> bool:
        return _share(play(1 + size, floor), SLOWER) >= CAUGHT

    def tells(size: float) -> bool:
        own = replace(floor, relative=size)
        return (
            _share(play(1.0, own), SAME) >= CAUGHT and _share(play(1 + size, own), SLOWER) >= CAUGHT
        )

    return Power(_least(catches), _least(tells))


def spread(side: Side) -> float:
    """Standard deviation of the logarithms within blocks, of all blocks together."""
    blocks = [logs(block) for block in blocks_of(side)]
    freedom = sum(len(block) - 1 for block in blocks)
    squares = sum(float(((block - block.mean()) ** 2).sum()) for block in blocks)
    return math.sqrt(squares / freedom) if freedom else math.inf


def blocks_of(side: Side) -> list[Side]:
    """The whole blocks: those with as many processes as the gate has in one, of both sides."""
    found: dict[int, list[Process]] = {}
    for process in side:
        found.setdefault(process.round // BLOCK, []).append(process)
    return [tuple(block) for block in found.values() if len(block) == 2 * BLOCK]


def modes_of(side: Side) -> tuple[tuple[int, ...], ...]:
    return stats.find_modes([p.time_ns for p in side], [p.page_faults for p in side])


def _least(enough: Callable[[float], bool]) -> float | None:
    """The least size that is enough; larger ones are, too."""
    low, high = 0, len(SIZES)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(SIZES[middle]) else (middle + 1, high)
    return SIZES[low] if low < len(SIZES) else None


def _share(words: Sequence[str], word: str) -> float:
    return sum(found == word for found in words) / len(words)


Play = Callable[[float, Floor], Sequence[str]]


def _play(side: Side, plan: Plan) -> Play:
    blocks = blocks_of(side)
    if not blocks:
        return lambda _ratio, _floor: ["UNSURE"]
    return _in_modes(blocks, plan) if len(modes_of(side)) > 1 else _at_once(side, blocks, plan)


def _drawn(blocks: int, gates: int, plan: Plan) -> tuple[NDArray[np.int_], NDArray[np.int_]]:
    """Which block stands for each of a gate, and how its processes are shuffled."""
    chance = np.random.default_rng(SEED)
    shape = gates, plan.looks[-1] // BLOCK
    order = chance.permuted(np.tile(np.arange(2 * BLOCK), (*shape, 1)), axis=-1)
    return chance.integers(blocks, size=shape), order


def _at_once(side: Side, blocks: Sequence[Side], plan: Plan) -> Play:
    values = np.array([logs(block) for block in blocks])
    which, order = _drawn(len(blocks), GATES, plan)
    drawn = np.take_along_axis(values[which], order, axis=-1)
    base, head = drawn[..., :BLOCK], drawn[..., BLOCK:]
    suites = Suites(base.reshape(GATES, 1, -1), head.reshape(GATES, 1, -1))
    around_ns = median_ns(side) or 0.0

    def play(ratio: float, floor: Floor) -> Sequence[str]:
        course, _ = gate(suites.slowed(0, ratio), plan, BLOCK, floor.step(around_ns))
        return [str(word) for word in course.words[:, 0]]

    return play


def _in_modes(blocks: Sequence[Side], plan: Plan) -> Play:
    """The same process by process: like is compared with like."""
    which, order = _drawn(len(blocks), FEW_GATES, plan)

    def play(ratio: float, floor: Floor) -> Sequence[str]:
        return [
            _one_gate(
                [_dealt(blocks[b], o, n, ratio) for n, (b, o) in enumerate(drawn)], floor, plan
            )
            for drawn in (zip(ws, os, strict=True) for ws, os in zip(which, order, strict=True))
        ]

    return play


def _dealt(block: Side, order: Sequence[int], number: int, ratio: float) -> tuple[Side, Side]:
    """A block of both sides, as block ``number`` of a gate whose HEAD is slower by ``ratio``."""
    dealt = [replace(block[int(place)], round=number * BLOCK) for place in order]
    slower = [replace(process, time_ns=process.time_ns * ratio) for process in dealt[BLOCK:]]
    return tuple(dealt[:BLOCK]), tuple(slower)


def _one_gate(blocks: Sequence[tuple[Side, Side]], floor: Floor, plan: Plan) -> str:
    course = begin(plan, 1)
    while course.next_look is not None:
        taken = blocks[: course.next_look // BLOCK]
        base = tuple(process for side, _ in taken for process in side)
        head = tuple(process for _, side in taken for process in side)
        course = after(course, [Work(0, floor, Sample(base, head, block=BLOCK))])
    return str(course.words[0])
