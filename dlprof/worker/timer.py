"""Timed loops: the one place where a clock is read around a statement.

The statement stands in the loop as it is, with no call around it, and its result is dropped in
the loop, as in user code. The cost of the empty loop is measured in the same process and taken
off. ``perf_counter_ns`` is the clock. What the kernel says of other programs tells which samples
are disturbed.
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

MIN_SAMPLE_NS = 1_000_000
"""A sample lasts at least this long: the clock's 60-140 ns are then under 0.02 % of it."""
MIN_SAMPLES = 5
MAX_SAMPLES = 60
TRIES = 3
"""Where the samples are of something else, they are taken again so often in all..."""
LAST_TRY_NS = 100_000_000
"""...but not after so long: what waits for other threads would never come to an end."""
SLICE_NS = 4_000_000
"""What it costs to lose the processor once: 0.8 to 4.7 ms on one virtual machine with two
processors, where it was measured. Where the kernel tells how long threads waited for one, it costs
as much as that if it is more."""
LONG_NS = 1_000_000_000
"""A statement that takes this long is timed once: the clock and a warm-up are nothing beside it,
and what tells its noise are the other processes."""

Loop = Callable[[int], int]
"""Runs a statement n times; returns the time of all of them in ns."""
Found = TypeVar("Found")


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
    """Samples of ns per call, each the mean of ``loops`` calls, with the loop's cost taken off.

    ``disturbed`` is the share of samples of which half or more is the time of other programs, as
    far as the kernel counts how often it took a processor from a thread of this process; 0 where no
    other program ran; None where nobody says or looked. Threads of one process push each other
    aside as well, so that count alone condemns no sample: see :meth:`Taken.is_disturbed`.
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
        """Whether that is so of the median."""
        return 2 * (self.disturbed or 0.0) >= 1


class InTurns(Protocol):
    """Samples a loop in turn with another process; see :mod:`dlprof.worker.turns`."""

    def wait(self, calls: int = 1) -> int:
        """Wait until it is this process's turn; how many calls a sample shall have at least."""

    def timing(
        self, loop: Loop, budget_ns: int, off_ns: float, backlog: Backlog, least_ns: int
    ) -> Timing:
        """As :func:`sample`, in turns."""


@dataclass(frozen=True)
class Taken:
    """One sample: how long, and what the kernel counted of this process meanwhile.

    ``own_ns`` is the processor time of all of its threads.
    """

    elapsed_ns: int
    page_faults: int
    preempted: int
    own_ns: int

    def is_disturbed(self, slice_ns: float, fastest_ns: int) -> bool:
        """Whether half of it is the time of other programs, at ``slice_ns`` each time.

        If it is, then this process ran for half of it or less, or, where threads spin while they
        wait for one that has no processor, the fastest sample took half as long or less.
        """
        taken = self.preempted > 0 and 2 * self.preempted * slice_ns >= self.elapsed_ns
        return taken and 2 * min(self.own_ns, fastest_ns) <= self.elapsed_ns


def take(run: Callable[[], int], after: Callable[[], Any] = lambda: None) -> Taken:
    """Time ``run``, which returns its time in ns; page faults of ``after`` count with it."""
    before = counted()
    elapsed = run()
    now = counted()
    after()
    faults = counted().page_faults - before.page_faults
    return Taken(elapsed, faults, now.preempted - before.preempted, now.own_ns - before.own_ns)


def timing_of(
    taken: Sequence[Taken],
    loops: int,
    calls: int | None = None,
    off_ns: float = 0.0,
    foreign: bool | None = None,
    waited_ns: float = 0.0,
) -> Timing:
    """Samples of ``loops`` calls each; with ``calls`` for each where more were made.

    ``foreign`` says whether other programs had a processor meanwhile; None if nobody knows.
    ``waited_ns`` is for how long a thread waited for a processor in all of them together.
    """
    slice_ns = max(SLICE_NS, waited_ns / max(1, sum(one.preempted for one in taken)))
    fastest_ns = min(one.elapsed_ns for one in taken)
    disturbed = sum(one.is_disturbed(slice_ns, fastest_ns) for one in taken)
    return Timing(
        loops,
        [one.elapsed_ns / loops - off_ns for one in taken],
        sum(one.page_faults for one in taken) / (len(taken) * (calls or loops)),
        None if foreign is None else foreign * disturbed / len(taken),
    )


