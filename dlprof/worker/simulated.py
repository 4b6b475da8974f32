"""Frameworks on the simulated device, which runs no kernel but dlprof's own.

What a framework computes there is not computed: an array that a kernel should fill stays as its
memory was, and a write by a kernel writes nothing. So source arrays get their values, and later
other ones, by copies of the driver. These are real, and queued where the framework would work.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import os
from typing import Any

from dlprof.device.cuda import LEGACY_STREAM, Gpu, is_simulated, open_gpu
from dlprof.probes.base import DTYPES, Probe
from dlprof.protocol.messages import verdict
from dlprof.worker.memory import span

DEVICES = "DLPROF_SIMULATED_DEVICES"
"""The driver's own variable: a worker that has it runs on the driver."""
PERIOD = 61
"""A prime: no two elements near each other have the same bytes."""
PATTERN = bytes(1 + 37 * at % PERIOD for at in range(PERIOD))
"""Bytes of small positive numbers in every dtype."""
NOT_COMPUTED = "the simulated device runs no kernels, and the values may depend on one"
"""Why a value that differs is no fault."""


class OnSimulatedDevice(Probe):
    """Mixed into a framework's probe: it writes to device arrays by the driver."""

    gpu: Gpu
    is_immutable = False

    def fill(self, array: Any) -> None:
        """Give a new array values, if it is contiguous and on the device."""
        if self.device(array) == "cuda":
            self._put(array, PATTERN)

    def write(self, array: Any, value: int) -> Any:
        if self.device(array) != "cuda" or self.is_immutable:
            return super().write(array, value)
        if self.writable(array) is False:
            return NotImplemented
        return self._put(array, bytes([1 - value % 2]))

    def _put(self, array: Any, pattern: bytes) -> Any:
        address, size = self.pointer(array), _contiguous_bytes(self, array)
        if not address or not size:
            return NotImplemented
        if self.dtype(array) == "bool":
            pattern = bytes(byte & 1 for byte in pattern)
        stream = self.current_stream("cuda")
        data = (pattern * (size // len(pattern) + 1))[:size]
        self.gpu.write(address, data, LEGACY_STREAM if stream is None else stream)
        return None


def admit_jax() -> None:
    """JAX looks for NVIDIA's device files before it asks the driver; the simulated one has none.

    The place is ``has_visible_nvidia_gpu`` of ``jax/_src/hardware_utils.py``, seen in JAX 0.10.2.
    """
    if DEVICES in os.environ:
        with contextlib.suppress(ImportError):
            hardware: Any = importlib.import_module("jax._src.hardware_utils")
            hardware.has_visible_nvidia_gpu = lambda: True


def adapted(probe: Probe) -> Probe:
    """The probe as it works here: on the simulated device by the driver, else as it is."""
    if "cuda" not in probe.devices or not _is_here():
        return probe
    kind = type(probe)
    members = {"gpu": open_gpu(), "is_immutable": kind.write is Probe.write}
    made: Probe = type(kind.__name__, (OnSimulatedDevice, kind), members)()
    return made


def as_far_as_computed(found: dict[str, Any]) -> dict[str, Any]:
    """The verdict on values, where one that differs may have wanted a kernel."""
    changed = found["evidence"].get("changed") or {}
    if found["verdict"] != "wrong" or set(changed) - {"values"}:
        return found
    return verdict("unknown", {**found["evidence"], "changed": {}}, NOT_COMPUTED)


def _is_here() -> bool:
    try:
        return is_simulated()
    except OSError:  # there is no driver
        return False


def _contiguous_bytes(probe: Probe, array: Any) -> int:
    """The bytes of an array that has no gaps; 0 for any other."""
    shape = probe.shape(array)
    size = math.prod(shape or ()) * DTYPES.get(probe.dtype(array) or "", 0)
    extent = span(array)
    return 0 if shape is None or (extent is not None and extent != (0, size)) else size
