"""The synthetic framework on the host: arrays on their own memory, and queues that run work.

An array that depends on queued work is ``done`` once its queue has run it; until then its memory
holds zeros. Memory comes from ``malloc`` and is freed with its last owner, so that a result without
an owner really dangles. The functions at the end are its imports: innocent ones, and one for each
fault.
"""

from __future__ import annotations

import ctypes
import os
import queue
import threading
import time
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary, finalize

import numpy

_libc = ctypes.CDLL(None)
_libc.aligned_alloc.restype = ctypes.c_void_p
_libc.aligned_alloc.argtypes = (ctypes.c_size_t, ctypes.c_size_t)
_libc.free.argtypes = (ctypes.c_void_p,)


ALIGNMENT = 64


class Memory:
    """A block of the C library at a multiple of 64 bytes, freed with its last owner."""

    def __init__(self, size_bytes: int) -> None:
        self.address = _libc.aligned_alloc(
            ALIGNMENT, -(-max(size_bytes, 1) // ALIGNMENT) * ALIGNMENT
        )
        if not self.address:
            raise MemoryError(f"aligned_alloc of {size_bytes} bytes failed")

    def __del__(self) -> None:
        if getattr(self, "address", None):
            _libc.free(self.address)


class Queue:
    """Runs work in order on a thread of its own, as a stream of a device does."""

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        threading.Thread(target=self._run, daemon=True).start()

    def put(self, work: Callable[[], None]) -> threading.Event:
        """Queue ``work``; the event is set when it is done."""
        done = threading.Event()

        def run() -> None:
            work()
            done.set()

        self._work.put(run)
        return done

    def drain(self) -> None:
        self.put(lambda: None).wait()

    def _run(self) -> None:
        while True:
            self._work.get()()


class Array:
    """Numbers in memory, what keeps that memory, and an event that says when they are there."""

    def __init__(
        self,
        data: Any,
        owner: Any = None,
        done: threading.Event | None = None,
        masked: bool = False,
    ) -> None:
        self.data = data
        self.owner = owner
        self.done = done
        self.masked = masked
        self.shape = data.shape
        self.dtype = data.dtype
        self.strides = data.strides

    def every_second(self) -> Array:
        return Array(self.data[..., ::2], self.owner)

    def wait(self) -> Array:
        if self.done is not None:
            self.done.wait()
        return self

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, stream: Any = None, max_version: Any = None) -> Any:
        """A TypeError for any other keyword, as an older producer gives it."""
        return self.data.__dlpack__(**({"max_version": max_version} if max_version else {}))

    def to_dlpack(self) -> Any:
        """A versioned capsule, which no consumer asked for."""
        return self.wait().__dlpack__(max_version=(1, 0))


default_queue = Queue()
other_queue = Queue()


def from_address(address: int, shape: tuple[int, ...], dtype: Any) -> Any:
    """A NumPy view of memory that is kept alive elsewhere."""
    size = int(numpy.prod(shape, dtype=numpy.int64)) * numpy.dtype(dtype).itemsize
    if not size:
        return numpy.empty(shape, dtype)
    block = (ctypes.c_char * size).from_address(address)
    return numpy.frombuffer(block, dtype=dtype).reshape(shape)


def copied(values: Any) -> Array:
    memory = Memory(values.nbytes)
    data = from_address(memory.address, values.shape, values.dtype)
    if values.flags.fnc and values.ndim > 1:  # column-major and not row-major
        data = from_address(memory.address, values.shape[::-1], values.dtype).T
    data[...] = values
    return Array(data, memory)


def array(values: Any) -> Array:
    """A new array with a copy of ``values``, read-only if they are."""
    result = copied(numpy.asarray(values))
    result.data.flags.writeable = values.flags.writeable
    result.masked = numpy.ma.is_masked(values)
    return result


def blur(source: Array) -> Array:
    """Each row becomes the sum of the rows around it. It takes many times as long as a view."""
    result = copied(source.wait().data)
    for shift in range(1, 5):
        result.data[shift:] += source.data[:-shift]
        result.data[:-shift] += source.data[shift:]
    return result


def after_work(source: Array, unit_ns: int, work: int) -> Array:
    """The values of ``source`` in an array that is there after ``work`` units on the queue."""
    return _queued(default_queue, source, unit_ns * work)


def unrelated_work(unit_ns: int, work: int) -> threading.Event:
    """Work on another queue on which no array depends."""
    return other_queue.put(lambda: time.sleep(unit_ns * work / 1e9))


def _queued(on: Queue, source: Array, delay_ns: int) -> Array:
    """A copy that a queue makes after a while; it holds both arrays until then."""
    result = copied(numpy.zeros(source.shape, source.dtype))

    def run() -> None:
        if delay_ns:
            time.sleep(delay_ns / 1e9)
        result.data[...] = source.data

    # Another object: the queue holds the memory, and not the event that it sets.
    return Array(result.data, result.owner, on.put(run))


# Imports

MARK = 3
SLOW_NS = 200_000
EARLY_NS = 2_000_000

defaults = {"dtype": "", "jammed": ""}
"""A setting that no innocent import changes."""
_kept: list[Any] = []
_buffers: dict[Any, Array] = {}
_refused: list[Array] = []
_copies: WeakKeyDictionary[Array, Array] = WeakKeyDictionary()


