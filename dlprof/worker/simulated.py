"""Frameworks on the simulated device, which runs no kernel but dlprof's own.

What a framework computes there is not computed: an array that a kernel should fill stays as its
memory was, and a write by a kernel writes nothing. So source arrays get their values, and later
other ones, by copies of the driver. These are real, and queued where the framework would work.

The driver marks what a kernel should have written, and counts how often that is copied to the host.
A verdict that compares contents is ``unknown`` if it has read such memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from dlprof.device.cuda import LEGACY_STREAM, CudaError, Gpu, device_ordinal, is_simulated, open_gpu
from dlprof.probes.base import DTYPES, Probe, Unsupported
from dlprof.probes.generic import capsule_metadata, device_values
from dlprof.protocol.messages import verdict
from dlprof.worker.memory import span
from dlprof.worker.refusal import Refusal, attempt

PERIOD = 61
"""A prime: no two elements near each other have the same bytes."""
PATTERN = bytes(1 + 37 * index % PERIOD for index in range(PERIOD))
"""Bytes of small positive numbers in every dtype."""
LARGEST_BYTES = 1 << 20
"""The largest array if the size does not matter: the host copies, and queues must outlast that."""
NOT_COMPUTED = "a kernel of the framework was not computed"
CONTENTS = ("values", "source", "earlier_result", "after_write", "in_thread", "unfinished")
"""Kinds of change that only a comparison of contents shows."""

Answer = TypeVar("Answer")


class OnSimulatedDevice(Probe):
    """Mixed into a framework's probe: it writes to device arrays by the driver."""

    gpu: Gpu
    is_immutable = False

    def fill(self, array: Any) -> None:
        """Give a new array values, if it is on the device; also the memory between its elements."""
        if self.device(array) == "cuda":
            self._put(array, PATTERN)

    def to_numpy(self, array: Any) -> Any:
        """Read an array with gaps by its address: a kernel would have to gather its elements."""
        if self.device(array) == "cuda":
            exported = attempt(partial(capsule_metadata, array))
            if not isinstance(exported, Refusal) and exported.layout == "strided":
                return device_values(exported)
        return super().to_numpy(array)

    def write(self, array: Any, value: int) -> Any:
        if self.device(array) != "cuda" or self.is_immutable:
            return super().write(array, value)
        if self.writable(array) is False:
            return NotImplemented
        return self._put(array, bytes([1 - value % 2]))

    def _put(self, array: Any, pattern: bytes) -> Any:
        address, (low, high) = self.pointer(array), _extent(self, array)
        size = high - low
        if not address or not size:
            return NotImplemented
        if self.dtype(array) == "bool":
            pattern = bytes(byte & 1 for byte in pattern)
        gpu = open_gpu(device_ordinal(address))
        with self.on_device(gpu.ordinal):
            stream = self.current_stream("cuda")
        stream = LEGACY_STREAM if stream is None else stream
        gpu.write(address + low, (pattern * (size // len(pattern) + 1))[:size], stream)
        gpu.synchronize(stream)
        return None


def adapt(probe: Probe) -> Probe:
    """Return the probe, changed to work by the driver on the simulated device."""
    try:
        is_here = "cuda" in probe.devices and is_simulated()
    except OSError:  # there is no driver
        is_here = False
    if not is_here:
        return probe
    kind = type(probe)
    members = {"gpu": open_gpu(), "is_immutable": kind.write is Probe.write}
    adapter: Probe = type(kind.__name__, (OnSimulatedDevice, kind), members)()
    return adapter


def simulated_gpu(*probes: Probe) -> Gpu | None:
    """Return the device of the first probe that works on a simulated one."""
    return next((probe.gpu for probe in probes if isinstance(probe, OnSimulatedDevice)), None)


def misuse(*probes: Probe) -> str:
    """Wait for all work; return the last misuse of the driver since the last call, or empty."""
    gpu = simulated_gpu(*probes)
    if gpu is None:
        return ""
    with suppress(CudaError):  # an error of the work is known by the report
        gpu.synchronize_device()
    return gpu.misuse()


def compare_contents(
    name: str, gpu: Gpu | None, instrument: Callable[[], dict[str, Any] | None]
) -> dict[str, Any] | None:
    """Run an instrument that compares contents; its answer holds only if they were computed."""
    before = gpu.uncomputed_reads() if gpu else 0
    found = instrument()
    if gpu is None or found is None or gpu.uncomputed_reads() == before:
        return found
    evidence = found["evidence"]
    if name == "values":
        changed = evidence.get("changed") or {}
        proved = {kind: pair for kind, pair in changed.items() if kind not in CONTENTS}
        word = "wrong" if proved else "unknown"
        return verdict(word, {**evidence, "changed": proved}, NOT_COMPUTED)
    return found if evidence.get("moot") else verdict("unknown", evidence, NOT_COMPUTED)


def computed(gpu: Gpu | None, read: Callable[[], Answer]) -> Answer:
    """Call ``read``. Raises :class:`Unsupported` if its values were not computed."""
    before = gpu.uncomputed_reads() if gpu else 0
    found = read()
    if gpu and gpu.uncomputed_reads() > before:
        raise Unsupported(NOT_COMPUTED)
    return found


def _extent(probe: Probe, array: Any) -> tuple[int, int]:
    """Return the first byte and the end of an array, counted from its first element."""
    shape = probe.shape(array)
    if shape is None:
        return 0, 0
    contiguous = 0, math.prod(shape) * DTYPES.get(probe.dtype(array) or "", 0)
    return (span(array) or contiguous) if contiguous[1] else contiguous
