"""Probes for the synthetic frameworks on a device: producers, and one consumer for each plant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from dlprof.probes.base import CUDA, ArraySpec, Export, Import, Probe, Protocol, Unsupported
from dlprof.probes.numpy import NumPy
from dlprof.selftest.device.faults import PLANTS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from dlprof.selftest.device.frameworks import Framework
    from dlprof.selftest.faults import Plant

UNIT_NS = 100_000


def opened(name: str, stream: str) -> str:
    """Source text of the framework of this name; ``stream`` as a plant has it."""
    return f"frameworks.{'private' if stream == 'private' else 'named'}({name!r})"


class SyntheticCuda(Probe):
    """A synthetic framework on a device, which can be put on any stream."""

    name = "synthetic-cuda"
    module = "cuda.core"
    distributions = ("cuda-core",)
    setup = "import numpy\nfrom dlprof.selftest.device import frameworks, ways"
    devices = CUDA
    exports = (
        Export("array", Protocol.NATIVE, "{x}", CUDA),
        Export("dlpack", Protocol.DLPACK, "{x}", CUDA),
        Export("get", Protocol.NUMPY, "{x}.get()", CUDA),
    )
    stream: ClassVar[str] = "any"
    """As a plant has it: the stream that it works on."""

    @property
    def own(self) -> str:
        """Source text of this framework."""
        return opened(self.name, self.stream)

    def framework(self) -> Framework:
        from dlprof.selftest.device import frameworks

        known = frameworks.private if self.stream == "private" else frameworks.named
        return known(self.name)

    def ready(self, device: str) -> None:
        self.framework()

    def create(self, spec: ArraySpec) -> str:
        if spec.layout not in ("C", "readonly", "strided"):
            raise Unsupported(f"the synthetic framework has no layout {spec.layout}")
        if spec.layout != "strided":
            return f"{NumPy().create(spec)}\nx = {self.own}.array(x)"
        wide = ArraySpec((*spec.shape[:-1], 2 * spec.shape[-1]), spec.dtype)
        return f"{NumPy().create(wide)}\nx = {self.own}.array(x).every_second()"

    def pointer(self, array: Any) -> int | None:
        return int(array.address)

    def to_numpy(self, array: Any) -> Any:
        return array.get()

    def dtype(self, array: Any) -> str:
        return str(array.dtype.name)

    def device(self, array: Any) -> str:
        return "cuda"

    def writable(self, array: Any) -> bool | None:
        return bool(array.writable)

    def wait(self, device: str) -> str:
        return "{x}.wait()"

    def write(self, array: Any, value: int) -> Any:
        if not array.writable:
            return NotImplemented
        array.fill(value)
        return None

    def use(self, device: str) -> str:
        return "{x}.used()"

    def idioms(self, device: str, dtype: str) -> Mapping[str, str]:
        return {
            "values": "{x}.get()",
            "address": "{x}.address",
            "shape": "{x}.shape",
            "dtype": "{x}.dtype.name",
            "writable": "{x}.writable",
            "write": "{x}.fill(1)",
            "memory": f"{self.own}.pool.bytes_in_use",
        }

    def enqueue(self, spec: ArraySpec) -> str | None:
        return f"y = x.after({UNIT_NS} * work)"

    def current_stream(self, device: str) -> int | None:
        return None if self.stream == "private" else self.framework().stream

    def on_stream(self, handle: int) -> AbstractContextManager[Any] | None:
        return self.framework().on(handle) if self.stream == "any" else None

    def memory_in_use(self, device: str) -> int | None:
        return self.framework().pool.bytes_in_use


class Producer(SyntheticCuda):
    imports = (
        Import(
            "slow",
            (Protocol.NATIVE,),
            "ways.slow({x}, consumer)",
            CUDA,
            producers=("synthetic-cuda-asymmetric",),
            setup="consumer = frameworks.named('synthetic-cuda')",
        ),
    )


class DefaultProducer(SyntheticCuda):
    """A producer that cannot be put on a stream: it stays on the legacy default stream."""

    name = "synthetic-cuda-default"
    stream = "default"


def consumer(plant: Plant) -> Probe:
    """The probe of a plant's consumer."""
    imports = tuple(
        Import(
            way,
            (Protocol(plant.protocol if index == 0 else "native"),),
            f"ways.{way}({{x}}, consumer)",
            CUDA,
            promise=plant.promise if index == 0 else None,
            producers=(plant.producer,),
            setup=f"consumer = {opened(plant.consumer, plant.stream)}",
        )
        for index, way in enumerate(plant.ways)
    )
    members = {"name": plant.consumer, "stream": plant.stream, "imports": imports}
    probe: Probe = type(f"SyntheticCuda_{plant.name}", (SyntheticCuda,), members)()
    return probe


def probes() -> list[Probe]:
    """The producers and all consumers."""
    return [Producer(), DefaultProducer(), *(consumer(plant) for plant in PLANTS)]
