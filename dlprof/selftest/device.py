"""Synthetic frameworks on a CUDA device: real memory, streams and events, and planted faults.

Producer and consumer are two frameworks: each has a current stream and memory of its own. An array
names the stream whose work makes it. The device is a :class:`dlprof.device.cuda.Gpu`, so that tests
can put a simulated one in its place.

The functions at the end are the imports: innocent ones, and one for each fault. ``source`` is an
array of another framework, ``consumer`` the framework that takes it in.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import threading
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy

from dlprof.device.cuda import LEGACY_STREAM, Gpu, open_gpu
from dlprof.probes import capsule

GRAIN_BYTES = 512
"""Sizes are multiples of it, as in other frameworks' allocators."""


@dataclass(eq=False)
class Block:
    """Device memory; goes back to its pool with its last owner."""

    pool: Pool
    address: int
    size_bytes: int
    stream: int

    def __del__(self) -> None:
        self.pool.take_back(self)


class Pool:
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
        """A block of at least ``size_bytes`` for work on ``stream``."""
        size = max(1, -(-size_bytes // GRAIN_BYTES)) * GRAIN_BYTES
        free = self._free[size, stream]
        address = free.pop() if free else self._gpu.allocate(size)
        self.bytes_in_use += size
        return Block(self, address, size, stream)

    def take_back(self, block: Block) -> None:
        self.bytes_in_use -= block.size_bytes
        self._free[block.size_bytes, block.stream].append(block.address)


CUDA = 2
"""``kDLCUDA`` of ``dlpack.h``."""
NAME = b"dltensor"
KINDS = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
"""Codes of ``dlpack.h`` by the kinds of NumPy's dtypes."""


class Handed:
    """What the capsules of one array point to, valid as long as this object lives.

    It has no deleter, which the specification allows: the array owns everything.
    """

    def __init__(
        self, address: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any
    ) -> None:
        lengths = ctypes.c_int64 * len(shape)
        self._shape, self._strides = lengths(*shape), lengths(*strides)
        self._managed = capsule.Managed()
        tensor = self._managed.tensor
        tensor.data = address
        tensor.device_type = CUDA
        tensor.ndim = len(shape)
        tensor.code = KINDS[dtype.kind]
        tensor.bits = 8 * dtype.itemsize
        tensor.lanes = 1
        tensor.shape = ctypes.cast(self._shape, ctypes.POINTER(ctypes.c_int64))
        tensor.strides = ctypes.cast(self._strides, ctypes.POINTER(ctypes.c_int64))

    def capsule(self) -> Any:
        return capsule.new_capsule(ctypes.addressof(self._managed), NAME, None)


USE_NS = 400_000
"""One use of an array: many times what a view costs."""
NO_ORDER = -1
"""DLPack's stream for a consumer that orders the work itself."""


@functools.cache
def named(name: str) -> Framework:
    """The framework of this name, at first on the legacy default stream."""
    return Framework(open_gpu())


@functools.cache
def private(name: str) -> Framework:
    """The framework of this name, on a non-blocking stream that it does not show."""
    gpu = open_gpu()
    return Framework(gpu, gpu.new_stream(blocking=False))


class Framework:
    """One framework: a current stream, memory, and an event to order streams by."""

    def __init__(self, gpu: Gpu, stream: int = LEGACY_STREAM) -> None:
        self.gpu = gpu
        self.stream = stream
        self.pool = Pool(gpu)
        self.kept: list[Any] = []
        self._event = gpu.event()

    @functools.cached_property
    def side_stream(self) -> int:
        """A second stream, which nothing orders with the current one."""
        return self.gpu.new_stream(blocking=False)

    @contextlib.contextmanager
    def on(self, stream: int) -> Iterator[None]:
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
        """An array with the values of a host array, which are there when this returns."""
        block = self.pool.take(values.nbytes, self.stream)
        self.gpu.synchronize(self.stream)  # the block's former owner may have queued work
        self.gpu.write(block.address, values.tobytes())
        shape, writable = values.shape, bool(values.flags.writeable)
        strides, dtype = contiguous(shape), values.dtype
        return Array(self, block.address, shape, strides, dtype, block, self.stream, writable)

    def empty_like(self, source: Array, stream: int | None = None) -> Array:
        """New memory for the values of ``source``, for work on ``stream`` (else the current)."""
        stream = self.stream if stream is None else stream
        block = self.pool.take(source.span_bytes, stream)
        return Array(self, block.address, source.shape, source.strides, source.dtype, block, stream)

    def view(self, source: Array, owner: Any) -> Array:
        """The memory of ``source`` as an array of this framework; orders nothing."""
        return replace(source, framework=self, owner=owner, stream=self.stream)


@dataclass(eq=False)
class Array:
    """An array on the device; ``strides`` are in elements, ``owner`` keeps the memory.

    Its values are there when ``stream`` has done the work that was queued when it was made.
    """

    framework: Framework
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: Any
    owner: Any
    stream: int
    writable: bool = True

    @functools.cached_property
    def span_bytes(self) -> int:
        """From the first element to the end of the last one, gaps included."""
        reach = sum((n - 1) * step for n, step in zip(self.shape, self.strides, strict=True))
        return int((reach + 1) * self.dtype.itemsize)

    @property
    def is_contiguous(self) -> bool:
        return self.strides == contiguous(self.shape)

    def wait(self) -> Array:
        self.framework.gpu.synchronize(self.stream)
        return self

    def get(self) -> Any:
        """The values as a host array, read after the work of the array's stream."""
        self.wait()
        data = self.framework.gpu.read(self.address, self.span_bytes)
        steps = [step * self.dtype.itemsize for step in self.strides]
        return numpy.ndarray(self.shape, self.dtype, data, strides=steps).copy()

    def fill(self, value: int) -> None:
        """Overwrite all elements after the work of the array's stream, and wait."""
        self.wait()
        values = numpy.full(self.span_bytes // self.dtype.itemsize, value, self.dtype)
        self.framework.gpu.write(self.address, values.tobytes())

    def every_second(self) -> Array:
        shape = (*self.shape[:-1], self.shape[-1] // 2)
        return replace(self, shape=shape, strides=(*self.strides[:-1], 2 * self.strides[-1]))

    def after(self, work_ns: int) -> Array:
        """The same values in an array that is there after ``work_ns`` on the stream."""
        home = self.framework
        result = home.empty_like(self)
        home.gpu.spin(home.stream, work_ns)
        home.gpu.copy(result.address, self.address, self.span_bytes, home.stream)
        return result

    def used(self) -> Array:
        """What an operation makes of the array."""
        return self.after(USE_NS)

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, 0

    def __dlpack__(self, *, stream: int | None = None) -> Any:
        """As an old producer: a TypeError for a newer consumer's keywords."""
        if stream != NO_ORDER:
            self.framework.order(self.stream, stream or LEGACY_STREAM)
        return self._handed.capsule()

    @functools.cached_property
    def _handed(self) -> Handed:
        return Handed(self.address, self.shape, self.strides, self.dtype)


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements of a contiguous array."""
    strides: list[int] = []
    step = 1
    for length in reversed(shape):
        strides.insert(0, step)
        step *= length
    return tuple(strides)


SLOW_NS = 1_000_000
EARLY_NS = 2_000_000


def view(source: Array, consumer: Framework) -> Array:
    """Innocent: shares the memory, keeps its owner; an event orders the streams."""
    consumer.order(source.stream, consumer.stream)
    return consumer.view(source, source.owner)


def copy(source: Array, consumer: Framework) -> Array:
    """Innocent: a queued copy, after the source is made and before it may be written.

    That needs both orders: the producer's stream knows nothing of a copy elsewhere.
    """
    consumer.order(source.stream, consumer.stream)
    result = _copied(source, consumer, consumer.stream)
    consumer.order(consumer.stream, source.stream)
    return result


def _copied(source: Array, consumer: Framework, stream: int) -> Array:
    """A copy on ``stream``, gaps included; orders nothing."""
    result = consumer.empty_like(source, stream)
    consumer.gpu.copy(result.address, source.address, source.span_bytes, stream)
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


def leak(source: Array, consumer: Framework) -> Array:
    """Fault: keeps device memory of the array's size for good."""
    consumer.kept.append(copy(source, consumer))
    return view(source, consumer)


def dangle(source: Array, consumer: Framework) -> Array:
    """Fault: a view that does not keep the memory alive."""
    consumer.order(source.stream, consumer.stream)
    return consumer.view(source, None)


def lose_read_only(source: Array, consumer: Framework) -> Array:
    """Fault: a writable view of an array that its framework calls read-only."""
    result = view(source, consumer)
    result.writable = True
    return result


def narrow(source: Array, consumer: Framework) -> Array:
    """Fault: silently makes 32-bit numbers of 64-bit ones.

    On the host: the device layer has no kernel that converts.
    """
    narrower = {"float64": "float32", "int64": "int32"}.get(source.dtype.name, source.dtype)
    return consumer.array(source.get().astype(narrower))


def wrong_strides(source: Array, consumer: Framework) -> Array:
    """Fault: a view that reads rows as columns."""
    result = view(source, consumer)
    steps = [numpy.prod(source.shape[:axis], dtype=int) for axis in range(len(source.shape))]
    result.strides = tuple(map(int, steps))
    return result


def retry(source: Any, consumer: Framework) -> Array:
    """Fault: asks with keywords that this producer refuses, and then once more without."""
    try:
        handed = source.__dlpack__(stream=consumer.stream, max_version=(1, 0))
    except TypeError:
        handed = source.__dlpack__(stream=consumer.stream)
    found = capsule.read(handed)
    if found is None or found.strides is None:
        raise TypeError("the producer hands over no DLPack capsule with strides")
    handed = (found.address, found.shape, found.strides, numpy.dtype(found.dtype))
    return Array(consumer, *handed, source, consumer.stream)


def early(source: Array, consumer: Framework) -> Array:
    """Fault: returns long before the result is there; its source may be written by then."""
    staged = copy(source, consumer)
    return _on_the_side(staged, consumer)


def late(source: Array, consumer: Framework) -> Array:
    """Fault: still reads its source after it has returned, and keeps no writer waiting."""
    return _on_the_side(source, consumer)


def _on_the_side(source: Array, consumer: Framework) -> Array:
    """A copy that the side stream makes after a while; it holds its source."""
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


def copy_if_strided(source: Array, consumer: Framework) -> Array:
    """Fault: a view of contiguous memory, and a silent copy of all other memory."""
    return view(source, consumer) if source.is_contiguous else copy(source, consumer)


def crash(source: Array, consumer: Framework) -> Array:
    """Fault: kills the process."""
    os.abort()


def hang(source: Array, consumer: Framework) -> Array:
    """Fault: never returns."""
    threading.Event().wait()
    raise AssertionError("an event was set that is never set")
