"""Look at and change an array's memory by address, on the host or on a device.

Frameworks cache host copies of their arrays and refuse to write immutable ones; memory does not.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

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
