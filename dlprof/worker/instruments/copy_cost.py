"""Copy cost: what does moving as many bytes cost at best on this machine?

A memcpy of the array's size between two buffers that have been touched before, in the same
process. Bytes are counted once (not read plus written), here and for the conversion, so the two
bandwidths compare. A copy into fresh memory also pays for its page faults, which are counted per
call by the timers.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from dlprof.worker import timer

if TYPE_CHECKING:
    from dlprof.device.cuda import Gpu

LARGEST = 256 * 2**20
"""Larger arrays are compared with a memcpy of this many bytes, to keep memory for the case."""

LEAST_NS = 1.0
"""Of a few bytes the copy is lost in the call."""

_cache: dict[tuple[int, bool], dict[str, Any]] = {}


def measure(size_bytes: int, budget_ns: int, gpu: Gpu | None = None) -> dict[str, Any]:
    """Time of one memcpy in ns and its bandwidth in GB/s (1e9 bytes per second).

    On the host, or from device to device where ``gpu`` is given. An array without bytes has no
    bandwidth.
    """
    size = min(size_bytes, LARGEST)
    if size == 0:
        return {"size_bytes": 0}
    key = (size, gpu is not None)
    if key not in _cache:
        times = _host_ns(size, budget_ns) if gpu is None else gpu.memcpy_ns(size)
        _cache[key] = {
            "memcpy_bytes": size,
            "memcpy_ns": times,
            "memcpy_gb_per_s": size / times,
        }
    return {"size_bytes": size_bytes, **_cache[key]}


def _host_ns(size: int, budget_ns: int) -> float:
    source = ctypes.create_string_buffer(size)
    target = ctypes.create_string_buffer(size)
    ctypes.memset(source, 1, size)  # pages that were never written are all one page of zeros
    ctypes.memset(target, 2, size)
    names = {"_move": ctypes.memmove, "_to": target, "_from": source, "_size": size}
    loop = timer.compile_loop("_move(_to, _from, _size)", names)
    nothing = timer.compile_loop("_move(_to, _from, 0)", names)
    # What it takes to call it at all is no part of the copy: 4 KiB are copied in less.
    call_ns = timer.sample(nothing, budget_ns // 4, 0.0).median_ns
    found = timer.sample(loop, budget_ns, call_ns)
    return max(found.median_ns, LEAST_NS)
