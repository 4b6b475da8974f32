"""How much host memory did something need at its peak? Two witnesses of the kernel's.

The high-water mark of the resident set (``VmHWM``) sees memory that is new to the process, also
what was given back meanwhile. It is blind to memory that a framework kept from an earlier call
and used again. The pages that were touched (``Referenced``) see that. Both begin anew when
``/proc/self/clear_refs`` is written; see ``proc_pid_clear_refs(5)``.
"""

from __future__ import annotations

import ctypes
import gc
from pathlib import Path
from typing import NamedTuple

from dlprof.worker.host_memory import resident_bytes

TOUCHED, HIGH_WATER = "1", "5"
"""What ``clear_refs`` forgets."""
LEAST_REUSED = 0.4
LEAST_REUSED_BYTES = 8 << 20
"""Below this, and this part of the source, touched pages are code and what allocators note down."""


class Mark(NamedTuple):
    """Bytes when it began. ``touched`` is None where the kernel does not count them."""

    resident: int
    touched: int | None


def begin() -> Mark:
    """Forget the peak so far. Raises OSError where the kernel does not let us."""
    give_back()
    resident = resident_bytes()
    reset()
    return Mark(resident, touched_bytes())


def needed_bytes(mark: Mark, source_bytes: int) -> int:
    """The most memory needed at once since ``mark``, beside a source that was there before.

    What the result lies in must still be alive. Raises OSError.
    """
    return risen_bytes(mark) + _reused_bytes(mark, source_bytes)


def risen_bytes(mark: Mark) -> int:
    """The most memory that was new to the process at once since ``mark``. Raises OSError."""
    return max(high_water_bytes() - mark.resident, 0)


def _reused_bytes(mark: Mark, source_bytes: int) -> int:
    """Pages touched that were resident before and are not the source's."""
    touched = touched_bytes()
    if touched is None or mark.touched is None:
        return 0
    new = max(resident_bytes() - mark.resident, 0)
    reused = touched - mark.touched - source_bytes - new
    return reused if reused >= max(LEAST_REUSED * source_bytes, LEAST_REUSED_BYTES) else 0


def give_back() -> None:
    """Return freed memory to the kernel: a copy into memory that is still resident hides."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def reset() -> None:
    """Forget the peak and which pages were touched. Raises OSError."""
    # In this order: what forgets the touched pages must not count as touching them.
    for what in (HIGH_WATER, TOUCHED):
        Path("/proc/self/clear_refs").write_text(what, encoding="ascii")


def high_water_bytes() -> int:
    """The resident set's peak. Raises OSError."""
    found = _kib(Path("/proc/self/status"), "VmHWM:")
    if found is None:
        raise OSError(0, "no VmHWM")
    return found


def touched_bytes() -> int | None:
    """Pages of this process that were touched; None where the kernel does not say."""
    try:
        return _kib(Path("/proc/self/smaps_rollup"), "Referenced:")
    except OSError:
        return None


def _kib(path: Path, name: str) -> int | None:
    for line in path.read_text(encoding="ascii").splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    return None
