"""The machine during a run, from ``/proc``: processor time of other programs, and lost memory."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

PROC = Path("/proc")
NOTABLE_CORES = 0.25
"""Reports name other programs from this many cores on."""


def load_text(foreign: float, cores: int | str) -> str:
    return f"other programs kept {foreign:.1f} of {cores} cores busy"


def busy_notice(foreign: float | None, cores: int | str) -> str:
    """Return that other programs kept ``foreign`` cores busy; empty if that is not notable."""
    if foreign is None or foreign <= NOTABLE_CORES:
        return ""
    load = load_text(foreign, cores)
    return f"{load[0].upper()}{load[1:]}. Times may be too high."


def oom_kills() -> int:
    """Return how many processes the kernel ended so far because memory ran out; 0 if unknown."""
    try:
        lines = (PROC / "vmstat").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))


class Meter:
    """The time since its creation, and the cores that other programs kept busy in that time."""

    def __init__(self) -> None:
        self._clock_s, self._busy_s, self._processor_s = time.monotonic(), busy_s(), processor_s()

    def read(self) -> tuple[float, float | None]:
        """Return seconds, and the average of busy cores; None if the system does not say."""
        wall_s, now_s = time.monotonic() - self._clock_s, busy_s()
        if now_s is None or self._busy_s is None:
            return wall_s, None
        foreign_s = now_s - self._busy_s - (processor_s() - self._processor_s)
        return wall_s, max(foreign_s, 0.0) / wall_s


def processor_s() -> float:
    """Return the processor time of this process and its children, in seconds."""
    usage, children = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return usage.ru_utime + usage.ru_stime + children.ru_utime + children.ru_stime


def busy_s() -> float | None:
    """Return the busy time of the cores that we may use; None if the system does not say."""
    try:
        lines = (PROC / "stat").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    cpus = {f"cpu{core}" for core in os.sched_getaffinity(0)}
    ticks = 0
    for name, *fields in (line.split() for line in lines):
        if name in cpus:
            user, nice, system, _idle, _iowait, irq, softirq, *_ = map(int, fields)
            ticks += user + nice + system + irq + softirq
    return ticks / os.sysconf("SC_CLK_TCK")
