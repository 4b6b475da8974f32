"""How much host memory did something need at its peak? The kernel's high-water mark says.

``VmHWM`` is the largest resident set since ``/proc/self/clear_refs`` was written, what was given
back meanwhile included; see ``proc_pid_clear_refs(5)``. It is blind to memory that a framework kept
from an earlier call and uses again: so freed memory is given back before, and arrays are larger
than what glibc's malloc ever keeps (``M_MMAP_THRESHOLD`` grows to 32 MiB). The pages that were
touched (``Referenced``) would see kept memory, and were tried: they rose by half an array more with
nothing running.
"""

from __future__ import annotations

import ctypes
import gc
import time
from pathlib import Path
from typing import NamedTuple

from dlprof.worker.host_memory import resident_bytes

HIGH_WATER = "5"
"""What ``clear_refs`` forgets."""
LOOK_S = 0.01
QUIET_LOOKS, MOST_LOOKS = 3, 100


class Mark(NamedTuple):
    """Resident bytes when it began."""

    resident: int


def begin() -> Mark:
    """Forget the peak so far. Raises OSError where the kernel does not let us."""
    give_back()
    resident = settled_bytes()
    reset()
    return Mark(resident)


def settled_bytes() -> int:
    """The resident set when it falls no more: frameworks free memory in threads of their own."""
    least, quiet = resident_bytes(), 0
    for _ in range(MOST_LOOKS):
        if quiet == QUIET_LOOKS:
            break
        time.sleep(LOOK_S)
        now = resident_bytes()
        quiet = quiet + 1 if now >= least else 0
        least = min(least, now)
    return least


def risen_bytes(mark: Mark) -> int:
    """The most memory that was new to the process at once since ``mark``. Raises OSError."""
    return max(high_water_bytes() - mark.resident, 0)


def give_back() -> None:
    """Return freed memory to the kernel: a copy into memory that is still resident hides."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def reset() -> None:
    """Forget the peak. Raises OSError."""
    Path("/proc/self/clear_refs").write_text(HIGH_WATER, encoding="ascii")


def high_water_bytes() -> int:
    """The resident set's peak. Raises OSError."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise OSError(0, "no VmHWM")
