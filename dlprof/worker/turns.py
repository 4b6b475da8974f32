"""Turns: two processes take their samples of a case alternately, on the same processor.

Each processor of a virtual machine is slow for stretches of tens of ms to seconds, at its own
times. Two samples in a row on one processor meet the same stretch, so their ratio tells the two
processes apart. A process asks its parent before each sample.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from dlprof.worker import threads, timer
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
neighbors varied by 7 % within a round."""
FASTEST_OF, LONGEST_LOOK_NS = 20, 200_000_000
PIECE_NS, LEAST_PIECES, LONGEST_TURN_NS = 50_000, 5, 100_000_000
"""Calls of several threads are timed in pieces, and their median stands for the sample. One call in
which a thread has no processor takes 1 to 10 ms instead of 55 us. It made the mean of 64 calls 120
us, and the median stays 55 us. After a long turn, a few pieces are enough."""
WARM_SHARE = 4
"""One in so many calls is made unmeasured before a sample, since the caches hold the other
process's data."""


@dataclass(frozen=True)
class Turns:
    """The turns of a request. ``cpu`` is the processor for the samples, None for any.

    ``offset_bytes`` says where in a page the results begin: see :mod:`dlprof.worker.heap`.
    """

    channel: Channel
    identity: int
    cpu: int | None
    offset_bytes: int

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
        several, piece = threads.is_multithreaded(lambda: loop(loops)), 0
        if several:
            # The threads of the other process may spin by now, and a calibration of slow calls
            # gives samples of one or two.
            fastest_ns = max(_fastest_call_ns(loop, backlog), 1)
            loops = max(loops, FEW_CALLS_NS // fastest_ns)
            elapsed = loops * fastest_ns
            piece = max(1, PIECE_NS // fastest_ns)
        backlog.drain()  # else it runs in the turn of the other process
        with nullcontext() if several else self.turns.pinned():
            wanted = min(self.wait(loops), max(loops, backlog.most_loops))
            loops, elapsed = wanted, elapsed * wanted // loops
            were_others_there = timer.watch_others()
            taken = [_one(loop, loops, backlog, piece)]
            for _ in range(_count(budget_ns, elapsed) - 1):
                if several:
                    threads.wait_until_asleep()
                self.wait(loops)
                taken.append(_one(loop, loops, backlog, piece))
            if several:
                threads.wait_until_asleep()
        foreign = were_others_there()
        return timer.timing_of(taken, loops, loops + backlog.calls, off_ns, foreign)


def _one(loop: timer.Loop, loops: int, backlog: timer.Backlog, piece: int) -> timer.Taken:
    """One sample; in pieces of so many calls, or in one for 0."""
    if loops >= WARM_SHARE:
        loop(loops // WARM_SHARE)
        backlog.drain()
    run = partial(of_pieces, loop, loops, piece) if piece else partial(loop, loops)
    return timer.take(run, backlog.drain)


def of_pieces(loop: timer.Loop, loops: int, piece: int) -> int:
    """So many calls as their median piece has it."""
    begun, pieces = time.perf_counter_ns(), list[int]()
    for done in range(max(1, loops // piece)):
        if done >= LEAST_PIECES and time.perf_counter_ns() - begun > LONGEST_TURN_NS:
            break
        pieces.append(loop(piece))
    return round(statistics.median(pieces) * loops / piece)


def _count(budget_ns: int, sample_ns: int) -> int:
    fitting = budget_ns // max(sample_ns, 1)
    return max(timer.MIN_SAMPLES, min(MOST_TURNS, fitting), min(LEAST_TURNS, OVER * fitting))


def turns_of(request: dict[str, Any], answer: Answer) -> Turns | None:
    asked = request.get("turns")
    if asked is None:
        return None
    return Turns(answer.channel, answer.identity, asked["cpu"], asked["offset_bytes"])


def series_of(turns: Turns | None, name: str) -> Series | None:
    return None if turns is None else Series(turns, name)


def _fastest_call_ns(loop: timer.Loop, backlog: timer.Backlog) -> int:
    """Of some calls, and of more as long as a thread loses its processor meanwhile."""
    begun, fastest = time.perf_counter_ns(), sys.maxsize
    while time.perf_counter_ns() - begun < LONGEST_LOOK_NS:
        preempted = timer.counted().preempted
        for _ in range(FASTEST_OF):
            before = time.perf_counter_ns()
            loop(1)
            backlog.drain()
            fastest = min(fastest, time.perf_counter_ns() - before)
        if timer.counted().preempted == preempted:
            break
    return fastest


def _moved(cpus: set[int]) -> bool:
    """Whether this thread is on these processors from now on. Some systems forbid it."""
    try:
        os.sched_setaffinity(0, cpus)
    except OSError:
        return False
    return True
