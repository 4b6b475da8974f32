"""Turns: two processes take their samples of a case alternately, on the same processor.

Each processor of a virtual machine is slow for stretches of tens of ms to seconds, at its own
times. Two samples in a row on one processor meet the same stretch, so their ratio tells the two
processes apart. Threads that share the work must not share one processor, and copies must begin at
the same place in a page (:func:`place_next_block`).
"""

from __future__ import annotations

import ctypes
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dlprof.worker import timer
from dlprof.worker.channel import Channel

TURN_NS = 500_000
"""A sample lasts at least this long: the clock is under 0.03 % of it, and stretches are longer."""
FEW_CALLS = 10
FEW_CALLS_NS = 2_000_000
"""A sample of fewer calls lasts longer: copies of 4 MiB meet caches that the other process filled.
Ratios of equal processes varied by 10 to 30 % in half a millisecond, and by 3 % in 2 ms."""
MOST_TURNS = 80
LEAST_TURNS = 20
OVERRUN = 4
"""As many long samples are taken even if they take up to four times the budget. Ratios of neighbors
varied by 7 % within a round."""
FASTEST_CALLS, LONGEST_LOOK_NS = 20, 200_000_000
PIECE_NS, LEAST_PIECES, LONGEST_TURN_NS = 50_000, 5, 100_000_000
"""Calls of several threads are timed in pieces, and their median stands for the sample. One call in
which a thread has no processor takes 1 to 10 ms instead of 55 us. It made the mean of 64 calls 120
us, and the median stays 55 us. After a long turn, a few pieces are enough."""
WARM_SHARE = 4
"""One call in four is made unmeasured before a sample, since the caches hold the other process's
data."""
NOTABLE_NS, NOTABLE = 100_000, 0.01
"""Other threads have a part in the work from this time on, and from this share of the calling
thread's time: on a busy machine that one spins while it waits, many times as long as the work."""
LOOK_S, MOST_LOOKS, ASLEEP = 0.001, 40, 0.2
"""Interval and number of the looks at sleeping threads, and the share of the time that they may use
then."""
SPIN_S = 0.2
"""No pool spins longer after its work: 200 ms by default of Intel's OpenMP."""
THREAD_CLOCK = 6
"""CPUCLOCK_PERTHREAD | CPUCLOCK_SCHED of Linux."""
PAGE_BYTES = 4096
LEAST_BYTES = 64 << 10
"""Smaller blocks come from lists of blocks of their size."""
LEAST_CHUNK_BYTES, HEADER_BYTES = 32, 8
"""In glibc's malloc, a block and the 8 bytes before it fill a chunk of 32 bytes or more."""
TRIES = 16


