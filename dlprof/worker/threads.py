"""What the other threads of this process do: whether they share the work, and when they sleep."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

NOTABLE_NS, NOTABLE = 100_000, 0.01
"""Other threads have a part in the work if they take so long, and this share of the calling
thread's time. It is that little because a thread that waits for another, which has no processor on
a busy machine, spins: its own time then is many times the work."""
LOOK_S, MOST_LOOKS, ASLEEP = 0.001, 40, 0.2
"""How often it is asked whether the other threads sleep, and the share of the time that they may
use then."""
THREAD_CLOCK = 6
"""CPUCLOCK_PERTHREAD | CPUCLOCK_SCHED of Linux."""


def is_multithreaded(run: Callable[[], Any]) -> bool:
    """Whether other threads of this process have a notable part in what ``run`` does.

    Threads that share the work must not share one processor: a copy of 4 MiB by PyTorch then took
    7.4 ms instead of 75 us.
    """
    own, all_, others = time.thread_time_ns(), time.process_time_ns(), others_ns()
    run()
    own, all_ = time.thread_time_ns() - own, time.process_time_ns() - all_
    # Threads that have ended are in the time of the process only.
    return max(all_ - own, others_ns() - others) > max(NOTABLE * own, NOTABLE_NS)


def wait_until_asleep() -> None:
    """Wait until the other threads of this process use no processor.

    Threads of a pool spin after their work. Those of libgomp did for 9.5 ms, in which the copies of
    the other process, which had the turn, took 6 ms instead of 60 us.
    """
    for _ in range(MOST_LOOKS):
        before = others_ns()
        time.sleep(LOOK_S)
        if others_ns() - before < ASLEEP * LOOK_S * 1e9:
            return


def others_ns() -> int:
    """Processor time of the other threads so far.

    Linux adds the time of a thread on another processor to the clock of the process at a tick,
    every 4 ms. So in 226 of 300 looks of 1 ms that clock stood still while a thread of libgomp
    was spinning. The clock of the thread itself is up to date; its number is that of
    pthread_getcpuclockid(3).
    """
    try:
        numbers = [int(task.name) for task in Path("/proc/self/task").iterdir()]
    except OSError:
        return time.process_time_ns() - time.thread_time_ns()
    own, found = threading.get_native_id(), 0
    for number in numbers:
        if number != own:
            with suppress(OSError):  # the thread may have ended
                found += time.clock_gettime_ns(~number << 3 | THREAD_CLOCK)
    return found
