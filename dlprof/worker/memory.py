"""The memory of this process: reads and writes by address, and how much there is.

Frameworks refuse to write immutable arrays and cache host copies; memory does neither. So a write
by address needs care: on a read-only mapping the process dies, and a write to a file's mapping
changes the file (proc_pid_maps(5)).
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from dlprof.device.cuda import Gpu
from dlprof.probes.base import ArraySpec, Unsupported


def read(address: int, size_bytes: int, gpu: Gpu | None) -> bytes:
    """Read the bytes at ``address``; on the host if ``gpu`` is None."""
    return gpu.read(address, size_bytes) if gpu else ctypes.string_at(address, size_bytes)


def write(address: int, data: bytes, gpu: Gpu | None) -> None:
    """Put ``data`` at ``address``; on the host if ``gpu`` is None."""
    if gpu is None:
        ctypes.memmove(address, data, len(data))
    else:
        gpu.write(address, data)


NO_FILES = ("/dev/zero", "/dev/nvidia", "/dev/dri/", "/dev/kfd")
"""Names of mappings that no file backs: shared memory, and memory that a driver pinned."""


class Mapping(NamedTuple):
    """A line of ``/proc/self/maps``. ``shared``: a write goes to a file, or to other processes."""

    writable: bool
    shared: bool


def find_mapping(address: int | None, process: int | str = "self") -> Mapping | None:
    """Return the mapping that holds ``address``; None without an address or a mapping."""
    if address is None:
        return None
    with open(f"/proc/{process}/maps", encoding="utf-8", errors="replace") as lines:  # noqa: PTH123
        for line in lines:
            span, kind, _, _, _, *path = line.split(maxsplit=5)
            begin, _, end = span.partition("-")
            if int(begin, 16) <= address < int(end, 16):
                shared = kind.endswith("s") and not "".join(path).startswith(NO_FILES)
                return Mapping("w" in kind, shared)
    return None


def resident_bytes(process: int | str = "self") -> int:
    """Return the resident set. Memory that malloc reuses is already in it."""
    pages = Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


class _MallInfo2(ctypes.Structure):
    """``struct mallinfo2`` of glibc 2.33 and newer: ten ``size_t``."""

    _fields_ = (("numbers", ctypes.c_size_t * 10),)


def malloc_meter() -> Callable[[], int] | None:
    """Return a function that counts the bytes malloc has handed out; None without mallinfo2(3).

    It counts all arenas and the blocks that malloc maps. It does not count memory that a framework
    maps by itself.
    """
    mallinfo2 = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if mallinfo2 is None:
        return None
    mallinfo2.restype = _MallInfo2

    def malloc_bytes() -> int:
        numbers = mallinfo2().numbers
        return int(numbers[4] + numbers[7])  # hblkhd and uordblks: mapped blocks, and all others

    return malloc_bytes


def trim() -> None:
    """Return what malloc holds and nothing uses to the system (malloc_trim(3)), if it can."""
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if malloc_trim is not None:
        malloc_trim(0)


COPIES = 4
"""Arrays of the case's size alive at once: the source, its making, the result, and a host copy."""
LEAST_COPIES = 2
"""A source and its result. A path that needs more runs out of memory, which ends its worker."""
RESERVE_BYTES = 256 * 2**20
SMALL_BYTES = 1 << 20
"""Less than this is always available."""


class TooLarge(Unsupported):
    """The case needs more memory than there is; the message says how much."""


def check_room(spec: ArraySpec) -> None:
    """Raise :class:`TooLarge` if a conversion of ``spec`` does not fit into host memory."""
    check_more(LEAST_COPIES * spec.size_bytes)


def check_more(needed_bytes: int) -> None:
    """Raise :class:`TooLarge` if this much more memory is not available."""
    if not fits(needed_bytes):
        raise TooLarge(
            f"needs about {_gib(needed_bytes)} more memory and {_gib(RESERVE_BYTES)} to spare,"
            f" {_gib(available_bytes() or 0)} are available"
        )


def fits(needed_bytes: int) -> bool:
    """Whether this much more memory is available; True if the system does not say."""
    if needed_bytes < SMALL_BYTES:
        return True
    available = available_bytes()
    return available is None or needed_bytes + RESERVE_BYTES <= available


def available_bytes() -> int | None:
    """Return the memory available without swapping; None if the system does not say."""
    with suppress(OSError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return None


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:,.1f} GiB"


def span(source: Any) -> tuple[int, int] | None:
    """Return the first byte and the end of an array's memory, counted from its first element.

    None for an array without strides, which is contiguous. The arrays of a list lie apart: its
    first one counts.
    """
    if type(source) in (list, tuple):
        return span(source[0])
    try:
        if hasattr(source, "element_size"):
            strides, size = source.stride(), source.element_size()
            strides = [step * size for step in strides]
        else:
            strides, size = source.strides, source.itemsize
        ends = [(count - 1) * step for count, step in zip(source.shape, strides, strict=True)]
        empty = 0 in source.shape
    except (AttributeError, TypeError, ValueError):
        return None
    return (0, 1) if empty else (sum(min(e, 0) for e in ends), sum(max(e, 0) for e in ends) + size)
