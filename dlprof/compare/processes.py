"""The processes of a case: the independent samples of both sides, and the modes they ran in."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dlprof.runner import stats
from dlprof.runner.session import ProcessSamples, Result

MANY_CALLS = 100
"""A sample that is the mean of so many calls holds whatever the conversion does now and then."""

LOW_PERCENTILE = 10
"""The percentile of such samples that stands for a process.

Other programs, interrupts and the scheduler only ever add time. On two cores, of which others kept
more than one busy, medians of equal processes of views were 3 to 40 % apart, and these 1 to 4 %.
Slower code adds its time to every sample."""

FASTEST = 3
"""Of samples of few calls, one in so many is looked at: threads that wait for each other make
others up to a hundred times as slow, and neighbors are not disturbed alike."""

LEAST_SHARED = 2
"""A side shows a mode if so many of its processes are in it; fewer are an accident."""


@dataclass(frozen=True)
class Process:
    """What one fresh process of round ``round`` measured."""

    time_ns: float
    round: int = 0
    page_faults: float | None = None
    samples_ns: tuple[float, ...] = ()
    many_calls: bool = False
    """Whether each sample is the mean of :data:`MANY_CALLS` or more."""


Side = tuple[Process, ...]


def processes(result: Result, measure: str) -> Side:
    """The processes of ``measure``: ``ready``, ``host``, ``first_call`` or ``device``.

    A session keeps one value of the last two. The side is empty if nothing positive was measured.
    """
    if measure == "first_call":
        return _single(result.first_in_process_ns)
    if measure == "device":
        device = result.device_time
        return _single(device.warm.median_ns if device and device.warm else None)
    found = [
        Process(
            time_ns(process),
            process.round,
            process.page_faults_per_call,
            tuple(process.samples_ns),
            process.loops >= MANY_CALLS,
        )
        for process in _sampled(result, measure)
    ]
    return tuple(process for process in found if process.time_ns > 0)


def _single(value_ns: float | None) -> Side:
    return (Process(value_ns),) if value_ns is not None and value_ns > 0 else ()


def _sampled(result: Result, measure: str) -> list[ProcessSamples]:
    found = result.timed_ready if measure == "ready" else result.host_time
    return [process for process in (found.processes if found else ()) if process.samples_ns]


def steady(result: Result, measure: str) -> bool:
    """Whether other programs do not change the time: all its samples are of many calls."""
    sampled = _sampled(result, measure) if measure in ("ready", "host") else []
    return bool(sampled) and all(process.loops >= MANY_CALLS for process in sampled)


def time_ns(process: ProcessSamples) -> float:
    """The one value of a process: a low percentile of samples of many calls, else the median.

    If a sample is a few calls, one low sample may be a lucky call and no more.
    """
    if process.loops < MANY_CALLS:
        found = statistics.median(process.samples_ns)
    else:
        with np.errstate(over="ignore"):
            found = float(np.percentile(process.samples_ns, LOW_PERCENTILE))
    # The mean of two huge numbers may be more than a float can hold.
    return found if math.isfinite(found) else statistics.median_low(process.samples_ns)


def logs(side: Sequence[Process]) -> list[float]:
    return [math.log(process.time_ns) for process in side]


def median_ns(side: Sequence[Process]) -> float | None:
    """The median of the processes; None for no process."""
    return statistics.median(process.time_ns for process in side) if side else None


def modes_of_both(base: Side, head: Side) -> list[tuple[Side, Side]]:
    """The modes of both sides together, as the processes of BASE and of HEAD in each.

    Modes are far apart and differ in their page faults. States without a cause that can be seen are
    left to the test.
    """
    both = (*base, *head)
    found = stats.find_modes([p.time_ns for p in both], [p.page_faults for p in both])
    return [
        (
            tuple(base[index] for index in mode if index < len(base)),
            tuple(head[index - len(base)] for index in mode if index >= len(base)),
        )
        for mode in found
    ]


def shared_mode(modes: Sequence[tuple[Side, Side]]) -> tuple[Side, Side] | None:
    """The mode that both sides show most; None if they show none together."""
    if len(modes) == 1:
        return modes[0]
    found = [mode for mode in modes if min(map(len, mode)) >= LEAST_SHARED]
    return max(found, key=lambda mode: min(map(len, mode)), default=None)


@dataclass(frozen=True)
class Rounds:
    """The rounds that both sides have; ``differences`` are HEAD - BASE in logarithms.

     A processor of a virtual machine is up to twice as slow for milliseconds to minutes, and not
     both of two at once. Processes of equal views differed by 4 to 29 % when they were measured one
     after the other, and by 0.8 to 5 % when they took their samples in turns on one processor
    .
    """

    base: Side
    head: Side
    differences: tuple[float, ...]


def rounds_of(*parts: tuple[Side, Side]) -> Rounds:
    """Each process of HEAD beside the one of BASE of the same round, within each part."""
    pairs = []
    for base, head in parts:
        befores = {process.round: process for process in base}
        pairs += [(befores[after.round], after) for after in head if after.round in befores]
    return Rounds(
        tuple(before for before, _ in pairs),
        tuple(after for _, after in pairs),
        tuple(difference(before, after) for before, after in pairs),
    )


def difference(base: Process, head: Process) -> float:
    """HEAD - BASE in logarithms, of two processes that took their samples in turns.

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
    count = max(1, len(samples) // FASTEST)
    return statistics.fmean(sorted(samples)[:count])