class Counted(NamedTuple):
    """Of this process so far: minor page faults, processors taken from its threads, their time."""

    page_faults: int
    preempted: int
    own_ns: int


def counted() -> Counted:
    """What the kernel counts: getrusage(2)."""
    import resource

    usage = resource.getrusage(resource.RUSAGE_SELF)
    own_s = usage.ru_utime + usage.ru_stime
    return Counted(usage.ru_minflt, usage.ru_nivcsw, round(own_s * 1e9))


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
    least_ns: int = MIN_SAMPLE_NS,
    turns: InTurns | None = None,
) -> Timing:
    """Time ``loop`` for about ``budget_ns``; ``off_ns`` per call is taken off.

    At least :data:`MIN_SAMPLES` samples of ``least_ns`` are taken, whatever they cost; but a single
    one of a statement, warm already, that takes ``once_from_ns``. Each begins with nothing left
    behind. Where they are too short or disturbed they are taken again, :data:`TRIES` times in all;
    but with ``turns`` they are those of :meth:`InTurns.timing`.
    """
    with collector_off():
        if once_from_ns is not None:
            if turns is not None:
                turns.wait()
            were_others_there = watch_others()
            once = take(lambda: loop(1))
            if once.elapsed_ns >= once_from_ns:
                return timing_of([once], 1, off_ns=off_ns, foreign=were_others_there())
            backlog.drain()
        if turns is not None:
            return turns.timing(loop, budget_ns, off_ns, backlog, least_ns)
        return _least_disturbed(lambda: _samples(loop, budget_ns, off_ns, backlog, least_ns))


