"""The synthetic framework: arrays on memory of their own, and queues that run work in order.

An array that depends on queued work is ``done`` only when its queue has got to it; its memory holds
zeros until then. Memory comes from ``malloc`` and is freed with its last owner, so that a result
without an owner really dangles. The functions at the end are its imports: innocent ones, and one
for each fault.
"""

from __future__ import annotations

import ctypes
import os
import queue
import threading
import time
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numpy

_libc = ctypes.CDLL(None)
_libc.malloc.restype = ctypes.c_void_p
_libc.malloc.argtypes = (ctypes.c_size_t,)
_libc.free.argtypes = (ctypes.c_void_p,)


class Memory:
    """A block of ``malloc``; freed when nobody holds it."""

    def __init__(self, size_bytes: int) -> None:
        self.address = _libc.malloc(max(size_bytes, 1))
        if not self.address:
            raise MemoryError(f"malloc of {size_bytes} bytes failed")
        self.size_bytes = size_bytes

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

    def _run(self) -> None:
        while True:
            self._work.get()()


class Array:
    """An array of this framework: numbers in memory, and an event that says when they are there."""

    def __init__(
        self,
        data: Any,
        owner: Any = None,
        done: threading.Event | None = None,
    ) -> None:
        self.data = data
        self.owner = owner
        self.done = done
        self.shape = data.shape
        self.dtype = data.dtype

    def every_second(self) -> Array:
        """A view of every second element of the last axis."""
        return Array(self.data[..., ::2], self.owner)

    def wait(self) -> Array:
        if self.done is not None:
            self.done.wait()
        return self

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, stream: Any = None) -> Any:
        """As an old producer: a newer consumer's keywords are refused with a TypeError."""
        return self.data.__dlpack__()


default_queue = Queue()
other_queue = Queue()
_kept: list[Any] = []


def empty(shape: tuple[int, ...], dtype: Any) -> tuple[Any, Memory]:
    """A NumPy view of new memory of this framework, and the memory."""
    size = int(numpy.prod(shape, dtype=numpy.int64)) * numpy.dtype(dtype).itemsize
    memory = Memory(size)
    return from_address(memory.address, shape, dtype), memory


def from_address(address: int, shape: tuple[int, ...], dtype: Any) -> Any:
    """A NumPy view of memory that somebody else keeps alive."""
    size = int(numpy.prod(shape, dtype=numpy.int64)) * numpy.dtype(dtype).itemsize
    block = (ctypes.c_char * size).from_address(address)
    return numpy.frombuffer(block, dtype=dtype).reshape(shape)


def array(values: Any) -> Array:
    """An array of this framework with a copy of ``values``."""
    data, memory = empty(values.shape, values.dtype)
    data[...] = values
    data.flags.writeable = values.flags.writeable
    return Array(data, memory)


def blur(source: Array) -> Array:
    """Each row becomes the sum of those around it: work that takes many times as long as a view."""
    source.wait()
    data, memory = empty(source.shape, source.dtype)
    data[...] = source.data
    for shift in range(1, 5):
        data[shift:] += source.data[:-shift]
        data[:-shift] += source.data[shift:]
    return Array(data, memory)


def after_work(source: Array, unit_ns: int, work: int) -> Array:
    """An array with the values of ``source`` that is there after ``work`` units on the queue."""
    data, memory = empty(source.shape, source.dtype)
    data[...] = 0

    def run() -> None:
        time.sleep(unit_ns * work / 1e9)
        data[...] = source.data

    return Array(data, memory, default_queue.put(run))


def unrelated_work(unit_ns: int, work: int) -> threading.Event:
    """Work on another queue that no array depends on."""
    return other_queue.put(lambda: time.sleep(unit_ns * work / 1e9))


_buffers: dict[Any, Array] = {}
_copies: WeakKeyDictionary[Array, Array] = WeakKeyDictionary()

MARK = 3
SLOW_NS = 200_000
EARLY_NS = 2_000_000


def view(source: Array) -> Array:
    """Innocent: shares the memory, keeps its owner, and depends on the same event."""
    return Array(source.data, source.owner, source.done)


def copy(source: Array) -> Array:
    """Innocent: waits for the values and copies them once."""
    source.wait()
    data, memory = empty(source.shape, source.dtype)
    data[...] = source.data
    return Array(data, memory)


def queued_copy(source: Array) -> Array:
    """Innocent: copies on the queue, where later writes of the source come after it."""
    result, done = _later(default_queue, source, 0)
    return Array(result.data, result.owner, done)


