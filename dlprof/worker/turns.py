"""Turns: two processes take their samples of a case alternately, on the same processor.

Each processor of a virtual machine is slow for stretches of tens of ms to seconds, at its own
times. Two samples in a row on one processor meet the same stretch, so their ratio tells the two
processes apart. A process asks its parent before each sample.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from dlprof.worker import timer
from dlprof.worker.channel import Answer, Channel

TURN_NS = 500_000
"""A sample lasts at least this long: the clock is under 0.03 % of it, and stretches are longer."""
FEW_CALLS = 10
FEW_CALLS_NS = 2_000_000
"""A sample of fewer calls lasts longer. Copies of 4 MiB, four in half a millisecond, meet caches
that the other process filled: ratios of equal processes then varied by 10 to 30 %, and by 3 % in
samples of 2 ms."""
MOST_TURNS = 80
LEAST_TURNS = 20
OVER = 4
"""That many long samples are taken even if they take up to this many times the budget. Ratios of
neighbors varied by 7 % within a round (docs/results/gate-noise.md)."""
NOTABLE_NS, NOTABLE = 100_000, 0.01
"""Other threads have a part in the calls if they take so long, and this share of the calling
thread's time. It is that little because a thread that waits for another, which has no processor on
a busy machine, spins: its own time then is many times the work."""
FASTEST_OF = 20
LOOK_S, MOST_LOOKS, ASLEEP = 0.001, 40, 0.2
"""How often it is asked whether the other threads sleep, and the share of the time that they may
use then."""
WARM_SHARE = 4
"""One in so many calls is made unmeasured before a sample, since the caches hold the other
process's data (docs/results/gate-noise.md)."""


@dataclass(frozen=True)
class Turns:
    """The turns of a request. ``cpu`` is the processor for the samples, None for any."""

    channel: Channel
    identity: int
    cpu: int | None

    @contextmanager
    def pinned(self) -> Iterator[None]:
        """Keep this thread on the processor, if the system allows it."""
        before = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
        if self.cpu not in before or not _moved({self.cpu}):
            yield
            return
        try:
            yield
        finally:
            _moved(before)


@dataclass(frozen=True)
class Series:
    """Samples of one statement, which the other process takes too; both know it by ``name``."""

    turns: Turns
    name: str

    def wait(self, calls: int = 1) -> int:
        """Wait for the turn. Returns the calls of the sample: the parent may raise them."""
        turns = self.turns
        return max(calls, turns.channel.turn(turns.identity, self.name, calls) or calls)

    def timing(
        self, loop: timer.Loop, budget_ns: int, off_ns: float, backlog: timer.Backlog, least_ns: int
    ) -> timer.Timing:
        """As :func:`dlprof.worker.timer.sample`; samples stay in the order of the turns.

        Nothing is taken again: that would put the two processes out of step.
        """
        loops, elapsed = timer.calibrate(loop, min(least_ns, TURN_NS), backlog)
        if loops < FEW_CALLS:
            loops, elapsed = timer.calibrate(loop, FEW_CALLS_NS, backlog)
        # Pinned this late: threads that a framework starts at its first calls would inherit it.
        several = _by_several_threads(loop, loops)
        if several:
            # The threads of the other process may spin by now, and a calibration of slow calls
            # gives samples of one or two.
            fastest_ns = min(_one_call_ns(loop, backlog) for _ in range(FASTEST_OF))
            loops = max(loops, FEW_CALLS_NS // max(fastest_ns, 1))
            elapsed = loops * fastest_ns
        backlog.drain()  # else it runs in the turn of the other process
        with nullcontext() if several else self.turns.pinned():
            wanted = min(self.wait(loops), max(loops, backlog.most_loops))
            loops, elapsed = wanted, elapsed * wanted // loops
            were_others_there = timer.watch_others()
            taken = [_one(loop, loops, backlog)]
            for _ in range(_count(budget_ns, elapsed) - 1):
                if several:
                    _until_threads_sleep()
                self.wait(loops)
                taken.append(_one(loop, loops, backlog))
            if several:
                _until_threads_sleep()
        foreign = were_others_there()
        return timer.timing_of(taken, loops, loops + backlog.calls, off_ns, foreign)


def _one(loop: timer.Loop, loops: int, backlog: timer.Backlog) -> timer.Taken:
    if loops >= WARM_SHARE:
        loop(loops // WARM_SHARE)
        backlog.drain()
    return timer.take(lambda: loop(loops), backlog.drain)


def _count(budget_ns: int, sample_ns: int) -> int:
    fitting = budget_ns // max(sample_ns, 1)
    return max(timer.MIN_SAMPLES, min(MOST_TURNS, fitting), min(LEAST_TURNS, OVER * fitting))


def turns_of(request: dict[str, Any], answer: Answer) -> Turns | None:
    asked = request.get("turns")
    return None if asked is None else Turns(answer.channel, answer.identity, asked["cpu"])


def series_of(turns: Turns | None, name: str) -> Series | None:
    return None if turns is None else Series(turns, name)


def _one_call_ns(loop: timer.Loop, backlog: timer.Backlog) -> int:
    before = time.perf_counter_ns()
    loop(1)
    backlog.drain()
    return time.perf_counter_ns() - before


def _by_several_threads(loop: timer.Loop, loops: int) -> bool:
    """Whether other threads of this process have a notable part in the calls.

    Threads that share the work must not share one processor: a copy of 4 MiB by PyTorch then took
    7.4 ms instead of 75 us.
    """
    own, all_ = time.thread_time_ns(), time.process_time_ns()
    loop(loops)
    own, all_ = time.thread_time_ns() - own, time.process_time_ns() - all_
    return all_ - own > max(NOTABLE * own, NOTABLE_NS)


def _until_threads_sleep() -> None:
    """Wait until the other threads of this process use no processor.

    Threads of a pool spin after their work. Those of libgomp did for 9.5 ms, in which the copies of
    the other process, which had the turn, took 6 ms instead of 60 us.
    """
    for _ in range(MOST_LOOKS):
        before = time.process_time_ns()
        time.sleep(LOOK_S)
        if time.process_time_ns() - before < ASLEEP * LOOK_S * 1e9:
            return


def _moved(cpus: set[int]) -> bool:
    """Whether this thread is on these processors from now on. Some systems forbid it."""
    try:
        os.sched_setaffinity(0, cpus)
    except OSError:
        return False
    return True
