"""Other programs: did they have a processor while something was timed, and for how long?"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

LEAST_NS = 30_000_000
"""Less is not seen: the kernel tells it in hundredths of a second."""
LEAST_SHARE = 0.25
"""...nor does less than this share of one processor count."""


def watch() -> Callable[[], bool | None]:
    """Gives what says whether they had one since; None where nobody knows."""
    begin, before = time.perf_counter_ns(), foreign_ns()

    def were_there() -> bool | None:
        now = foreign_ns()
        if before is None or now is None:
            return None
        return now - before >= max(LEAST_NS, LEAST_SHARE * (time.perf_counter_ns() - begin))

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
