"""What one round says of a case whose samples were taken in turns: one difference.

A processor of a virtual machine is up to twice as slow for some milliseconds to minutes, and not
both of two at once. Processes of equal views differed by 4 to 29 % when they were measured one
after the other, by 20 to 55 % side by side, and by 0.8 to 5 % when they took their samples in turns
on one processor, half a millisecond each (docs/results/gate-noise.md).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dlprof.compare.process import Process, Side
from dlprof.compare.ranks import Floats

FASTEST = 3
"""One in so many samples of few calls is looked at: threads that wait for each other make others up
to a hundred times as slow, and neighbours are not disturbed alike."""


@dataclass(frozen=True, eq=False)
class InTurns:
    """The rounds that both sides have; ``differences`` are HEAD - BASE, in logarithms."""

    base: Side
    head: Side
    differences: Floats


def in_turns(base: Side, head: Side) -> InTurns:
    """Each process of HEAD beside that of BASE of the same round."""
    befores = {process.round: process for process in base}
    pairs = [(befores[after.round], after) for after in head if after.round in befores]
    differences = np.array([difference(*pair) for pair in pairs], dtype=np.float64)
    return InTurns(tuple(b for b, _ in pairs), tuple(h for _, h in pairs), differences)


def together(parts: Sequence[InTurns]) -> InTurns:
    """The rounds of several modes; within each, like was compared with like."""
    return InTurns(
        tuple(process for part in parts for process in part.base),
        tuple(process for part in parts for process in part.head),
        np.concatenate([part.differences for part in parts]),
    )


def difference(base: Process, head: Process) -> float:
    """HEAD - BASE in logarithms.

    The median over neighbouring samples; where a sample is of few calls, between the fastest ones.
    """
    pairs = [
        (before, after)
        for before, after in zip(base.samples_ns, head.samples_ns, strict=False)
        if before > 0 and after > 0
    ]
    if not pairs:
        return math.log(head.time_ns) - math.log(base.time_ns)
    if base.many_calls and head.many_calls:
        return statistics.median(math.log(after) - math.log(before) for before, after in pairs)
    befores, afters = zip(*pairs, strict=True)
    return _fastest(afters) - _fastest(befores)


def _fastest(samples_ns: tuple[float, ...]) -> float:
    count = max(1, len(samples_ns) // FASTEST)
    return statistics.fmean(math.log(sample) for sample in sorted(samples_ns)[:count])