def _samples(
    loop: Loop, budget_ns: int, off_ns: float, backlog: Backlog, least_ns: int
) -> tuple[Timing, int]:
    """A try, and what is wrong with it: 0 for nothing."""
    loops, elapsed = calibrate(loop, least_ns, backlog)
    count = max(MIN_SAMPLES, min(MAX_SAMPLES, budget_ns // max(elapsed, 1)))
    were_others_there, longest_wait = watch_others(), watch_waits()
    # Other threads may touch the memory, and later: what is drained counts too.
    taken = [take(lambda: loop(loops), backlog.drain) for _ in range(count)]
    # ...but a wait for a processor while it is drained is no part of a sample.
    waited = 0 if backlog.calls else longest_wait()
    timing = timing_of(taken, loops, loops + backlog.calls, off_ns, were_others_there(), waited)
    short = _too_short(taken, least_ns) and 2 * loops <= backlog.most_loops
    return timing, short + timing.is_disturbed


def sample_in_turn(loops: Mapping[str, Loop], budget_ns: int, off_ns: float) -> dict[str, Timing]:
    """Time several loops for about ``budget_ns`` each, one sample of each after the other.

    What slows the machine for a while then slows all of them. They are tried again as in
    :func:`sample`.
    """
    with collector_off():
        return _least_disturbed(lambda: _samples_in_turn(loops, budget_ns, off_ns))


def _samples_in_turn(
    loops: Mapping[str, Loop], budget_ns: int, off_ns: float
) -> tuple[dict[str, Timing], int]:
    calibrated = {name: calibrate(loop) for name, loop in loops.items()}
    elapsed = sum(elapsed for _, elapsed in calibrated.values())
    count = max(MIN_SAMPLES, min(MAX_SAMPLES, budget_ns * len(loops) // max(elapsed, 1)))
    taken: dict[str, list[Taken]] = {name: [] for name in loops}
    were_others_there = watch_others()
    for name in list(loops) * count:
        taken[name].append(take(partial(loops[name], calibrated[name][0])))
    foreign = were_others_there()
    timings = {
        name: timing_of(times, calibrated[name][0], off_ns=off_ns, foreign=foreign)
        for name, times in taken.items()
    }
    short = sum(map(_too_short, taken.values()))
    return timings, short + sum(timing.is_disturbed for timing in timings.values())


def _too_short(taken: Sequence[Taken], least_ns: int = MIN_SAMPLE_NS) -> bool:
    """Whether samples last far less than they should: they were calibrated in a bad moment."""
    return 2 * statistics.median(one.elapsed_ns for one in taken) < least_ns


def _least_disturbed(measure: Callable[[], tuple[Found, int]]) -> Found:
    """What ``measure`` gives, tried again where something is wrong with it.

    Threads that wait for a processor can make the first calls take a thousand times as long.
    """
    begin = time.perf_counter_ns()
    tries: list[tuple[int, int, Found]] = []
    while not tries or (len(tries) < TRIES and time.perf_counter_ns() - begin < LAST_TRY_NS):
        found, wrong = measure()
        if not wrong:
            return found
        tries.append((wrong, -len(tries), found))
    return min(tries, key=lambda one: one[:2])[2]


_loop_cost: list[float] = []


def loop_cost_ns(turns: InTurns | None = None) -> float:
    """Cost of one turn of the empty loop, measured once per process."""
    if not _loop_cost:
        timing = sample(compile_loop("pass", {}), budget_ns=20_000_000, turns=turns)
        _loop_cost.append(timing.median_ns)
    return _loop_cost[0]


def clock_cost_ns() -> float:
    """Median time between two reads of the clock in a row."""
    clock = time.perf_counter_ns
    return statistics.median(-(clock() - clock()) for _ in range(501))


LEAST_FOREIGN_NS = 30_000_000
"""Less is not seen: the kernel tells it in hundredths of a second."""
LEAST_FOREIGN_SHARE = 0.25
"""...nor does less than this share of one processor count."""


def watch_others() -> Callable[[], bool | None]:
    """Gives what says whether other programs had a processor since; None where nobody knows."""
    begin, before = time.perf_counter_ns(), foreign_ns()

    def were_there() -> bool | None:
        now = foreign_ns()
        if before is None or now is None:
            return None
        return now - before >= max(
            LEAST_FOREIGN_NS, LEAST_FOREIGN_SHARE * (time.perf_counter_ns() - begin)
        )

    return were_there


def watch_waits() -> Callable[[], int]:
    """Gives what says for how many ns the thread of this process that waited longest for a
    processor did so since; 0 where the kernel does not tell.
    """
    before = waited_ns()

    def longest_ns() -> int:
        return max((now - before.get(name, 0) for name, now in waited_ns().items()), default=0)

    return longest_ns


def waited_ns(tasks: Path = Path("/proc/self/task")) -> dict[str, int]:
    """For how long each thread could have run and had no processor: sched-stats of the kernel, the
    second number of /proc/self/task/*/schedstat. Empty where there is none.
    """
    waited = {}
    for stat in tasks.glob("*/schedstat"):
        with suppress(OSError, ValueError, IndexError):  # a thread may be gone by now
            waited[stat.parent.name] = int(stat.read_text(encoding="ascii").split()[1])
    return waited


def foreign_ns() -> int | None:
    """Processor time of the machine, and what its host took, that was not this process's.

    None where the kernel does not say: proc(5), the first line of /proc/stat.
    """
    try:
        words = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()
        # Guests' time is in that of users already; idle and iowait are nobody's.
        user, nice, system, _, _, irq, softirq, steal = (int(word) for word in words[1:9])
    except (OSError, ValueError):
        return None
    busy = user + nice + system + irq + softirq + steal
    return busy * (1_000_000_000 // os.sysconf("SC_CLK_TCK")) - time.process_time_ns()