@dataclass(frozen=True)
class Turns:
    """Samples of one statement, which the other process takes too; both know it by ``name``.

    ``identity`` is the number of the request. ``cpu`` is the processor for the samples, None for
    any. ``offset_bytes`` says where in a page the results begin.
    """

    channel: Channel
    identity: int
    cpu: int | None
    offset_bytes: int
    name: str = ""
    program: int = 0
    """The process that runs the statement, if it is another one."""

    def wait(self, calls: int = 1) -> int:
        """Wait for the turn. Returns the calls of the sample: the parent may raise them."""
        return max(calls, self.channel.turn(self.identity, self.name, calls) or calls)

    def timing(
        self, loop: timer.Loop, budget_ns: int, off_ns: float, backlog: timer.Backlog, least_ns: int
    ) -> timer.Timing:
        """Take samples in the order of the turns, none of them again."""
        loops, elapsed = timer.calibrate(loop, min(least_ns, TURN_NS), backlog)
        if loops < FEW_CALLS:
            loops, elapsed = timer.calibrate(loop, FEW_CALLS_NS, backlog)
        # Pinned this late: threads that a framework starts at its first calls would inherit it.
        several, piece = self._is_multithreaded(lambda: loop(loops)), 0
        if several:
            # The threads of the other process may spin by now, and a calibration of slow calls
            # gives samples of one or two.
            fastest_ns = max(_fastest_call_ns(loop, backlog), 1)
            loops = max(loops, FEW_CALLS_NS // fastest_ns)
            elapsed = loops * fastest_ns
            piece = max(1, PIECE_NS // fastest_ns)
        backlog.drain()  # else it runs in the turn of the other process
        with nullcontext() if several else self._pinned():
            turn_loops = min(self.wait(loops), max(loops, backlog.most_loops))
            loops, elapsed = turn_loops, elapsed * turn_loops // loops
            is_contended = timer.watch_other_programs()
            fitting = budget_ns // max(elapsed, 1)
            count = max(min(MOST_TURNS, fitting), min(LEAST_TURNS, OVERRUN * fitting))
            samples = [_take_sample(loop, loops, backlog, piece)]
            for _ in range(max(timer.MIN_SAMPLES, count) - 1):
                if several:
                    wait_until_asleep()
                self.wait(loops)
                samples.append(_take_sample(loop, loops, backlog, piece))
            if several:
                wait_until_asleep()
        foreign = is_contended()
        return timer.join_samples(samples, loops, loops + backlog.calls, off_ns, foreign)

    @contextmanager
    def _pinned(self) -> Iterator[None]:
        """Keep this thread on the processor, if the system allows it."""
        before = os.sched_getaffinity(self.program)
        with suppress(OSError):
            if self.cpu in before:
                os.sched_setaffinity(self.program, {self.cpu})
        try:
            yield
        finally:
            with suppress(OSError):
                os.sched_setaffinity(self.program, before)

    def _is_multithreaded(self, run: Callable[[], Any]) -> bool:
        if self.program:
            return len(os.listdir(f"/proc/{self.program}/task")) > 1  # noqa: PTH208 - names alone
        return is_multithreaded(run)


def _take_sample(loop: timer.Loop, loops: int, backlog: timer.Backlog, piece: int) -> timer.Sample:
    """Take one sample; in pieces of ``piece`` calls unless that is 0."""
    if loops >= WARM_SHARE:
        loop(loops // WARM_SHARE)
        backlog.drain()
    run = partial(time_pieces, loop, loops, piece) if piece else partial(loop, loops)
    return timer.take(run, backlog.drain)


def time_pieces(loop: timer.Loop, loops: int, piece: int) -> int:
    """Time ``loops`` calls in pieces: their median, as if every piece had taken as long."""
    start_ns, pieces = time.perf_counter_ns(), list[int]()
    for count in range(max(1, loops // piece)):
        if count >= LEAST_PIECES and time.perf_counter_ns() - start_ns > LONGEST_TURN_NS:
            break
        pieces.append(loop(piece))
    return round(statistics.median(pieces) * loops / piece)


def _fastest_call_ns(loop: timer.Loop, backlog: timer.Backlog) -> int:
    """Return the fastest of some calls, and of more while a thread loses its processor."""
    start_ns, fastest = time.perf_counter_ns(), sys.maxsize
    while time.perf_counter_ns() - start_ns < LONGEST_LOOK_NS:
        preempted = timer.counted().preempted
        for _ in range(FASTEST_CALLS):
            before = time.perf_counter_ns()
            loop(1)
            backlog.drain()
            fastest = min(fastest, time.perf_counter_ns() - before)
        if timer.counted().preempted == preempted:
            break
    return fastest


def is_multithreaded(run: Callable[[], Any]) -> bool:
    """Whether other threads of this process have a notable part in what ``run`` does.

    Threads that share the work must not share one processor: a copy of 4 MiB by PyTorch then took
    7.4 ms instead of 75 us.
    """
    own, all_, other_threads = time.thread_time_ns(), time.process_time_ns(), other_threads_ns()
    run()
    own, all_ = time.thread_time_ns() - own, time.process_time_ns() - all_
    # Threads that have ended are in the time of the process only.
    return max(all_ - own, other_threads_ns() - other_threads) > max(NOTABLE * own, NOTABLE_NS)


def wait_until_asleep() -> bool:
    """Wait until the other threads of this process use no processor; whether they came to that.

    Threads of a pool spin after their work. libgomp's spun for 9.5 ms. Meanwhile it was the other
    process's turn, and its copies took 6 ms instead of 60 us.
    """
    for _ in range(MOST_LOOKS):
        before = other_threads_ns()
        time.sleep(LOOK_S)
        if other_threads_ns() - before < ASLEEP * LOOK_S * 1e9 and not _is_any_running():
            return True
    return False


def has_spinning_thread() -> bool:
    """Whether another thread of this process runs while nothing is called."""
    if wait_until_asleep():
        return False
    time.sleep(SPIN_S)
    return not wait_until_asleep()


def other_threads_ns() -> int:
    """Return the processor time of the other threads so far.

    The process's clock lags: Linux adds the time of a thread on another processor at a tick, every
    4 ms. The clock of the thread is up to date; its number follows pthread_getcpuclockid(3).
    """
    found = 0
    for thread in _other_threads():
        with suppress(OSError):  # the thread may have ended
            found += time.clock_gettime_ns(~int(thread.name) << 3 | THREAD_CLOCK)
    return found


def _other_threads() -> list[Path]:
    own = str(threading.get_native_id())
    return [thread for thread in Path("/proc/self/task").iterdir() if thread.name != own]


def _is_any_running() -> bool:
    """Whether another thread runs, or waits for a processor (proc(5), ``/proc/[pid]/stat``)."""
    for thread in _other_threads():
        with suppress(OSError):
            if (thread / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "R":
                return True
    return False


@contextmanager
def place_next_block(offset_bytes: int, size_bytes: int) -> Iterator[None]:
    """Inside, a block of ``size_bytes`` begins ``offset_bytes`` behind the start of a page.

    The time of a copy may depend on the address that malloc gives it: ``tf.constant(x)`` keeps a
    copy that begins at a multiple of 64 bytes, and copies any other once more. Every process has
    another heap, so two processes of equal code may differ by a factor of two.

    Small blocks are not placed, nor blocks that malloc maps by themselves. Blocks of this size stay
    there as long as each is freed before the next is made.
    """
    libc, blocks = ctypes.CDLL(None), list[int]()
    libc.malloc.restype = libc.realloc.restype = ctypes.c_void_p
    libc.malloc.argtypes = [ctypes.c_size_t]
    libc.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    for _ in range(TRIES if size_bytes >= LEAST_BYTES else 0):
        # Shrink each block that begins elsewhere: the rest of its chunk then begins there.
        block = libc.malloc(size_bytes)
        chunk = (offset_bytes - (block or 0)) % PAGE_BYTES
        if not block or not chunk:
            libc.free(block)
            break
        chunk += PAGE_BYTES if chunk < LEAST_CHUNK_BYTES else 0
        blocks.append(libc.realloc(block, chunk - HEADER_BYTES) or block)
    try:
        yield
    finally:
        for block in blocks:
            libc.free(block)
