"""Synthetic frameworks on a CUDA device: real memory, streams and events, and planted faults.

Producer and consumer are two frameworks: each has a current stream and memory of its own. An array
names the stream whose work makes it. The device is a :class:`dlprof.device.cuda.Gpu`, so that tests
can put a simulated one in its place.

The functions at the end are the imports: innocent ones, and one for each fault. ``source`` is an
array of another framework, ``consumer`` the framework that takes it in.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy

from dlprof.device.cuda import LEGACY_STREAM, Gpu, open_gpu
from dlprof.selftest import host

GRAIN_BYTES = 512
"""Sizes are multiples of it, as in other frameworks' allocators."""


@dataclass(eq=False)
class Block:
    """Device memory that goes back to its pool with its last owner."""

    pool: BufferPool
    address: int
    size_bytes: int
    stream: int

    def __del__(self) -> None:
        self.pool.take_back(self)


class BufferPool:
    """Blocks by size and stream. None returns to the driver, whose ``free`` waits for work.

    A block is handed out again on its own stream only: work of its former owner then runs before
    work of the next one. The block that came back last goes out first, so that a result without an
    owner is overwritten soon.
    """

    def __init__(self, gpu: Gpu) -> None:
        self.bytes_in_use = 0
        self._gpu = gpu
        self._free: defaultdict[tuple[int, int], list[int]] = defaultdict(list)

    def take(self, size_bytes: int, stream: int) -> Block:
        """Return a block of at least ``size_bytes`` for work on ``stream``."""
        size = max(1, -(-size_bytes // GRAIN_BYTES)) * GRAIN_BYTES
        free = self._free[size, stream]
        address = free.pop() if free else self._gpu.allocate(size)
        self.bytes_in_use += size
        return Block(self, address, size, stream)

    def take_back(self, block: Block) -> None:
        self.bytes_in_use -= block.size_bytes
        self._free[block.size_bytes, block.stream].append(block.address)


USE_NS = 400_000
"""One use of an array: many times what a view costs."""


@functools.cache
def framework(name: str, private: bool) -> Framework:
    """Return the framework of this name, on the legacy default stream or on one of its own."""
    gpu = open_gpu()
    return Framework(gpu, gpu.new_stream(blocking=False) if private else LEGACY_STREAM)


class Framework:
    """One framework: a current stream, memory, and an event to order streams by."""

    def __init__(self, gpu: Gpu, stream: int = LEGACY_STREAM) -> None:
        self.gpu = gpu
        self.stream = stream
        self.pool = BufferPool(gpu)
        self.leaks: list[Any] = []
        self._event = gpu.event()

    @functools.cached_property
    def side_stream(self) -> int:
        """A second stream, which nothing orders with the current one."""
        return self.gpu.new_stream(blocking=False)

    @contextlib.contextmanager
    def use_stream(self, stream: int) -> Iterator[None]:
        before, self.stream = self.stream, stream
        try:
            yield
        finally:
            self.stream = before

    def order(self, first: int, then: int) -> None:
        """Let later work on ``then`` run after the work queued on ``first`` so far."""
        if first != then:
            # A wait keeps the record that it found, so the event can be recorded again.
            self.gpu.record(self._event, first)
            self.gpu.wait_event(then, self._event)

    def array(self, values: Any) -> Array:
        """Return an array with the values of a host array, and wait for them."""
        block = self.pool.take(values.nbytes, self.stream)
        self.gpu.synchronize(self.stream)  # the block's former owner may have queued work
        self.gpu.write(block.address, values.tobytes())
        return Array(self, block.address, values.shape, values.dtype, block, self.stream)

    def empty_like(self, source: Array, stream: int | None = None) -> Array:
        """Allocate memory like ``source``, for work on ``stream`` (else the current one)."""
        stream = self.stream if stream is None else stream
        block = self.pool.take(source.size_bytes, stream)
        return Array(self, block.address, source.shape, source.dtype, block, stream)

    def view(self, source: Array, owner: Any) -> Array:
        """Return the memory of ``source`` as an array of this framework; orders nothing."""
        return replace(source, framework=self, owner=owner, stream=self.stream)


@dataclass(eq=False)
class Array:
    """A contiguous array on the device; ``owner`` keeps the memory.

    Its values are there when ``stream`` has done the work that was queued when it was made.
    """

    framework: Framework
    address: int
    shape: tuple[int, ...]
    dtype: Any
    owner: Any
    stream: int
    writable = True

    @property
    def size_bytes(self) -> int:
        return math.prod(self.shape) * int(self.dtype.itemsize)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def wait(self) -> Array:
        self.framework.gpu.synchronize(self.stream)
        return self

    def get(self) -> Any:
        """Return the values as a host array, read after the work of the array's stream."""
        self.wait()
        data = self.framework.gpu.read(self.address, self.size_bytes)
        return numpy.ndarray(self.shape, self.dtype, data).copy()

    def fill(self, value: int) -> None:
        """Overwrite all elements after the work of the array's stream, and wait."""
        self.wait()
        values = numpy.full(self.shape, value, self.dtype)
        self.framework.gpu.write(self.address, values.tobytes())

    def after(self, work_ns: int) -> Array:
        """Return the same values in an array that is there after ``work_ns`` on the stream."""
        home = self.framework
        result = home.empty_like(self)
        home.gpu.spin(home.stream, work_ns)
        home.gpu.copy(result.address, self.address, self.size_bytes, home.stream)
        return result

    def used(self) -> Array:
        """Do an operation on the array."""
        return self.after(USE_NS)


SLOW_NS = 1_000_000
EARLY_NS = 2_000_000


def view(source: Array, consumer: Framework) -> Array:
    """Innocent: shares the memory, keeps its owner; an event orders the streams."""
    consumer.order(source.stream, consumer.stream)
    return consumer.view(source, source.owner)


def reuse(source: Array, consumer: Framework) -> Array:
    """Fault: a view whose owner gives the memory back while the consumer's stream may read it."""
    return view(source, consumer)


def copy(source: Array, consumer: Framework) -> Array:
    """Innocent: a queued copy, after the source is made and before it may be written.

    That needs both orders: the producer's stream knows nothing of a copy elsewhere.
    """
    consumer.order(source.stream, consumer.stream)
    result = _copied(source, consumer, consumer.stream)
    consumer.order(consumer.stream, source.stream)
    return result


def _copied(source: Array, consumer: Framework, stream: int) -> Array:
    """Copy on ``stream``; orders nothing."""
    result = consumer.empty_like(source, stream)
    consumer.gpu.copy(result.address, source.address, source.size_bytes, stream)
    return result


def sync(source: Array, consumer: Framework) -> Array:
    """Fault: makes the host wait for the producer's stream; an event would do."""
    consumer.gpu.synchronize(source.stream)
    return consumer.view(source, source.owner)


def device_sync(source: Array, consumer: Framework) -> Array:
    """Fault: makes the host wait for all work of the device."""
    consumer.gpu.synchronize_device()
    return consumer.view(source, source.owner)


def race(source: Array, consumer: Framework) -> Array:
    """Fault: a view that forgets the producer's stream. On one stream it is innocent."""
    return consumer.view(source, source.owner)


def legacy_race(source: Array, consumer: Framework) -> Array:
    """Fault: orders by the legacy default stream, for which non-blocking streams do not wait."""
    consumer.order(source.stream, LEGACY_STREAM)
    return consumer.view(source, source.owner)


def race_and_wait(source: Array, consumer: Framework) -> Array:
    """Fault: a copy without an order, after which the host waits for the whole device.

    On one stream it is innocent except for the wait.
    """
    result = _copied(source, consumer, consumer.stream)
    consumer.gpu.synchronize_device()
    return result


def from_host(values: Any, consumer: Framework) -> Array:
    """Fault, behind a copy to the host: brings the values back to the device."""
    return consumer.array(values)


def upload(values: Any, consumer: Framework, *, non_blocking: bool) -> Array:
    """Fault: waits for the stream, as the driver may do to copy memory that is not page-locked."""
    return consumer.array(values)


def to_host(source: Array, consumer: Framework) -> host.Array:
    """Fault: a copy on the host, which nothing asked for."""
    return host.Array(source.get())


def leak(source: Array, consumer: Framework) -> Array:
    """Fault: keeps device memory of the array's size for good."""
    consumer.leaks.append(copy(source, consumer))
    return view(source, consumer)


def dangle(source: Array, consumer: Framework) -> Array:
    """Fault: a view that does not keep the memory alive."""
    consumer.order(source.stream, consumer.stream)
    return consumer.view(source, None)


def early(source: Array, consumer: Framework) -> Array:
    """Fault: returns long before the result is there; its source may be written by then."""
    staged = copy(source, consumer)
    return _on_the_side(staged, consumer)


def late(source: Array, consumer: Framework) -> Array:
    """Fault: still reads its source after it has returned, and keeps no writer waiting."""
    return _on_the_side(source, consumer)


def _on_the_side(source: Array, consumer: Framework) -> Array:
    """Copy on the side stream after a while; the result holds its source."""
    stream = consumer.side_stream
    consumer.order(source.stream, stream)
    consumer.gpu.spin(stream, EARLY_NS)
    result = _copied(source, consumer, stream)
    result.owner = (result.owner, source.owner)
    return result


def slow(source: Array, consumer: Framework) -> Array:
    """Fault: a view for which the device works without need."""
    result = view(source, consumer)
    consumer.gpu.spin(consumer.stream, SLOW_NS)
    return result