def view(source: Array) -> Array:
    """Innocent: shares the memory, keeps its owner, and depends on the same event."""
    return Array(source.data, source.owner, source.done, source.masked)


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
    default_queue.drain()
    return view(source)


def device_sync(source: Array) -> Array:
    """Fault: makes the host wait for every queue."""
    default_queue.drain()
    other_queue.drain()
    return view(source)


def race(source: Array) -> Array:
    """Fault: a view that forgets what it depends on."""
    return Array(source.data, source.owner)


def race_and_wait(source: Array) -> Array:
    """Fault: copies what is there at once, and waits for the queue only then."""
    result = copied(source.data)
    source.wait()
    return result


def leak(source: Array) -> Array:
    """Fault: keeps every result for good."""
    result = view(source)
    _kept.append(result)
    return result


def keep_open(source: Array) -> Array:
    """Fault: a view that opens a file for good."""
    os.open(os.devnull, os.O_RDONLY)
    return view(source)


def dangle(source: Array) -> Array:
    """Fault: a view that does not keep the memory alive."""
    source.wait()
    return Array(from_address(source.data.ctypes.data, source.shape, source.dtype))


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
    """Fault: kills the process where there are no elements."""
    return view(source) if source.data.size else crash(source)


def keep_refused(source: Array) -> Array:
    """Fault: refuses complex numbers, and keeps what it refuses."""
    if source.dtype.kind == "c":
        _refused.append(source)
        raise BufferError("no complex numbers")
    return view(source)


def asarray(source: Array, **forbidden: bool) -> Array:
    """Fault: a copy that ``copy=False`` forbids is refused by an error of no standard."""
    if forbidden:
        raise RuntimeError("it cannot be had without a copy")
    return copied(source.wait().data)


def jam(source: Array) -> Array:
    """Fault: refuses complex numbers, and everything afterwards."""
    if source.dtype.kind == "c" or defaults["jammed"]:
        defaults["jammed"] = "yes"
        raise BufferError("no complex numbers")
    return view(source)


def row_major(source: Array) -> Array:
    """Fault: a copy in row-major order, also of column-major order."""
    return Array(numpy.array(source.data, order="C"))


def set_default(source: Array) -> Array:
    """Fault: a view that makes the dtype of its source the one of new arrays."""
    defaults["dtype"] = source.dtype.name
    return view(source)


def forget_mask(source: Array) -> Array:
    """Fault: a view that does not say which elements are masked."""
    return Array(source.data, source.owner, source.done)


def lock(source: Array) -> Array:
    """Fault: a view that cannot be written, of an array that can."""
    locked = source.data.view()
    locked.flags.writeable = False
    return Array(locked, source.owner, source.done)


def lose_read_only(source: Array) -> Array:
    """Fault: a writable view of read-only memory."""
    writable = from_address(source.data.ctypes.data, source.shape, source.dtype)
    return Array(writable, source, source.done)


def narrow(source: Array) -> Array:
    """Fault: silently makes 32-bit numbers of 64-bit ones."""
    narrower = {"float64": "float32", "int64": "int32"}.get(source.dtype.name, source.dtype)
    return copied(source.wait().data.astype(narrower))


def wrong_strides(source: Array) -> Array:
    """Fault: reads rows as columns."""
    return copied(numpy.ascontiguousarray(source.wait().data.T).reshape(source.shape))


def lose_byte_order(source: Array) -> Array:
    """Fault: a view that takes the bytes of each number for those of the machine's order."""
    native = source.data.view(source.dtype.newbyteorder("="))
    return Array(native, source.owner, source.done)


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
    return Array(buffer.data, buffer.owner)


def stale(source: Array) -> Array:
    """Fault: keeps a copy with its source, and gives it again after writes to the source."""
    if source not in _copies:
        _copies[source] = copy(source)
    kept = _copies[source]
    return Array(kept.data, kept.owner)


def retry(source: Any) -> Array:
    """Fault: asks with keywords that this producer refuses, and then once more without."""
    try:
        capsule = source.__dlpack__(copy=False)
    except TypeError:
        capsule = source.__dlpack__()
    data = numpy.from_dlpack(_Holder(capsule))
    return Array(data, source, getattr(source, "done", None))


def unversioned(source: Any) -> Array:
    """Fault: asks for no version, so that read-only memory is refused."""
    data = numpy.from_dlpack(_Holder(source.__dlpack__()))
    return Array(data, source, getattr(source, "done", None))


def from_capsule(capsule: Any) -> Array:
    """Innocent: copies what a capsule of either kind holds."""
    return copied(numpy.from_dlpack(_Holder(capsule)))


def legacy_capsule(capsule: Any) -> Array:
    """Fault: refuses a versioned capsule."""
    if "dltensor_versioned" in repr(capsule):
        raise BufferError("only capsules without a version")
    return from_capsule(capsule)


def by_strides(source: Any) -> Array:
    """Fault: refuses what has strides, before it asks by the protocol."""
    if hasattr(source, "strides"):
        raise TypeError("strides of a foreign array")
    return Array(numpy.from_dlpack(source), source)


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


def hang(source: Array) -> Array:
    """Fault: never returns."""
    threading.Event().wait()
    raise AssertionError("an event was set that is never set")
