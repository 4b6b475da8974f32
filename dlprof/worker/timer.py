"""Timed loops: the one place that reads a clock around a statement.

The statement stands in the loop with no call around it, and its result is dropped in the loop, as
in user code. The cost of the empty loop is measured in the same process and subtracted. The clock
is ``perf_counter_ns``. Counters of the kernel tell which samples other programs disturbed.
"""

from __future__ import annotations

import gc
import itertools
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from dlprof.worker.source_text import define

MIN_SAMPLE_NS = 1_000_000
"""A sample lasts at least this long: the clock's 60-140 ns are then under 0.02 % of it."""
MIN_SAMPLES = 5
MAX_SAMPLES = 60
TRIES = 3
"""Disturbed samples are taken again, this many times in all..."""
LAST_TRY_NS = 100_000_000
"""...but not after this long: a statement that waits for other threads would never end."""
SLICE_NS = 4_000_000
"""The cost of losing the processor once: 0.8 to 4.7 ms on a virtual machine with two processors.
If the kernel says how long threads waited for a processor, the larger number counts."""
LONG_NS = 1_000_000_000
"""A statement that takes this long is timed once. The clock and a warm-up cost little then, and
the other processes show its noise."""

Loop = Callable[[int], int]
"""Runs a statement n times; returns the time of all of them in ns."""
Found = TypeVar("Found")


@dataclass(frozen=True)
class Backlog:
    """Work that a statement leaves behind, if it returns before its work is done.

    ``drain`` runs the statement ``calls`` times more, waits, and returns the ns that it waited.
    ``most_loops`` limits the work in flight at once, since it holds memory.
    """

    drain: Callable[[], int]
    most_loops: int
    calls: int = 1


NO_BACKLOG = Backlog(lambda: 0, sys.maxsize, calls=0)


@dataclass(frozen=True)
class Timing:
    """Samples in ns per call, each the mean of ``loops`` calls, without the loop's cost.

    ``disturbed`` is the share of samples that other programs disturbed, see
    :meth:`Sample.is_disturbed`. It is 0 if no other program ran, and None if nothing says so.
    """

    loops: int
    samples_ns: list[float]
    page_faults_per_call: float | None = None
    disturbed: float | None = None

    @property
    def median_ns(self) -> float:
        return statistics.median(self.samples_ns)

    @property
    def is_disturbed(self) -> bool:
        """Whether the median is a disturbed sample."""
        return 2 * (self.disturbed or 0.0) >= 1


class InTurns(Protocol):
    """Samples a loop in turn with another process; see :mod:`dlprof.worker.turns`."""

    def wait(self, calls: int = 1) -> int:
        """Wait for this process's turn. Returns the least number of calls for a sample."""

    def timing(
        self, loop: Loop, budget_ns: int, off_ns: float, backlog: Backlog, least_ns: int
    ) -> Timing:
        """As :func:`sample`, in turns."""


@dataclass(frozen=True)
class Sample:
    """One sample, with the kernel's counts for this process during it.

    ``preempted`` is how often a thread lost its processor; ``own_ns`` is the processor time of
    all threads.
    """

    elapsed_ns: int
    page_faults: int
    preempted: int
    own_ns: int

    def is_disturbed(self, slice_ns: float, fastest_ns: int) -> bool:
        """Whether other programs took half of it, at ``slice_ns`` for each loss of a processor.

        Threads of one process also push each other aside, so the count alone proves nothing. The
        process must have run for half of the sample or less. If its threads spin while they wait,
        the fastest sample must have taken half as long or less.
        """
        is_preempted = self.preempted > 0 and 2 * self.preempted * slice_ns >= self.elapsed_ns
        return is_preempted and 2 * min(self.own_ns, fastest_ns) <= self.elapsed_ns


def take(run: Callable[[], int], drain: Callable[[], Any] = lambda: None) -> Sample:
    """Time ``run``, which returns its time in ns. Page faults of ``drain`` count with it."""
    before = counted()
    elapsed = run()
    now = counted()
    drain()
    faults = counted().page_faults - before.page_faults
    return Sample(elapsed, faults, now.preempted - before.preempted, now.own_ns - before.own_ns)


def join_samples(
    samples: Sequence[Sample],
    loops: int,
    calls: int | None = None,
    off_ns: float = 0.0,
    foreign: bool | None = None,
    slice_ns: float = SLICE_NS,
    *,
    calm_only: bool = False,
) -> Timing:
    """Join samples of ``loops`` calls each; ``calls`` also counts the drains' calls.

    ``foreign`` says whether other programs had a processor; None if unknown. If ``calm_only``,
    disturbed samples do not count where :data:`MIN_SAMPLES` others are there: programs only ever
    add time.
    """
    fastest_ns = min(sample.elapsed_ns for sample in samples)
    calm = [sample for sample in samples if not sample.is_disturbed(slice_ns, fastest_ns)]
    if calm_only and foreign and len(calm) >= MIN_SAMPLES:
        samples = calm
    disturbed = len(samples) - len(calm)
    return Timing(
        loops,
        [sample.elapsed_ns / loops - off_ns for sample in samples],
        sum(sample.page_faults for sample in samples) / (len(samples) * (calls or loops)),
        None if foreign is None else foreign * disturbed / len(samples),
    )


