"""What the kernel says of memory: may it be written, and is it a file's?

A write through an address asks nobody: of a read-only mapping the process dies, and one of a file
changes the file. Told on Linux only (proc_pid_maps(5)).
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

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
