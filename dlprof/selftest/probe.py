"""Probes for the synthetic framework: one producer, and one consumer for each plant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dlprof.probes.base import CPU, ArraySpec, Export, Import, Probe, Protocol, Unsupported
from dlprof.probes.numpy import NumPy
from dlprof.selftest.faults import PLANTS, Plant

if TYPE_CHECKING:
    from collections.abc import Mapping

UNIT_NS = 100_000


class Synthetic(Probe):
    """The synthetic framework as a producer."""

    name = "synthetic"
    module = "numpy"
    distributions = ("numpy",)
    setup = "import numpy\nfrom dlprof.selftest import framework, ways"
    devices = CPU
    exports = (
        Export("array", Protocol.NATIVE, "{x}", CPU),
        Export("dlpack", Protocol.DLPACK, "{x}", CPU),
    )
    imports = (
        Import(
            "slow", (Protocol.NATIVE,), "ways.slow({x})", CPU, producers=("synthetic-asymmetric",)
        ),
    )

    def create(self, spec: ArraySpec) -> str:
        if spec.layout == "strided":
            wide = ArraySpec((*spec.shape[:-1], 2 * spec.shape[-1]), spec.dtype)
            made = NumPy().create(wide)
            return f"{made}\nx = framework.array(x)\nx = framework.Array(x.data[..., ::2], x.owner)"
        if spec.layout not in ("C", "readonly"):
            raise Unsupported(f"the synthetic framework has no layout {spec.layout}")
        return f"{NumPy().create(spec)}\nx = framework.array(x)"

    def pointer(self, array: Any) -> int | None:
        return int(array.data.ctypes.data)

    def to_numpy(self, array: Any) -> Any:
        return array.data.copy()  # as it is now: whoever wants the values must wait first

    def dtype(self, array: Any) -> str:
        return str(array.dtype.name)

    def writable(self, array: Any) -> bool | None:
        return bool(array.data.flags.writeable)

    def wait(self, device: str) -> str:
        return "{x}.wait()"

    def write(self, array: Any, value: int) -> Any:
        from dlprof.selftest import framework

        if not array.data.flags.writeable:
            return NotImplemented
        framework.default_queue.put(lambda: array.data.fill(value)).wait()
        return None

    def use(self, device: str) -> str:
        return "framework.blur({x})"

    def idioms(self, device: str, dtype: str) -> Mapping[str, str]:
        return {
            "values": "{x}.data.copy()",
            "address": "{x}.data.ctypes.data",
            "shape": "{x}.shape",
            "dtype": "{x}.dtype.name",
            "writable": "{x}.data.flags.writeable",
            "write": "framework.default_queue.put(lambda: {x}.data.fill(1)).wait()",
        }

    def enqueue(self, spec: ArraySpec) -> str | None:
        return f"y = framework.after_work(x, {UNIT_NS}, work)"

    def enqueue_unrelated(self, spec: ArraySpec) -> str | None:
        return "z = framework.unrelated_work(1, duration_ns)"


def consumer(plant: Plant) -> Probe:
    """The probe of a plant's consumer."""
    imports = tuple(
        Import(
            way,
            (Protocol(plant.protocol if index == 0 else "native"),),
            f"ways.{way}({{x}})",
            CPU,
            promise=plant.promise if index == 0 else None,
            producers=("synthetic",),
        )
        for index, way in enumerate(plant.ways)
    )
    kind = type(
        f"Synthetic_{plant.name}", (Synthetic,), {"name": plant.consumer, "imports": imports}
    )
    probe: Probe = kind()
    return probe


def probes() -> list[Probe]:
    """The producer and all consumers."""
    return [Synthetic(), *(consumer(plant) for plant in PLANTS)]
