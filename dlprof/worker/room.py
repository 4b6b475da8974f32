"""Will the case fit into memory? Asked before it starts, since the kernel kills without a word."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dlprof.probes.base import ArraySpec

COPIES = 4
"""Arrays of the case's size alive at once: the source, its making, the result, and a host copy."""
RESERVE_BYTES = 256 * 2**20


class TooLarge(Exception):
    """The case needs more memory than there is; the message says how much."""


def check(spec: ArraySpec, arrays: float = COPIES, how: str = "") -> None:
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
