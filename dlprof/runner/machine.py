"""The machine during a run: processor time that was not ours, and memory that ran out.

All from ``/proc``.
"""

from __future__ import annotations

import os
import resource
import time
from dataclasses import dataclass, field
from pathlib import Path

PROC = Path("/proc")
NOTABLE_CORES = 0.25
"""Others that used less than this many cores are not worth a word."""


def load_text(foreign: float, cores: int | str) -> str:
    """What others used, in words."""
    return f"other programs kept {foreign:.1f} of {cores} cores busy"


@dataclass(frozen=True)
class Usage:
    """Seconds of processor time since some start: of all processes, and of ours."""

    busy_s: float | None
    own_s: float
    clock_s: float = field(default_factory=time.monotonic)


def usage() -> Usage:
    """Processor time used until now; ``busy_s`` is None where the system does not say."""
    own = sum(
        part.ru_utime + part.ru_stime
        for part in (
            resource.getrusage(resource.RUSAGE_SELF),
            resource.getrusage(resource.RUSAGE_CHILDREN),
        )
    )
    return Usage(_busy_s(), own)


def oom_kills() -> int:
    """How many processes the kernel has ended so far because memory ran out; 0 if it is silent."""
    try:
        lines = (PROC / "vmstat").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))


class Meter:
    """The time since it was made, and the processor time of other programs meanwhile."""

    def __init__(self) -> None:
        self._begun = usage()

    def read(self) -> tuple[float, float | None]:
        """Seconds, and core-seconds of other programs; None if the system does not tell.

        Children count as ours once they ended.
        """
        now, begun = usage(), self._begun
        wall_s = now.clock_s - begun.clock_s
        if now.busy_s is None or begun.busy_s is None:
            return wall_s, None
        foreign_s = (now.busy_s - begun.busy_s) - (now.own_s - begun.own_s)
        return wall_s, max(foreign_s, 0.0)


def _busy_s() -> float | None:
    try:
        lines = (PROC / "stat").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    # Only the cores that we may use: what happens on the others does not slow us down.
    ours = {f"cpu{core}" for core in os.sched_getaffinity(0)}
    ticks = [line.split() for line in lines if line.partition(" ")[0] in ours]
    return (
        sum(_busy_ticks(fields) for fields in ticks) / os.sysconf("SC_CLK_TCK") if ticks else None
    )


def _busy_ticks(fields: list[str]) -> int:
    user, nice, system, _idle, _iowait, irq, softirq, *_ = (int(field) for field in fields[1:])
    return user + nice + system + irq + softirq