class Counted(NamedTuple):
    """For this process so far: minor page faults, losses of a processor, processor time."""

    page_faults: int
    preempted: int
    own_ns: int


def counted() -> Counted:
    """Ask the kernel for its counters: getrusage(2)."""
    import resource

    usage = resource.getrusage(resource.RUSAGE_SELF)
    own_s = usage.ru_utime + usage.ru_stime
    return Counted(usage.ru_minflt, usage.ru_nivcsw, round(own_s * 1e9))


def compile_loop(statement: str, namespace: dict[str, Any]) -> Loop:
    """Compile a loop over ``statement`` (one or more lines) in the names of ``namespace``."""
    body = "\n        ".join(statement.splitlines())
    text = (
        "def loop(_iterations, _clock):\n"
        "    _start = _clock()\n"
        "    for _ in _iterations:\n"
        f"        {body}\n"
        "    return _clock() - _start\n"
    )
    loop = define(text, namespace, "dlprof loop")["loop"]

    def run(loops: int) -> int:
        elapsed: int = loop(itertools.repeat(None, loops), time.perf_counter_ns)
        return elapsed

    return run


@contextmanager
def collector_off() -> Iterator[None]:
    """Keep the garbage collector out of the samples.

    Its switch stays as it is: so a conversion that switches the collector off is seen.
    """
    before = gc.get_threshold()
    gc.set_threshold(0)
    try:
        yield
    finally:
        if gc.get_threshold()[0] == 0:  # else a framework has set its own
            gc.set_threshold(*before)


def calibrate(
    loop: Loop, least_ns: int = MIN_SAMPLE_NS, backlog: Backlog = NO_BACKLOG
) -> tuple[int, int]:
    """Double the loops until one sample lasts ``least_ns``; also warms the statement.

    Returns the loops, and the ns of the last sample with the drain after it.
    """
    loops = 1
    while True:
        elapsed, waited = loop(loops), backlog.drain()
        if elapsed >= least_ns:
            # The first may have been cold or interrupted, and would decide for good.
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
    least_ns: int = MIN_SAMPLE_NS,
    turns: InTurns | None = None,
) -> Timing:
    """Time ``loop`` for about ``budget_ns``; ``off_ns`` per call is subtracted.

    Takes at least :data:`MIN_SAMPLES` samples of ``least_ns``, but only one of a warm statement
    that takes ``once_from_ns``. Each sample begins with an empty backlog. Short or disturbed
    samples are taken again, :data:`TRIES` times in all. With ``turns`` these samples count.
    """
    with collector_off():
        if once_from_ns is not None:
            if turns is not None:
                turns.wait()
            is_contended = watch_other_programs()
            once = take(lambda: loop(1))
            if once.elapsed_ns >= once_from_ns:
                return join_samples([once], 1, off_ns=off_ns, foreign=is_contended())
            backlog.drain()
        if turns is not None:
            return turns.timing(loop, budget_ns, off_ns, backlog, least_ns)
        timings = _least_disturbed(
            lambda: _samples({"": loop}, budget_ns, off_ns, backlog, least_ns)
        )
        return timings[""]


LONG_TURN_NS = 500_000_000
"""Several statements are timed once each if one of them takes this long."""
LEAST_BUDGET_NS = 100_000_000
"""For each of them: in a difference, a few disturbed samples show more than in a time."""


def sample_in_turn(loops: Mapping[str, Loop], budget_ns: int, off_ns: float) -> dict[str, Timing]:
    """Time several warm loops for about ``budget_ns`` each, one sample of each after the other.

    So a slow spell of the machine slows all of them. Tries again as :func:`sample` does.
    """
    budget_ns = max(budget_ns, LEAST_BUDGET_NS)
    with collector_off():
        once = {name: loop(1) for name, loop in loops.items()}
        if max(once.values()) >= LONG_TURN_NS:
            return {name: Timing(1, [float(ns)]) for name, ns in once.items()}
        return _least_disturbed(lambda: _samples(loops, budget_ns, off_ns))