def copy_twice(source: Array) -> Array:
    """Fault: a copy of a copy, both alive at once."""
    first = copy(source)
    return copy(first)


def sync(source: Array) -> Array:
    """Fault: a view that lets the host wait for the queue, although nothing asked for it."""
    default_queue.put(_nothing).wait()
    return view(source)


def device_sync(source: Array) -> Array:
    """Fault: lets the host wait for every queue there is."""
    for each in (default_queue, other_queue):
        each.put(_nothing).wait()
    return view(source)


def race(source: Array) -> Array:
    """Fault: a view that forgets what it depends on."""
    return Array(source.data, source.owner)


def race_and_wait(source: Array) -> Array:
    """Fault: copies what is there at once, and waits for the queue only then."""
    data, memory = empty(source.shape, source.dtype)
    data[...] = source.data
    source.wait()
    return Array(data, memory)


def leak(source: Array) -> Array:
    """Fault: keeps every result for ever."""
    result = view(source)
    _kept.append(result)
    return result


def dangle(source: Array) -> Array:
    """Fault: a view that does not keep the memory alive."""
    source.wait()
    return Array(from_address(source.data.ctypes.data, source.shape, source.dtype))


def lose_read_only(source: Array) -> Array:
    """Fault: a writable view of read-only memory."""
    writable = from_address(source.data.ctypes.data, source.shape, source.dtype)
    return Array(writable, source, source.done)


def narrow(source: Array) -> Array:
    """Fault: a 64-bit dtype becomes one of 32 bits without a word."""
    narrower = {"float64": "float32", "int64": "int32"}.get(source.dtype.name, source.dtype)
    source.wait()
    return copy(Array(source.data.astype(narrower)))


def wrong_strides(source: Array) -> Array:
    """Fault: rows are read as columns."""
    source.wait()
    return copy(Array(numpy.ascontiguousarray(source.data.T).reshape(source.shape)))


def change_source(source: Array) -> Array:
    """Fault: a copy that leaves its mark in the source."""
    result = copy(source)
    source.data.reshape(-1)[0] = MARK
    return result


def one_buffer(source: Array) -> Array:
    """Fault: copies into the same memory each time, whoever still holds the last result."""
    source.wait()
    key = source.shape, source.dtype.str
    if key not in _buffers:
        _buffers[key] = Array(*empty(source.shape, source.dtype))
    buffer = _buffers[key]
    buffer.data[...] = source.data
    return Array(buffer.data, buffer.owner)


def stale(source: Array) -> Array:
    """Fault: keeps a copy with its source, and gives it again whatever was written since."""
    if source not in _copies:
        _copies[source] = copy(source)
    kept = _copies[source]
    return Array(kept.data, kept.owner)


def retry(source: Any) -> Array:
    """Fault: asks with keywords that this producer refuses, and then once more without."""
    try:
        capsule = source.__dlpack__(max_version=(1, 0))
    except TypeError:
        capsule = source.__dlpack__()
    data = numpy.from_dlpack(_Holder(capsule))
    return Array(data, source, getattr(source, "done", None))


class _Holder:
    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def early(source: Array) -> Array:
    """Fault: returns long before the result is there; it has read its source by then."""
    result, done = _later(other_queue, copy(source), EARLY_NS)
    return Array(result.data, result.owner, done)


def late(source: Array) -> Array:
    """Fault: still reads its source after it has returned, on a queue that orders no writes."""
    result, done = _later(other_queue, source.wait(), EARLY_NS)
    return Array(result.data, result.owner, done)


def _later(queue: Queue, source: Array, delay_ns: int) -> tuple[Array, threading.Event]:
    """A copy that the queue makes after a while; it holds both arrays until it is done."""
    result = Array(*empty(source.shape, source.dtype))

    def run() -> None:
        if delay_ns:
            time.sleep(delay_ns / 1e9)
        result.data[...] = source.data

    return result, queue.put(run)


def slow(source: Array) -> Array:
    """Fault: a view for which the host works much longer than it must."""
    end = time.perf_counter_ns() + SLOW_NS
    while time.perf_counter_ns() < end:
        pass
    return view(source)


def copy_if_strided(source: Array) -> Array:
    """Fault: a view of what is contiguous, and a silent copy of all else."""
    return view(source) if source.data.flags.c_contiguous else copy(source)


def crash(source: Array) -> Array:
    """Fault: kills the process."""
    os.abort()


def hang(source: Array) -> Array:
    """Fault: never returns."""
    threading.Event().wait()
    raise AssertionError("an event that nobody sets was set")


def _nothing() -> None:
    """Stand at the end of a queue."""
