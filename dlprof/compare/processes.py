"""The processes of a case: the independent samples of both sides, paired by round."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from dlprof.runner.session import ProcessSamples, Result

MANY_CALLS = 100
"""A sample that is the mean of so many calls holds whatever the conversion does now and then."""
LOW_SHARE = 0.1
"""The share of such samples that are faster than the one that stands for a process.

Other programs, interrupts and the scheduler only ever add time. On two cores, of which others kept
more than one busy, medians of equal processes of views were 3 to 40 % apart, and these 1 to 4 %.
Slower code adds its time to every sample."""
FASTEST = 3
"""Of samples of few calls, the fastest third is compared: threads that wait for each other make
others up to a hundred times as slow."""


@dataclass(frozen=True)
class Process:
    """What one fresh process measured in ``round``.

    ``many_calls`` says whether each sample is the mean of :data:`MANY_CALLS` or more.
    """

    time_ns: float
    round: int = 0
    samples_ns: tuple[float, ...] = ()
    many_calls: bool = False


Side = tuple[Process, ...]


def processes(result: Result, measure: str) -> Side:
    """Return the processes of ``measure``, ``ready`` or ``host``, that have a positive time."""
    time = result.timed_ready if measure == "ready" else result.host_time
    found = [
        Process(
            time_ns(process),
            process.round,
            tuple(process.samples_ns),
            process.loops >= MANY_CALLS,
        )
        for process in (time.processes if time else ())
        if process.samples_ns
    ]
    return tuple(process for process in found if process.time_ns > 0)


def time_ns(process: ProcessSamples) -> float:
    """Return the time of a process: a low percentile of samples of many calls, else the median.

    If a sample is a few calls, one low sample may be a lucky call and no more.
    """
    if process.loops < MANY_CALLS:
        return statistics.median_low(process.samples_ns)
    ordered = sorted(process.samples_ns)
    return ordered[int(LOW_SHARE * (len(ordered) - 1))]


def median_ns(side: Sequence[Process]) -> float | None:
    """Return the median of the processes, or None for no process."""
    return statistics.median(process.time_ns for process in side) if side else None


def differences(base: Side, head: Side) -> list[float]:
    """Return HEAD - BASE in logarithms, of each round that both sides have.

    A processor of a virtual machine is up to twice as slow for milliseconds to minutes, and not
    both of two at once. Processes of equal views differed by 4 to 29 % when they were measured one
    after the other, and by 0.8 to 5 % when they took their samples in turns on one processor.
    """
    before = {process.round: process for process in base}
    return [difference(before[after.round], after) for after in head if after.round in before]


def difference(base: Process, head: Process) -> float:
    """Return HEAD - BASE in logarithms, of two processes that took their samples in turns.

    It is the median over neighboring samples, or between the fastest samples of few calls.
    """
    pairs = [
        (math.log(before), math.log(after))
        for before, after in zip(base.samples_ns, head.samples_ns, strict=False)
        if before > 0 and after > 0
    ]
    if not pairs:
        return math.log(head.time_ns) - math.log(base.time_ns)
    if base.many_calls and head.many_calls:
        return statistics.median(after - before for before, after in pairs)
    befores, afters = zip(*pairs, strict=True)
    return _fastest(afters) - _fastest(befores)


def _fastest(samples: Sequence[float]) -> float:
    return statistics.fmean(sorted(samples)[: max(1, len(samples) // FASTEST)])
