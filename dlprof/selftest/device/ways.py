"""Ways into a synthetic framework on a device: innocent ones, and one for each fault.

``source`` is an array of another framework, ``consumer`` the framework that takes it in.
"""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy

from dlprof.device.cuda import LEGACY_STREAM
from dlprof.probes import capsule
from dlprof.selftest.device.frameworks import Array, Framework

SLOW_NS = 1_000_000
EARLY_NS = 2_000_000


def view(source: Array, consumer: Framework) -> Array:
    """Innocent: shares the memory, keeps its owner; an event orders the streams."""
    consumer.order(source.stream, consumer.stream)
    return consumer.view(source, source.owner)


def copy(source: Array, consumer: Framework) -> Array:
    """Innocent: a queued copy, before which the source is made and after which it may be written.

    The second order is needed as well: the producer's stream knows nothing of a copy elsewhere.
    """
    consumer.order(source.stream, consumer.stream)
    result = _copied(source, consumer, consumer.stream)
    consumer.order(consumer.stream, source.stream)
    return result


def _copied(source: Array, consumer: Framework, stream: int) -> Array:
    """A copy that ``stream`` makes, with the gaps between strides; orders nothing."""
    result = consumer.empty_like(source, stream)
    consumer.gpu.copy(result.address, source.address, source.span_bytes, stream)
    return result


def sync(source: Array, consumer: Framework) -> Array:
    """Fault: lets the host wait for the producer's stream, where an event would do."""
    consumer.gpu.synchronize(source.stream)
    return consumer.view(source, source.owner)


def device_sync(source: Array, consumer: Framework) -> Array:
    """Fault: lets the host wait for all work of the device."""
    consumer.gpu.synchronize_device()
    return consumer.view(source, source.owner)


def race(source: Array, consumer: Framework) -> Array:
    """Fault: a view that forgets the producer's stream. Innocent where both use the same one."""
    return consumer.view(source, source.owner)


def legacy_race(source: Array, consumer: Framework) -> Array:
    """Fault: orders by the legacy default stream, for which non-blocking streams do not wait."""
    consumer.order(source.stream, LEGACY_STREAM)
    return consumer.view(source, source.owner)


def race_and_wait(source: Array, consumer: Framework) -> Array:
    """Fault: a copy that nothing orders, for which the host waits, with all work of the device.

    Innocent where both use the same stream, but for the wait.
    """
    result = _copied(source, consumer, consumer.stream)
    consumer.gpu.synchronize_device()
    return result


def from_host(values: Any, consumer: Framework) -> Array:
    """Fault, behind a copy to the host: brings the values back to the device."""
    return consumer.array(values)


def leak(source: Array, consumer: Framework) -> Array:
    """Fault: keeps device memory of the array's size for ever."""
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
    """Fault: a 64-bit dtype becomes one of 32 bits without a word.

    On the host, since the device layer has no kernel that converts.
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
    dtype = numpy.dtype(found.dtype)
    return Array(
        consumer, found.address, found.shape, found.strides, dtype, source, consumer.stream
    )


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
    """Fault: a view for which the device works, although it need not."""
    result = view(source, consumer)
    consumer.gpu.spin(consumer.stream, SLOW_NS)
    return result


def copy_if_strided(source: Array, consumer: Framework) -> Array:
    """Fault: a view of what is contiguous, and a silent copy of all else."""
    return view(source, consumer) if source.is_contiguous else copy(source, consumer)


def crash(source: Array, consumer: Framework) -> Array:
    """Fault: kills the process."""
    os.abort()


def hang(source: Array, consumer: Framework) -> Array:
    """Fault: never returns."""
    threading.Event().wait()
    raise AssertionError("an event that nobody sets was set")
