"""The processes of a case: the independent samples of both sides, and the modes they ran in."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dlprof.compare.ranks import Floats
from dlprof.session import stats
from dlprof.session.model import ProcessSamples, Result, TimeMeasure

MANY_CALLS = 100
"""A sample that is the mean of so many calls holds whatever the conversion does now and then."""

LOW = 10
"""The percentile of such samples that stands for a process.

Other programs, interrupts and the scheduler only ever add time, to some samples or to most: on two
cores of which others kept more than one busy, medians of equal processes of views were 3 to 40 %
apart, and these 1 to 4 %. The slower code adds its time to every sample."""


@dataclass(frozen=True)
class Process:
    """What one fresh process found. ``round`` is when, counted in rounds."""

    time_ns: float
    round: int = 0
    page_faults: float | None = None
    samples_ns: tuple[float, ...] = ()
    many_calls: bool = False
    """Whether each sample is the mean of :data:`MANY_CALLS` or more."""

    def times(self, ratio: float) -> Process:
        """The same, ``ratio`` times as slow."""
        samples_ns = tuple(ratio * sample for sample in self.samples_ns)
        return replace(self, time_ns=ratio * self.time_ns, samples_ns=samples_ns)


Side = tuple[Process, ...]


def processes(result: Result, measure: str) -> Side:
    """The processes of ``measure`` (``ready``, ``host``, ``first_call`` or ``device``).

    A session keeps one value of the last two. Empty where it was not measured, or is not positive.
    """
    if measure == "first_call":
        return _single(result.first_in_process_ns)
    if measure == "device":
        device = result.device_time
        return _single(device.warm.median_ns if device and device.warm else None)
    times = [
        Process(
            time_ns(process),
            process.round,
            process.page_faults_per_call,
            tuple(process.samples_ns),
            process.loops >= MANY_CALLS,
        )
        for process in _sampled(result, measure)
    ]
    return tuple(process for process in times if process.time_ns > 0)


def _sampled(result: Result, measure: str) -> list[ProcessSamples]:
    found: TimeMeasure | None = result.ready_time if measure == "ready" else result.host_time
    if found is not None and found.same_as == "host_time":
        found = result.host_time
    return [process for process in (found.processes if found else ()) if process.samples_ns]


def steady(result: Result, measure: str) -> bool:
    """Whether other programs do not change the time: all its samples are of many calls."""
    sampled = _sampled(result, measure) if measure in ("ready", "host") else []
    return bool(sampled) and all(process.loops >= MANY_CALLS for process in sampled)


def time_ns(process: ProcessSamples) -> float:
    """The one value of a process: a low percentile of samples of many calls, else the median.

    Where a sample is a few calls, one low sample may be a lucky call and no more.
    """
    if len(process.samples_ns) == 1:  # of a history, which has many
        return process.samples_ns[0]
    if process.loops < MANY_CALLS:
        found = statistics.median(process.samples_ns)
    else:
        with np.errstate(over="ignore"):
            found = float(np.percentile(process.samples_ns, LOW))
    # Between numbers that nobody measured there may be none that a float can hold.
    return found if math.isfinite(found) else statistics.median_low(process.samples_ns)


def _single(value_ns: float | None) -> Side:
    return (Process(value_ns),) if value_ns is not None and value_ns > 0 else ()


def logs(side: Sequence[Process]) -> Floats:
    return np.log(np.array([process.time_ns for process in side], dtype=np.float64))


def median_ns(side: Sequence[Process]) -> float | None:
    """The median of the processes; None for no process."""
    return statistics.median(process.time_ns for process in side) if side else None


@dataclass(frozen=True)
class Alike:
    """The processes of both sides that ran in one mode. ``whole`` if that is all of them."""

    base: Side
    head: Side
    whole: bool = True

    @property
    def shared(self) -> bool:
        """Whether both sides show the mode, and not by accident."""
        return min(len(self.base), len(self.head)) >= LEAST_SHARED


LEAST_SHARED = 2
"""Processes a side that make a mode one that the side shows, and not an accident."""


def modes_of(base: Side, head: Side) -> tuple[Alike, ...]:
    """The modes of :func:`dlprof.session.stats.find_modes` over both sides.

    They are far apart, and with another number of page faults per call. States without a cause that
    can be seen are left to the test.
    """
    both = (*base, *head)
    modes = stats.find_modes([p.time_ns for p in both], [p.page_faults for p in both])
    if len(modes) == 1:
        return (Alike(base, head),)
    return tuple(
        Alike(
            tuple(base[index] for index in mode if index < len(base)),
            tuple(head[index - len(base)] for index in mode if index >= len(base)),
            whole=False,
        )
        for mode in modes
    )


def alike(base: Side, head: Side) -> Alike | None:
    """Like with like: the mode that both sides show most; None where they show none together."""
    modes = modes_of(base, head)
    if len(modes) == 1:
        return modes[0]
    found = [mode for mode in modes if mode.shared]
    return max(found, key=lambda one: min(len(one.base), len(one.head)), default=None)
