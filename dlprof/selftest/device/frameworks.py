"""Synthetic frameworks on a CUDA device: arrays in its memory, each framework on a current stream.

As with real ones, producer and consumer are two frameworks: each has a stream, which it can be put
on, and memory of its own. An array names the stream whose work makes it.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy

from dlprof.device.cuda import LEGACY_STREAM, open_gpu
from dlprof.selftest.device import handing
from dlprof.selftest.device.memory import Pool

if TYPE_CHECKING:
    from dlprof.device.cuda import Gpu

USE_NS = 400_000
"""One use of an array: many times what a view costs."""
NO_ORDER = -1
"""As a stream of DLPack: the consumer looks after the order itself."""


@functools.cache
def named(name: str) -> Framework:
    """The framework of this name, on the legacy default stream until it is put on another."""
    return Framework(open_gpu())


@functools.cache
def private(name: str) -> Framework:
    """The framework of this name, on a non-blocking stream that it shows to nobody."""
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
        """Queue all work on ``stream`` meanwhile."""
        before, self.stream = self.stream, stream
        try:
            yield
        finally:
            self.stream = before

    def order(self, first: int, then: int) -> None:
        """Let what ``then`` is given from now on run after what ``first`` has been given so far."""
        if first != then:
            # A wait keeps the record that it found: the event can be recorded again at once.
            self.gpu.record(self._event, first)
            self.gpu.wait_event(then, self._event)

    def array(self, values: Any) -> Array:
        """An array with the values of a host array, which are there when this returns."""
        block = self.pool.take(values.nbytes, self.stream)
        self.gpu.synchronize(self.stream)  # the block's former owner may have queued work
        self.gpu.write(block.address, values.tobytes())
        return Array(
            framework=self,
            address=block.address,
            shape=values.shape,
            strides=contiguous(values.shape),
            dtype=values.dtype,
            owner=block,
            stream=self.stream,
            writable=bool(values.flags.writeable),
        )

    def empty_like(self, source: Array, stream: int | None = None) -> Array:
        """New memory for the values of ``source``, for work on ``stream`` (else the current)."""
        stream = self.stream if stream is None else stream
        block = self.pool.take(source.span_bytes, stream)
        return Array(self, block.address, source.shape, source.strides, source.dtype, block, stream)

    def view(self, source: Array, owner: Any) -> Array:
        """The memory of ``source`` as an array of this framework; orders nothing."""
        return Array(
            self,
            source.address,
            source.shape,
            source.strides,
            source.dtype,
            owner,
            self.stream,
            source.writable,
        )


@dataclass(eq=False)
class Array:
    """An array on the device; ``strides`` are in elements, ``owner`` keeps the memory.

    Its values are there when ``stream`` has done what it had been given when the array was made.
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
        """From the first element to the end of the last, with all that lies between."""
        reach = sum((n - 1) * step for n, step in zip(self.shape, self.strides, strict=True))
        return int((reach + 1) * self.dtype.itemsize)

    @property
    def is_contiguous(self) -> bool:
        return self.strides == contiguous(self.shape)

    def wait(self) -> Array:
        """Return when the values are there."""
        self.framework.gpu.synchronize(self.stream)
        return self

    def get(self) -> Any:
        """The values as a host array, read behind the work of the array's stream."""
        self.wait()
        data = self.framework.gpu.read(self.address, self.span_bytes)
        steps = [step * self.dtype.itemsize for step in self.strides]
        return numpy.ndarray(self.shape, self.dtype, data, strides=steps).copy()

    def fill(self, value: int) -> None:
        """Overwrite all elements, behind the work of the array's stream, and wait for it."""
        self.wait()
        values = numpy.full(self.span_bytes // self.dtype.itemsize, value, self.dtype)
        self.framework.gpu.write(self.address, values.tobytes())

    def every_second(self) -> Array:
        """A view of every second element of the last axis."""
        shape = (*self.shape[:-1], self.shape[-1] // 2)
        strides = (*self.strides[:-1], 2 * self.strides[-1])
        return Array(
            self.framework, self.address, shape, strides, self.dtype, self.owner, self.stream
        )

    def after(self, work_ns: int) -> Array:
        """An array with the same values, that is there after so much work on the stream."""
        home = self.framework
        result = home.empty_like(self)
        home.gpu.spin(home.stream, work_ns)
        home.gpu.copy(result.address, self.address, self.span_bytes, home.stream)
        return result

    def used(self) -> Array:
        """What an operation makes of the array."""
        return self.after(USE_NS)

    def __dlpack_device__(self) -> tuple[int, int]:
        return handing.CUDA, 0

    def __dlpack__(self, *, stream: int | None = None) -> Any:
        """As an old producer: a newer consumer's keywords are refused with a TypeError."""
        if stream != NO_ORDER:
            self.framework.order(self.stream, stream or LEGACY_STREAM)
        return self._handed.capsule()

    @functools.cached_property
    def _handed(self) -> handing.Handed:
        return handing.Handed(self.address, self.shape, self.strides, self.dtype)


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements of a contiguous array."""
    strides: list[int] = []
    step = 1
    for length in reversed(shape):
        strides.insert(0, step)
        step *= length
    return tuple(strides)
