"""Reference costs: how fast is this machine at what no framework has a part in?

An empty call, a memcpy of a fixed size, and a fixed piece of Python. They are measured in a
process of their own, so that they change nothing for the conversions; two sessions of one machine
at different speeds differ in them as they do in everything.
"""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

from dlprof.worker import timer

MEMCPY_BYTES = 4 * 2**20
LOW_SHARE = 10
"""The tenth percentile stands for the process."""

WORKLOAD = """\
_found = {}
for _n in range(50):
    _found[_n % 7] = (_n, str(_n))
_found = sorted(_found.items())"""
"""Integers, text, tuples, a dictionary and a sort; never to be changed, or sessions that were
measured before and after are of two machines."""

Reference = dict[str, Any]


def measure(budget_ns: int) -> Reference:
    """Times in ns per call of each reference, in this process."""
    return {
        "empty_call_ns": _low_ns("_call()", {"_call": _nothing}, budget_ns),
        "python_ns": _low_ns(WORKLOAD, {}, budget_ns),
        "memcpy_ns": _memcpy_ns(budget_ns),
        "memcpy_bytes": MEMCPY_BYTES,
    }


def _nothing() -> None:
    pass


def _memcpy_ns(budget_ns: int) -> float:
    with mmap.mmap(-1, MEMCPY_BYTES) as source, mmap.mmap(-1, MEMCPY_BYTES) as target:
        views = [ctypes.c_char.from_buffer(memory) for memory in (target, source)]
        to, from_ = map(ctypes.addressof, views)
        for address in (to, from_):
            ctypes.memset(address, 1, MEMCPY_BYTES)  # unwritten pages are all one page of zeros
        names = {"_move": ctypes.memmove, "_to": to, "_from": from_, "_size": MEMCPY_BYTES}
        found = _low_ns("_move(_to, _from, _size)", names, budget_ns)
        views.clear()  # the mapping cannot be closed while it is looked at
        return found


def _low_ns(statement: str, names: dict[str, Any], budget_ns: int) -> float:
    """A low sample, and not the middle: what disturbs a process only ever adds time."""
    loop = timer.compile_loop(statement, names)
    # The loop's own cost stays in: taken off, a disturbed measurement of it could leave nothing.
    samples = sorted(timer.sample(loop, budget_ns).samples_ns)
    return samples[len(samples) // LOW_SHARE]
