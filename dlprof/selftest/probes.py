"""Probes for the synthetic frameworks: producers, and one consumer for each plant."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from dlprof.probes.base import (
    CPU,
    CUDA,
    ArraySpec,
    Export,
    Import,
    Probe,
    Protocol,
    Unsupported,
    wide_shape,
)
from dlprof.probes.numpy import NumPy
from dlprof.selftest.faults import DEVICE_PLANTS, PLANTS, Plant

if TYPE_CHECKING:
    from dlprof.selftest.device import Framework

UNIT_NS = 100_000


class Synthetic(Probe):
    """The common part of a synthetic framework on the host and on a device."""

    layouts: ClassVar[tuple[str, ...]] = ("C",)

    @property
    def own(self) -> str:
        raise NotImplementedError

    def create(self, spec: ArraySpec) -> str:
        if spec.layout not in self.layouts:
            raise Unsupported(f"the synthetic framework has no layout {spec.layout}")
        if spec.layout != "strided":
            return f"{NumPy().create(spec)}\nx = {self.own}.array(x)"
        wide = replace(spec, shape=wide_shape(spec), layout="C")
        return f"{NumPy().create(wide)}\nx = {self.own}.array(x).every_second()"

    def dtype(self, array: Any) -> str:
        return str(array.dtype.name)

    def wait(self, device: str) -> str:
        return "{x}.wait()"


class OnHost(Synthetic):
    """The framework on the host, as a producer."""

    name = "synthetic"
    module = "numpy"
    distributions = ("numpy",)
    setup = "import numpy\nfrom dlprof.selftest import host"
    devices = CPU
    layouts = ("C", "aligned", "F", "readonly", "strided", "masked", "swapped")
    flags = ("masked", "swapped")
    own = "host"
    settings = {"default dtype": "host.defaults['dtype']"}  # noqa: RUF012 - as the contract has it
    exports = (
        Export("array", Protocol.NATIVE, "{x}", CPU),
        Export("dlpack", Protocol.DLPACK, "{x}", CPU),
        Export("capsule", Protocol.DLPACK_CAPSULE, "{x}.to_dlpack()", CPU),
    )
    imports = (
        Import(
            "slow", (Protocol.NATIVE,), "host.slow({x})", CPU, producers=("synthetic-asymmetric",)
        ),
    )

    def pointer(self, array: Any) -> int | None:
        return int(array.data.ctypes.data)

    def to_numpy(self, array: Any) -> Any:
        return array.data.copy()  # as it is now: the caller must wait first

    def writable(self, array: Any) -> bool | None:
        return bool(array.data.flags.writeable)

    def properties(self, array: Any) -> tuple[str, ...]:
        return ("mask",) if array.masked else ()

    def write(self, array: Any, value: int) -> Any:
        from dlprof.selftest import host

        if not array.data.flags.writeable:
            return NotImplemented
        host.default_queue.put(lambda: array.data.fill(value)).wait()
        return None

    def use(self, device: str) -> str:
        return "host.blur({x})"

    def idioms(self, device: str, dtype: str) -> Mapping[str, str]:
        return {
            "values": "{x}.data.copy()",
            "address": "{x}.data.ctypes.data",
            "shape": "{x}.shape",
            "dtype": "{x}.dtype.name",
            "writable": "{x}.data.flags.writeable",
            "masked": "{x}.masked",
            "write": "host.default_queue.put(lambda: {x}.data.fill(1)).wait()",
        }

    def enqueue(self, spec: ArraySpec) -> str | None:
        return f"y = host.after_work(x, {UNIT_NS}, work)"

    def enqueue_unrelated(self, spec: ArraySpec) -> str | None:
        return "z = host.unrelated_work(1, duration_ns)"


class OnDevice(Synthetic):
    """A framework on a CUDA device, which can be put on any stream."""

    name = "synthetic-cuda"
    module = "numpy"
    distributions = ("numpy",)
    setup = "import numpy\nfrom dlprof.selftest import device"
    devices = CUDA
    exports = (
        Export("array", Protocol.NATIVE, "{x}", CUDA),
        Export("get", Protocol.NUMPY, "{x}.get()", CUDA),
    )
    stream: ClassVar[str] = "any"
    """The stream that it works on, see :class:`~dlprof.selftest.faults.Plant`."""

    @property
    def own(self) -> str:
        return f"device.{'private' if self.stream == 'private' else 'named'}({self.name!r})"

    def framework(self) -> Framework:
        from dlprof.selftest import device

        known = device.private if self.stream == "private" else device.named
        return known(self.name)

    def ready(self, device: str) -> None:
        self.framework()

    def pointer(self, array: Any) -> int | None:
        return int(array.address)

    def to_numpy(self, array: Any) -> Any:
        return array.get()

    def device(self, array: Any) -> str:
        return "cuda" if array.__dlpack_device__() == (2, 0) else "cpu"

    def writable(self, array: Any) -> bool | None:
        return True

    def write(self, array: Any, value: int) -> Any:
        array.fill(value)

    def use(self, device: str) -> str:
        return "{x}.used()"

    def idioms(self, device: str, dtype: str) -> Mapping[str, str]:
        own_stream = f"{self.own}.on({self.own}.gpu.new_stream(blocking=False))"
        return {
            **({"own_stream": own_stream} if self.stream == "any" else {}),
            "values": "{x}.get()",
            "address": "{x}.address",
            "shape": "{x}.shape",
            "dtype": "{x}.dtype.name",
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


class DefaultProducer(OnDevice):
    """A producer that stays on the legacy default stream."""

    name = "synthetic-cuda-default"
    stream = "default"


def consumer(plant: Plant) -> Probe:
    on_host = plant.device == "cpu"
    kind: type[Synthetic] = OnHost if on_host else OnDevice
    members = {"name": plant.consumer, "immutable": plant.immutable} | (
        {} if on_host else {"stream": plant.stream}
    )
    made: Synthetic = type(f"Synthetic_{plant.consumer}", (kind,), members)()
    code = "host.{way}({{x}})" if on_host else "device.{way}({{x}}, consumer)"
    imports = tuple(
        Import(
            way,
            (Protocol(plant.protocol if index == 0 else "native"),),
            code.format(way=way).replace("_no_copy({x})", "({x}, copy=False)"),
            (plant.device,),
            promise=plant.promise if index == 0 else None,
            producers=(plant.producer,),
            setup="" if on_host else f"consumer = {made.own}",
        )
        for index, way in enumerate(plant.ways)
    )
    type(made).imports = imports
    return made


def probes() -> list[Probe]:
    consumers = [consumer(plant) for plant in (*PLANTS, *DEVICE_PLANTS)]
    return [OnHost(), OnDevice(), DefaultProducer(), *consumers]