def _samples(
    loops: Mapping[str, Loop],
    budget_ns: int,
    off_ns: float,
    backlog: Backlog = NO_BACKLOG,
    least_ns: int = MIN_SAMPLE_NS,
) -> tuple[dict[str, Timing], int]:
    """Return the timings, and how many of them are too short or disturbed."""
    calibrated = {name: calibrate(loop, least_ns, backlog) for name, loop in loops.items()}
    elapsed = sum(elapsed for _, elapsed in calibrated.values())
    count = max(MIN_SAMPLES, min(MAX_SAMPLES, budget_ns * len(loops) // max(elapsed, 1)))
    samples: dict[str, list[Sample]] = {name: [] for name in loops}
    is_contended, longest_wait = watch_other_programs(), watch_waits()
    for name in list(loops) * count:
        # Other threads may touch the memory later: page faults of the drain count too.
        samples[name].append(take(partial(loops[name], calibrated[name][0]), backlog.drain))
    # ...but a wait for a processor during the drain is no part of a sample.
    waited_ns = 0 if backlog.calls else longest_wait()
    preempted = sum(sample.preempted for times in samples.values() for sample in times)
    slice_ns, foreign = max(SLICE_NS, waited_ns / max(1, preempted)), is_contended()
    timings, short = dict[str, Timing](), 0
    for name, times in samples.items():
        calls = calibrated[name][0]
        every = calls + backlog.calls
        timings[name] = join_samples(times, calls, every, off_ns, foreign, slice_ns, calm_only=True)
        # Samples that last far less than they should: the calibration was disturbed.
        median_ns = statistics.median(sample.elapsed_ns for sample in times)
        short += 2 * median_ns < least_ns and 2 * calls <= backlog.most_loops
    return timings, short + sum(timing.is_disturbed for timing in timings.values())


def _least_disturbed(measure: Callable[[], tuple[Found, int]]) -> Found:
    """Return what ``measure`` gives in the try with the fewest faults.

    Threads that wait for a processor can make the first calls take a thousand times as long.
    """
    begin = time.perf_counter_ns()
    found, least = measure()
    for _ in range(TRIES - 1):
        if not least or time.perf_counter_ns() - begin >= LAST_TRY_NS:
            break
        again, faults = measure()
        if faults <= least:
            found, least = again, faults
    return found


_loop_cost: list[float] = []


def loop_cost_ns(turns: InTurns | None = None) -> float:
    """Return the cost of one turn of the empty loop, measured once per process."""
    if not _loop_cost:
        timing = sample(compile_loop("pass", {}), budget_ns=20_000_000, turns=turns)
        _loop_cost.append(timing.median_ns)
    return _loop_cost[0]


def clock_cost_ns() -> float:
    clock = time.perf_counter_ns
    return statistics.median(-(clock() - clock()) for _ in range(501))


LEAST_FOREIGN_NS = 30_000_000
"""Time of other programs counts from here on: the kernel tells it in hundredths of a second."""
LEAST_FOREIGN_SHARE = 0.25
"""...and from this share of one processor on."""


def watch_other_programs() -> Callable[[], bool | None]:
    """Return a function: have other programs had a processor since? None if unknown."""
    begin, before = time.perf_counter_ns(), foreign_ns()

    def is_contended() -> bool | None:
        now = foreign_ns()
        if before is None or now is None:
            return None
        share_ns = LEAST_FOREIGN_SHARE * (time.perf_counter_ns() - begin)
        return now - before >= max(LEAST_FOREIGN_NS, share_ns)

    return is_contended


def watch_waits() -> Callable[[], int]:
    """Return a function: how many ns has a thread of this process waited for a processor since?

    The longest wait counts; 0 if the kernel does not say.
    """
    before = waited_ns()

    def longest_ns() -> int:
        return max((now - before.get(name, 0) for name, now in waited_ns().items()), default=0)

    return longest_ns


def waited_ns() -> dict[str, int]:
    """Return how long each thread has waited for a processor; empty if the kernel does not say.

    The second number of ``/proc/self/task/*/schedstat`` (sched-stats of the kernel).
    """
    waited = {}
    for stat in Path("/proc/self/task").glob("*/schedstat"):
        with suppress(OSError, ValueError, IndexError):  # the thread may have ended
            waited[stat.parent.name] = int(stat.read_text(encoding="ascii").split()[1])
    return waited


def foreign_ns() -> int | None:
    """Return the processor time that the machine and its host gave to other processes.

    None if the kernel does not say: proc(5), the first line of ``/proc/stat``.
    """
    try:
        words = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()
        # Guests' time is part of users' time. Idle and iowait belong to no program.
        user, nice, system, _, _, irq, softirq, steal = (int(word) for word in words[1:9])
    except (OSError, ValueError):
        return None
    busy = user + nice + system + irq + softirq + steal
    return busy * (1_000_000_000 // os.sysconf("SC_CLK_TCK")) - time.process_time_ns()
