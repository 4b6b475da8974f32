"""How much memory this process uses, in bytes: what malloc has handed out, what is resident.

Neither sees everything. Memory that malloc reuses does not become resident a second time; memory
that a framework maps by itself is none of malloc's.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path


def resident_bytes() -> int:
    """The resident set of this process."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


class _MallInfo2(ctypes.Structure):
    """``struct mallinfo2`` of glibc 2.33 and later; ten ``size_t``."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    )


def malloc_meter() -> Callable[[], int] | None:
    """A reading of what malloc has handed out and not got back; None where the C library has none.

    All arenas count, and what malloc maps for large blocks (``mallinfo(3)``).
    """
    mallinfo2 = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if mallinfo2 is None:
        return None
    mallinfo2.restype = _MallInfo2

    def malloc_bytes() -> int:
        info = mallinfo2()
        return int(info.uordblks + info.hblkhd)

    return malloc_bytes
