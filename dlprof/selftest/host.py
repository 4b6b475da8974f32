"""The synthetic framework on the host: arrays on NumPy's memory, and queues that run work.

An array that depends on queued work is ready once its queue has run it; until then its memory
holds zeros. The functions at the end are its imports: innocent ones, and one for each fault.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from weakref import WeakKeyDictionary, finalize

import numpy

ALIGNMENT = 64
default_queue = ThreadPoolExecutor(1)
other_queue = ThreadPoolExecutor(1)
"""Each runs work in order on a thread of its own, as a stream of a device does."""


class Array:
    """Numbers in memory, and the work that makes them."""

    def __init__(self, data: Any, work: Future[None] | None = None, masked: bool = False) -> None:
        self.data = data
        self.work = work
        self.masked = masked
        self.shape = data.shape
        self.dtype = data.dtype
        self.strides = data.strides

    @property
    def address(self) -> int:
        return int(self.data.ctypes.data)

    @property
    def writable(self) -> bool:
        return bool(self.data.flags.writeable)

    def wait(self) -> Array:
        if self.work is not None:
            self.work.result()
        return self

    def get(self) -> Any:
        """Return a copy of the values as they are now."""
        return self.data.copy()

    def fill(self, value: int) -> None:
        """Overwrite all elements after the queued work, and wait."""
        default_queue.submit(self.data.fill, value).result()

    def after(self, work_ns: int) -> Array:
        """Return the same values in an array that is there after ``work_ns`` on the queue."""
        return _queued(default_queue, self, work_ns)

    def used(self) -> Array:
        """Add the rows around each row. It takes many times as long as a view."""
        result = copied(self.wait().data)
        for shift in range(1, 5):
            result.data[shift:] += self.data[:-shift]
            result.data[:-shift] += self.data[shift:]
        return result

    def every_second(self) -> Array:
        return Array(self.data[..., ::2])

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, stream: Any = None, max_version: Any = None) -> Any:
        """Raise a TypeError for any other keyword, as an older producer does."""
        return self.data.__dlpack__(**({"max_version": max_version} if max_version else {}))

    def to_dlpack(self) -> Any:
        """Return a versioned capsule, which no consumer asked for."""
        return self.wait().__dlpack__(max_version=(1, 0))


def copied(values: Any) -> Array:
    """Copy ``values`` to new memory at a multiple of 64 bytes, in the same order."""
    block = numpy.empty(values.nbytes + ALIGNMENT, "uint8")
    start = -block.ctypes.data % ALIGNMENT
    flat = block[start : start + values.nbytes].view(values.dtype)
    data = flat.reshape(values.shape, order="F" if values.flags.fnc else "C")
    data[...] = values
    return Array(data)


def array(values: Any) -> Array:
    """Return a new array with a copy of ``values``, read-only if they are."""
    result = copied(numpy.asarray(values))
    result.data.flags.writeable = values.flags.writeable
    result.masked = numpy.ma.is_masked(values)
    return result


def _queued(queue: ThreadPoolExecutor, source: Array, delay_ns: int) -> Array:
    """Return a copy that a queue makes after a while; it holds both arrays until then."""
    result = copied(numpy.zeros(source.shape, source.dtype)).data

    def run() -> None:
        if delay_ns:
            time.sleep(delay_ns / 1e9)
        result[...] = source.data

    return Array(result, queue.submit(run))


# Imports

MARK = 3
SLOW_NS = 200_000
EARLY_NS = 2_000_000

defaults = {"dtype": "", "jammed": ""}
"""A setting that no innocent import changes."""
_leaks: list[Any] = []
_buffers: dict[Any, Array] = {}
_refused: list[Array] = []
_converted: set[int] = set()
"""Processes in which ``hang_after_fork`` has returned."""
_copies: WeakKeyDictionary[Array, Array] = WeakKeyDictionary()


def view(source: Array) -> Array:
    """Innocent: shares the memory, keeps it, and depends on the same work."""
    return Array(source.data, source.work, source.masked)


def copy(source: Array) -> Array:
    """Innocent: waits for the values and copies them once."""
    return copied(source.wait().data)


def queued_copy(source: Array) -> Array:
    """Innocent: copies on the queue, where later writes of the source come after it."""
    return _queued(default_queue, source, 0)


def copy_twice(source: Array) -> Array:
    """Fault: a copy of a copy, both alive at once."""
    first = copy(source)
    return copy(first)


def sync(source: Array) -> Array:
    """Fault: a view that makes the host wait for the queue without need."""
    default_queue.submit(int).result()
    return view(source)


def race(source: Array) -> Array:
    """Fault: a view that forgets the queued work."""
    return Array(source.data)


def race_and_wait(source: Array) -> Array:
    """Fault: copies at once, and waits for the queue only then."""
    result = copied(source.data)
    source.wait()
    return result


def leak(source: Array) -> Array:
    """Fault: keeps every result for good."""
    result = view(source)
    _leaks.append(result)
    return result


def keep_open(source: Array) -> Array:
    """Fault: a view that opens a file for good."""
    os.open(os.devnull, os.O_RDONLY)
    return view(source)


def dangle(source: Array) -> Array:
    """Fault: a view that does not keep the memory alive."""
    size = source.wait().data.nbytes
    memory = (ctypes.c_char * size).from_address(source.address)
    return Array(numpy.frombuffer(memory, source.dtype).reshape(source.shape))


def take_along(source: Array) -> Array:
    """Fault: a view that spoils the memory of its source when it goes."""
    result = view(source)
    finalize(result, lambda: source.data.flags.writeable and source.data.fill(MARK))
    return result


def flush_denormals(source: Array) -> Array:
    """Fault: a copy in which numbers below the normal ones of float32 are zero."""
    result = copy(source)
    if result.dtype == "float32":
        tiny = numpy.abs(result.data) < numpy.finfo("float32").tiny
        result.data[tiny] = 0
    return result


def crash_if_empty(source: Array) -> Array:
    """Fault: kills the process if there are no elements."""
    return view(source) if source.data.size else crash(source)


def keep_refused(source: Array) -> Array:
    """Fault: refuses complex numbers, and keeps these arrays."""
    if source.dtype.kind == "c":
        _refused.append(source)
        raise BufferError("no complex numbers")
    return view(source)


def asarray(source: Array, **forbidden: bool) -> Array:
    """Fault: a copy that ``copy=False`` forbids is refused by an error of no standard."""
    if forbidden:
        raise RuntimeError("it cannot be had without a copy")
    return copied(source.wait().data)


def no_copy(source: Array) -> Array:
    """Fault: says that memory cannot be shared, although it can."""
    raise ValueError("unable to avoid a copy")


def jam(source: Array) -> Array:
    """Fault: refuses complex numbers, and everything afterwards."""
    if source.dtype.kind == "c" or defaults["jammed"]:
        defaults["jammed"] = "yes"
        raise BufferError("no complex numbers")
    return view(source)


def row_major(source: Array) -> Array:
    """Fault: a copy in row-major order, also of column-major order."""
    return Array(numpy.array(source.data, order="C"))


def warn(source: Array) -> Array:
    """Fault: a copy that warns as if it were a view of memory that cannot be written."""
    warnings.warn("the array is not writable", UserWarning, stacklevel=2)
    return copy(source)


def set_default(source: Array) -> Array:
    """Fault: a view that makes the dtype of its source the one of new arrays."""
    defaults["dtype"] = source.dtype.name
    return view(source)


def forget_mask(source: Array) -> Array:
    """Fault: a view that does not say which elements are masked."""
    return Array(source.data, source.work)


def lock(source: Array) -> Array:
    """Fault: a view that cannot be written, of an array that can."""
    locked = source.data.view()
    locked.flags.writeable = False
    return Array(locked, source.work)


def lose_read_only(source: Array) -> Array:
    """Fault: a writable view of read-only memory."""
    data = source.data.view()
    data.flags.writeable = True
    return Array(data, source.work)


def narrow(source: Array) -> Array:
    """Fault: silently makes 32-bit numbers of 64-bit ones."""
    narrower = {"float64": "float32", "int64": "int32"}.get(source.dtype.name, source.dtype)
    return copied(source.wait().data.astype(narrower))


def wrong_strides(source: Array) -> Array:
    """Fault: reads rows as columns."""
    return copied(numpy.ascontiguousarray(source.wait().data.T).reshape(source.shape))


def lose_byte_order(source: Array) -> Array:
    """Fault: a view that forgets that the bytes of each number are swapped."""
    native = source.data.view(source.dtype.newbyteorder("="))
    return Array(native, source.work)


def change_source(source: Array) -> Array:
    """Fault: a copy that leaves its mark in the source."""
    result = copy(source)
    source.data.reshape(-1)[0] = MARK
    return result


def one_buffer(source: Array) -> Array:
    """Fault: copies into the same memory each time, although the last result may be alive."""
    key = source.shape, source.dtype.str
    buffer = _buffers.setdefault(key, copy(source))
    buffer.data[...] = source.data
    return Array(buffer.data)


def stale(source: Array) -> Array:
    """Fault: keeps a copy with its source, and gives it again after writes to the source."""
    if source not in _copies:
        _copies[source] = copy(source)
    return view(_copies[source])


def retry(source: Any) -> Array:
    """Fault: asks with keywords that this producer refuses, and then again without."""
    try:
        capsule = source.__dlpack__(copy=False)
    except TypeError:
        capsule = source.__dlpack__()
    data = numpy.from_dlpack(_Holder(capsule))
    return Array(data, getattr(source, "done", None))


def unversioned(source: Any) -> Array:
    """Fault: asks for no version, so that read-only memory is refused."""
    data = numpy.from_dlpack(_Holder(source.__dlpack__()))
    return Array(data, getattr(source, "done", None))


def from_capsule(capsule: Any) -> Array:
    """Innocent: copies the array of a capsule of either kind."""
    return copied(numpy.from_dlpack(_Holder(capsule)))


def legacy_capsule(capsule: Any) -> Array:
    """Fault: refuses a versioned capsule."""
    if "dltensor_versioned" in repr(capsule):
        raise BufferError("only capsules without a version")
    return from_capsule(capsule)


def by_strides(source: Any) -> Array:
    """Fault: refuses an array with strides, before it asks by the protocol."""
    if hasattr(source, "strides"):
        raise TypeError("strides of a foreign array")
    return Array(numpy.from_dlpack(source))


class _Holder:
    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def early(source: Array) -> Array:
    """Fault: returns long before the result is there; it has read its source by then."""
    return _queued(other_queue, copy(source), EARLY_NS)


def late(source: Array) -> Array:
    """Fault: still reads its source after it has returned, on a queue that orders no writes."""
    return _queued(other_queue, source.wait(), EARLY_NS)


def slow(source: Array) -> Array:
    """Fault: a view for which the host works much too long."""
    end = time.perf_counter_ns() + SLOW_NS
    while time.perf_counter_ns() < end:
        pass
    return view(source)


def copy_if_strided(source: Array) -> Array:
    """Fault: a view of contiguous memory, and a silent copy of all other memory."""
    return view(source) if source.data.flags.c_contiguous else copy(source)


def crash(source: Array) -> Array:
    """Fault: kills the process."""
    os.abort()


class _Late(Array):
    def __del__(self) -> None:
        if sys.is_finalizing():
            os.abort()


def crash_at_exit(source: Array) -> Array:
    """Fault: a view that kills the process if the interpreter exits while it is alive."""
    return _Late(source.data, source.work)


def hang_after_fork(source: Array) -> Array:
    """Fault: never returns in the child of a process in which it has returned."""
    if _converted and os.getpid() not in _converted:
        return hang(source)
    _converted.add(os.getpid())
    return view(source)


def hang(source: Array) -> Array:
    """Fault: never returns."""
    threading.Event().wait()
    raise AssertionError("an event was set that is never set")
