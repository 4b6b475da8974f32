"""The synthetic framework: arrays on memory of their own, and queues that run work in order.

An array that depends on queued work is ``done`` only when its queue has got to it; its memory holds
zeros until then. Memory comes from ``malloc`` and is freed with its last owner, so that a result
without an owner really dangles.
"""

from __future__ import annotations

import ctypes
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

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
