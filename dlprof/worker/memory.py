"""The memory of this process: at an address, what the kernel says of it, and how much there is.

Frameworks cache host copies of their arrays and refuse to write immutable ones; memory does not. A
write through an address asks nobody: of a read-only mapping the process dies, and one of a file
changes the file (proc_pid_maps(5)). The kernel kills without a word where memory is short.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dlprof.probes.base import ArraySpec

if TYPE_CHECKING:
    from dlprof.device.cuda import Gpu


def read(address: int, size_bytes: int, gpu: Gpu | None) -> bytes:
    """The bytes at ``address``; on the host where ``gpu`` is None."""
    if gpu is None:
        return ctypes.string_at(address, size_bytes)
    return gpu.read(address, size_bytes)


def write(address: int, data: bytes, gpu: Gpu | None) -> None:
    """Put ``data`` at ``address``; on the host where ``gpu`` is None."""
    if gpu is None:
        ctypes.memmove(address, data, len(data))
    else:
        gpu.write(address, data)


MAPS = Path("/proc/self/maps")
NO_FILES = ("/dev/zero", "/dev/nvidia", "/dev/dri/", "/dev/kfd")
"""What memory is called that processes share without a file, or that a driver has pinned."""


class Mapping(NamedTuple):
    """``shared``: a write goes to a file, or to who else has mapped it."""

    writable: bool
    shared: bool


def mapping_of(address: int | None) -> Mapping | None:
    """The mapping that holds ``address``; None where nobody says."""
    if address is None:
        return None
    try:
        lines = MAPS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    for line in lines:
        span, kind, _, _, _, *path = line.split(maxsplit=5)
        begin, _, end = span.partition("-")
        if int(begin, 16) <= address < int(end, 16):
            name = path[0] if path else ""
            return Mapping("w" in kind, kind.endswith("s") and not name.startswith(NO_FILES))
    return None


def is_read_only(address: int | None) -> bool:
    """Whether a write to ``address`` would end the process, as far as is known."""
    found = mapping_of(address)
    return found is not None and not found.writable


def is_shared(address: int | None) -> bool:
    """Whether a write to ``address`` would be seen outside, as far as is known."""
    found = mapping_of(address)
    return found is not None and found.shared


def resident_bytes() -> int:
    """The resident set. Memory that malloc reuses does not become resident a second time."""
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

    All arenas count, and what malloc maps for large blocks (``mallinfo(3)``). Memory that a
    framework maps by itself is none of malloc's.
    """
    mallinfo2 = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if mallinfo2 is None:
        return None
    mallinfo2.restype = _MallInfo2

    def malloc_bytes() -> int:
        info = mallinfo2()
        return int(info.uordblks + info.hblkhd)

    return malloc_bytes


COPIES = 4
"""Arrays of the case's size alive at once: the source, its making, the result, and a host copy."""
RESERVE_BYTES = 256 * 2**20


class TooLarge(Exception):
    """The case needs more memory than there is; the message says how much."""


def check_room(spec: ArraySpec, arrays: float = COPIES, how: str = "") -> None:
    """Raises :class:`TooLarge` where ``spec`` needs more host memory than is available.

    It needs so many ``arrays`` of its size; ``how`` says whence that is known.
    """
    needed = int(arrays * spec.size_bytes)
    if not fits(needed):
        word = "array" if arrays == 1 else "arrays"
        raise TooLarge(
            f"needs about {_gib(needed)} of memory ({arrays:g} {word} of {_gib(spec.size_bytes)}"
            f"{how}) and {_gib(RESERVE_BYTES)} to spare, {_gib(available_bytes() or 0)} are"
            " available"
        )


def fits(needed_bytes: int) -> bool:
    """Whether so much more memory can be had; taken for granted where nobody says."""
    available = available_bytes()
    return available is None or needed_bytes + RESERVE_BYTES <= available


def check_more(needed_bytes: int) -> None:
    """Raises :class:`TooLarge` where so much more memory cannot be had."""
    if not fits(needed_bytes):
        raise TooLarge(
            f"needs about {_gib(needed_bytes)} more memory, "
            f"{_gib(available_bytes() or 0)} are available"
        )


def available_bytes() -> int | None:
    """Memory that can be had without swapping, within the control group's limit."""
    found = [size for size in (_meminfo(), _cgroup()) if size is not None]
    return min(found, default=None)


def _meminfo() -> int | None:
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        return None
    for line in text.splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


ROOT = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")
V2 = ("memory.max", "memory.current", "inactive_file ")
V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ")


def _cgroup(root: Path = ROOT, own: Path = OWN) -> int | None:
    """What the tightest of the groups leaves that this process is in, from its own to the root."""
    found = (_left(folder, *names) for folder, names in _groups(root, own))
    return min((left for left in found if left is not None), default=None)


def _groups(root: Path, own: Path) -> Iterator[tuple[Path, tuple[str, str, str]]]:
    yield root, V2  # a container sees its own group there
    try:
        lines = own.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return
    for line in lines:
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        version, top = (V2, root) if not controllers else (V1, root / "memory")
        if controllers and "memory" not in controllers.split(","):
            continue
        parts = Path(path.lstrip("/")).parts
        for count in range(len(parts) + 1):
            yield top.joinpath(*parts[:count]), version


def _left(folder: Path, limit: str, used: str, cached: str) -> int | None:
    try:
        most, taken = (
            (folder / name).read_text(encoding="ascii").strip() for name in (limit, used)
        )
        pages = (folder / "memory.stat").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    if not (most.isdigit() and taken.isdigit()):
        return None
    # Cached files count as used and are given up at once when memory is wanted.
    given_up = sum(int(line.split()[1]) for line in pages if line.startswith(cached))
    return int(most) - int(taken) + given_up


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:,.1f} GiB"
