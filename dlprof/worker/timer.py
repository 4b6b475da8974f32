"""Timed loops: the one place where a clock is read around a statement.

The statement stands in the loop as it is, with no call around it, and its result is dropped in
the loop, as in user code. The cost of the empty loop is measured in the same process and taken
off. ``perf_counter_ns`` is the clock.
"""

from __future__ import annotations

import gc
import itertools
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

MIN_SAMPLE_NS = 1_000_000
"""A sample lasts at least this long: the clock's 60-140 ns are then under 0.02 % of it."""
MIN_SAMPLES = 5
MAX_SAMPLES = 60
LONG_NS = 1_000_000_000
"""A statement that takes this long is timed once: the clock and a warm-up are nothing beside it,
and what tells its noise are the other processes."""

Loop = Callable[[int], int]
"""Runs a statement n times; returns the time of all of them in ns."""


@dataclass(frozen=True)
class Backlog:
    """What a statement leaves behind that returns before its work is done.

    ``drain`` waits for it by running the statement ``calls`` times more, and returns the ns that it
    waited. ``most_loops`` is how many turns may leave work behind at once: what is in flight holds
    memory.
    """

    drain: Callable[[], int]
    most_loops: int
    calls: int = 1


def _nothing_left() -> int:
    return 0


NO_BACKLOG = Backlog(_nothing_left, sys.maxsize, calls=0)


@dataclass(frozen=True)
class Timing:
    """Samples of ns per call, each the mean of ``loops`` calls, with the loop's cost taken off."""

    loops: int
    samples_ns: list[float]
    page_faults_per_call: float | None = None

    @property
    def median_ns(self) -> float:
        return statistics.median(self.samples_ns)


def compile_loop(statement: str, namespace: dict[str, Any]) -> Loop:
    """A loop over ``statement`` (one or more lines) in the names of ``namespace``."""
    body = "\n        ".join(statement.splitlines())
    text = (
        "def loop(_iterations, _clock):\n"
        "    _start = _clock()\n"
        "    for _ in _iterations:\n"
        f"        {body}\n"
        "    return _clock() - _start\n"
    )
    scope: dict[str, Any] = {}
    exec(compile(text, "<dlprof loop>", "exec"), namespace, scope)  # noqa: S102 - the probes' own text
    loop = scope["loop"]

    def run(loops: int) -> int:
        elapsed: int = loop(itertools.repeat(None, loops), time.perf_counter_ns)
        return elapsed

    return run


@contextmanager
def collector_off() -> Iterator[None]:
    """Keep the garbage collector out of the samples."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def calibrate(
    loop: Loop, least_ns: int = MIN_SAMPLE_NS, backlog: Backlog = NO_BACKLOG
) -> tuple[int, int]:
    """Double the loops until one sample lasts ``least_ns``; also warms the statement.

    Returns the loops and the time of the last sample in ns, with the wait for what it left behind.
    """
    loops = 1
    while True:
        elapsed, waited = loop(loops), backlog.drain()
        if elapsed >= least_ns:
            # The first may have been cold or interrupted, and would be trusted for good.
            elapsed, waited = min(elapsed, loop(loops)), backlog.drain()
        behind = waited > elapsed and 2 * loops > backlog.most_loops
        if elapsed >= least_ns or behind:
            return loops, elapsed + waited
        loops *= 2


def sample(
    loop: Loop,
    budget_ns: int,
    off_ns: float = 0.0,
    once_from_ns: int | None = None,
    backlog: Backlog = NO_BACKLOG,
) -> Timing:
    """Time ``loop`` for about ``budget_ns``; ``off_ns`` per call is taken off.

    At least :data:`MIN_SAMPLES` samples are taken, whatever they cost; but a single one of a
    statement, warm already, that takes ``once_from_ns``. Each begins with nothing left behind.
    """
    with collector_off():
        if once_from_ns is not None:
            faults = page_faults()
            elapsed = loop(1)
            if elapsed >= once_from_ns:
                return Timing(1, [elapsed - off_ns], float(page_faults() - faults))
            backlog.drain()
        loops, elapsed = calibrate(loop, backlog=backlog)
        count = max(MIN_SAMPLES, min(MAX_SAMPLES, budget_ns // max(elapsed, 1)))
        faults, samples = page_faults(), []
        for _ in range(count):
            samples.append(loop(loops) / loops - off_ns)
            backlog.drain()
    calls = count * (loops + backlog.calls)  # other threads may touch the memory, and later
    return Timing(loops, samples, (page_faults() - faults) / calls)


def sample_in_turn(loops: Mapping[str, Loop], budget_ns: int, off_ns: float) -> dict[str, Timing]:
    """Time several loops for about ``budget_ns`` each, one sample of each after the other.

    What slows the machine for a while then slows all of them.
    """
    with collector_off():
        calibrated = {name: calibrate(loop) for name, loop in loops.items()}
        elapsed = sum(elapsed for _, elapsed in calibrated.values())
        count = max(MIN_SAMPLES, min(MAX_SAMPLES, budget_ns * len(loops) // max(elapsed, 1)))
        samples: dict[str, list[float]] = {name: [] for name in loops}
        faults = dict.fromkeys(loops, 0)
        for name, loop in list(loops.items()) * count:
            before = page_faults()
            samples[name].append(loop(calibrated[name][0]) / calibrated[name][0] - off_ns)
            faults[name] += page_faults() - before
    return {
        name: Timing(calibrated[name][0], times, faults[name] / (count * calibrated[name][0]))
        for name, times in samples.items()
    }


def page_faults() -> int:
    """Minor page faults of this process so far."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


_loop_cost: list[float] = []


def loop_cost_ns() -> float:
    """Cost of one turn of the empty loop, measured once per process."""
    if not _loop_cost:
        timing = sample(compile_loop("pass", {}), budget_ns=20_000_000)
        _loop_cost.append(timing.median_ns)
    return _loop_cost[0]


def clock_cost_ns() -> float:
    """Median time between two reads of the clock in a row."""
    clock = time.perf_counter_ns
    return statistics.median(-(clock() - clock()) for _ in range(501))
