"""Copy cost: what does it cost at best to copy as many bytes on this machine?

A memcpy of the array's size between two touched buffers in the same process, or on the device.
Bytes are counted once, not as read plus written: ``memcpy_gb_per_s`` (1e9 bytes per second).

No copy of all bytes is much faster than ``least_ns``. On the host it is the fastest memcpy of one
processor's part if all of them copy. Such a part may lie in a cache that is too small for the whole
array, so a share of the whole memcpy would be too long.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

from dlprof.device.cuda import Gpu
from dlprof.worker import timer

LARGEST = 256 * 2**20
"""A larger array is compared with a memcpy of this many bytes, to leave memory for the case."""
LEAST_NS = 1.0
"""A copy of a few bytes is lost in the call."""

_cache: dict[tuple[int, bool], tuple[float, float]] = {}
"""By size, and whether it is on the device: the time of a memcpy, and the least of any copy."""


def measure(size_bytes: int, budget_ns: int, gpu: Gpu | None = None) -> dict[str, Any]:
    """Return the answer, measured once per size; from device to device if ``gpu`` is given."""
    size = min(size_bytes, LARGEST)
    if size == 0:
        return {"size_bytes": 0}
    key = (size, gpu is not None)
    if key not in _cache:
        _cache[key] = _on_host(size, budget_ns) if gpu is None else (gpu.memcpy_ns(size),) * 2
    ns, least_ns = _cache[key]
    return {
        "size_bytes": size_bytes,
        "memcpy_gb_per_s": size / ns,
        "least_ns": least_ns * size_bytes / size,
    }


def _on_host(size: int, budget_ns: int) -> tuple[float, float]:
    """Return the time of a memcpy, and the least time of any copy."""
    source = ctypes.create_string_buffer(size)
    target = ctypes.create_string_buffer(size)
    ctypes.memset(source, 1, size)  # all pages that were never written are one page of zeros
    ctypes.memset(target, 2, size)
    part = -(-size // len(os.sched_getaffinity(0)))
    names = {"_move": ctypes.memmove, "_to": target, "_from": source}
    nothing, some, all_ = (
        timer.compile_loop("_move(_to, _from, _size)", {**names, "_size": count})
        for count in (0, part, size)
    )
    # The call itself takes longer than a copy of 4 KiB.
    call_ns = timer.sample(nothing, budget_ns // 4, 0.0).median_ns
    ns = timer.sample(all_, budget_ns, call_ns).median_ns
    least_ns = min(timer.sample(some, budget_ns // 2, call_ns).samples_ns)
    return max(ns, LEAST_NS), max(least_ns, LEAST_NS)
