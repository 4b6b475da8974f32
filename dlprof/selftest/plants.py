"""The faults that ``dlprof selftest`` plants, the rule that must find each, and the controls.

Each is an import of a synthetic framework. The probes of these frameworks are at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
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

if TYPE_CHECKING:
    from dlprof.selftest.device import Framework

UNIT_NS = 100_000


@dataclass(frozen=True)
class Plant:
    """One synthetic consumer: its ways in, and the rule that must find a fault in them.

    ``rule`` must find ``ways[0]``. It is None for a control, which gets no finding worse than an
    info. The other ways are innocent and use the protocol ``native``. On ``cuda``, producer and
    consumer can be put on ``any`` stream, or both stay on the ``default`` stream, or the consumer's
    stream is ``private``. A ``surveyed`` fault shows at small arrays only. The arrays of an
    ``immutable`` consumer cannot be written. A ``source`` is a producer on the host.
    """

    name: str
    ways: tuple[str, ...]
    rule: str | None = None
    promise: str | None = None
    dtypes: tuple[str, ...] = ("float32",)
    layouts: tuple[str, ...] = ("C",)
    shape: tuple[int, ...] = (128, 96)
    protocol: str = "native"
    placements: tuple[str, ...] = ("convert",)
    device: str = "cpu"
    stream: str = "any"
    surveyed: bool = False
    immutable: bool = False
    source: str = ""

    @property
    def source_device(self) -> str:
        return "cpu" if self.source else self.device

    @property
    def producer(self) -> str:
        if self.source:
            return self.source
        return f"{self._family}-default" if self.stream == "default" else self._family

    @property
    def consumer(self) -> str:
        return f"{self._family}-{self.name}"

    @property
    def _family(self) -> str:
        return "synthetic" if self.device == "cpu" else f"synthetic-{self.device}"


LOOPS = ("in-loop", "hoisted")

_ANYWHERE = (
    Plant("view", ("view",)),
    Plant("both", ("copy", "view"), promise="copy"),
    Plant("view-in-loop", ("view",), placements=LOOPS),
    Plant("sync", ("sync", "view"), "DLP001"),
    Plant("race", ("race",), "DLP003"),
    Plant("race-and-wait", ("race_and_wait",), "DLP003", promise="copy"),
    Plant("leak", ("leak",), "DLP010"),
    Plant("dangle", ("dangle",), "DLP011"),
    Plant("slow", ("slow", "view"), "DLP012"),
    Plant("slow-in-loop", ("slow",), "DLP014", placements=LOOPS),
    Plant("broken-promise", ("view",), "DLP018", promise="copy"),
    Plant("early", ("early",), "DLP019", promise="copy"),
    Plant("late", ("late",), "DLP020", promise="copy"),
)
_COSTLY_ON_HOST = (512, 384)
"""A copy of this shape costs much more than a view there, on a busy machine too."""


def _sorted(*plants: Plant) -> tuple[Plant, ...]:
    """Controls first."""
    return tuple(sorted(plants, key=lambda plant: plant.rule or ""))


PLANTS = _sorted(
    *_ANYWHERE,
    Plant("strided-view", ("view",), layouts=("C", "strided")),
    Plant("read-only-view", ("view",), layouts=("readonly",)),
    Plant("double-view", ("view",), dtypes=("float64",)),
    Plant("capsule", ("from_capsule",), promise="copy", protocol="dlpack-capsule"),
    Plant("copy", ("copy",), promise="copy"),
    Plant("queued-copy", ("queued_copy",), promise="copy"),
    Plant("avoidable-copy", ("copy", "view"), "DLP004", shape=_COSTLY_ON_HOST),
    Plant("copy-twice", ("copy_twice",), "DLP005", promise="copy"),
    Plant("narrow", ("narrow",), "DLP007", promise="copy", dtypes=("float64",)),
    Plant("wrong-strides", ("wrong_strides",), "DLP008", promise="copy"),
    Plant("change-source", ("change_source",), "DLP008", promise="copy"),
    Plant("one-buffer", ("one_buffer",), "DLP008", promise="copy"),
    Plant("stale", ("stale",), "DLP008", promise="copy"),
    Plant("lose-read-only", ("lose_read_only",), "DLP009", layouts=("readonly",)),
    Plant("retry", ("retry",), "DLP015", protocol="dlpack"),
    Plant("unversioned", ("unversioned",), "DLP023", protocol="dlpack", layouts=("readonly",)),
    Plant("legacy-capsule", ("legacy_capsule",), "DLP023", protocol="dlpack-capsule"),
    Plant("by-strides", ("by_strides",), "DLP023", protocol="dlpack"),
    Plant("take-along", ("take_along",), "DLP011"),
    Plant("keep-open", ("keep_open",), "DLP010"),
    Plant("lock", ("lock", "view"), "DLP022"),
    Plant("crash", ("crash",), "DLP016"),
    Plant("hang", ("hang",), "DLP016"),
    Plant("crash-at-exit", ("crash_at_exit",), "DLP016"),
    Plant("hang-after-fork", ("hang_after_fork",), "DLP032"),
    Plant(
        "copy-if-strided",
        ("copy_if_strided",),
        "DLP017",
        layouts=("C", "strided"),
        shape=_COSTLY_ON_HOST,
    ),
    Plant("surveyed-view", ("view",), surveyed=True),
    Plant("flush-denormals", ("flush_denormals",), "DLP008", promise="copy", surveyed=True),
    Plant("crash-if-empty", ("crash_if_empty",), "DLP016", surveyed=True),
    Plant("lose-byte-order", ("lose_byte_order",), "DLP008", surveyed=True),
    Plant("forget-mask", ("forget_mask",), "DLP021", surveyed=True),
    Plant("keep-refused", ("keep_refused",), "DLP010", surveyed=True),
    Plant("set-default", ("set_default",), "DLP025", surveyed=True),
    Plant("freeze", ("lock",), "DLP029", immutable=True),
    Plant("warn", ("warn", "copy"), "DLP031", promise="copy"),
    Plant("refuse-view", ("no_copy", "view"), "DLP033", promise="view"),
    Plant("jam", ("jam",), "DLP026", surveyed=True),
    Plant("row-major", ("row_major", "view"), "DLP028", surveyed=True),
    Plant("refuse-oddly", ("asarray_no_copy", "asarray"), "DLP024", surveyed=True),
)

DEVICE_PLANTS = tuple(
    replace(plant, device="cuda")
    for plant in _sorted(
        *_ANYWHERE,
        Plant("device-sync", ("device_sync", "view"), "DLP002"),
        Plant("queued-copy", ("copy",), promise="copy"),
        Plant("default-stream", ("race",), stream="default"),
        Plant("private-stream", ("view",), stream="private"),
        Plant("legacy-race", ("legacy_race",), "DLP003"),
        Plant("avoidable-copy", ("copy", "view"), "DLP004", shape=(4096, 8192)),
        Plant("to-host", ("to_host", "view"), "DLP027"),
        Plant("bounce", ("from_host", "view"), "DLP006", protocol="numpy"),
        Plant("reuse", ("reuse",), "DLP030"),
        Plant("upload", ("upload",), "DLP034", promise="copy", protocol="numpy", source="numpy"),
    )
)


class Synthetic(Probe):
    """The common part of a synthetic framework on the host and on a device."""

    module = "numpy"
    distributions = ("numpy",)
    layouts: ClassVar[tuple[str, ...]] = ("C",)
    own: str
    """Source text of an object that makes arrays by ``array``."""

    def create(self, spec: ArraySpec) -> str:
        if spec.layout not in self.layouts:
            raise Unsupported(f"the synthetic framework has no layout {spec.layout}")
        if spec.layout != "strided":
            return f"{NumPy().create(spec)}\nx = {self.own}.array(x)"
        wide = replace(spec, shape=wide_shape(spec), layout="C")
        return f"{NumPy().create(wide)}\nx = {self.own}.array(x).every_second()"

    def pointer(self, array: Any) -> int | None:
        return int(array.address)

    def to_numpy(self, array: Any) -> Any:
        return array.get()

    def device(self, array: Any) -> str:
        return "cuda" if array.__dlpack_device__() == (2, 0) else "cpu"

    def writable(self, array: Any) -> bool | None:
        return bool(array.writable)

    def write(self, array: Any, value: int) -> Any:
        return array.fill(value) if array.writable else NotImplemented

    def wait(self, device: str) -> str:
        return "{x}.wait()"

    def use(self, device: str) -> str:
        return "{x}.used()"

    def enqueue(self, spec: ArraySpec) -> str | None:
        return f"y = x.after({UNIT_NS} * work)"

    def idioms(self, device: str, dtype: str) -> Mapping[str, str]:
        return {
            "values": "{x}.get()",
            "address": "{x}.address",
            "shape": "{x}.shape",
            "dtype": "{x}.dtype.name",
            "writable": "{x}.writable",
            "write": "{x}.fill(1)",
        }


class OnHost(Synthetic):
    """The framework on the host, as a producer."""

    name = "synthetic"
    setup = "import numpy\nfrom dlprof.selftest import host"
    devices = CPU
    layouts = ("C", "aligned", "F", "readonly", "strided", "masked", "swapped")
    flags = ("masked", "swapped")
    own = "host"
    settings = {"default dtype": "host.defaults['dtype']"}
    exports = (
        Export("array", Protocol.NATIVE, "{x}", CPU),
        Export("dlpack", Protocol.DLPACK, "{x}", CPU),
        Export("capsule", Protocol.DLPACK_CAPSULE, "{x}.to_dlpack()", CPU),
    )

    def properties(self, array: Any) -> tuple[str, ...]:
        return ("mask",) if array.masked else ()

    def idioms(self, device: str, dtype: str) -> Mapping[str, str]:
        own = {"values": "{x}.wait().get()", "masked": "{x}.masked"}
        return {**super().idioms(device, dtype), **own}


class OnDevice(Synthetic):
    """A framework on a CUDA device, which can be put on any stream."""

    name = "synthetic-cuda"
    setup = "import numpy\nfrom dlprof.selftest import device"
    devices = CUDA
    exports = (
        Export("array", Protocol.NATIVE, "{x}", CUDA),
        Export("get", Protocol.NUMPY, "{x}.get()", CUDA),
    )
    stream: ClassVar[str] = "any"
    """Its stream, see :class:`Plant`."""
    reads_late: ClassVar[bool] = False
    """Whether it has a copy that it queues."""

    @property
    def own(self) -> str:  # type: ignore[override]
        return f"device.framework({self.name!r}, {self.stream == 'private'})"

    def framework(self) -> Framework:
        from dlprof.selftest import device

        return device.framework(self.name, self.stream == "private")

    def ready(self, device: str) -> None:
        self.framework()

    def idioms(self, device: str, dtype: str) -> Mapping[str, str]:
        own_stream = f"{self.own}.use_stream({self.own}.gpu.new_stream(blocking=False))"
        return {
            **super().idioms(device, dtype),
            **({"own_stream": own_stream} if self.stream == "any" else {}),
            **({"copy": "{x}.after(0)"} if self.reads_late else {}),
            "memory": f"{self.own}.pool.bytes_in_use",
        }

    def current_stream(self, device: str) -> int | None:
        return None if self.stream == "private" else self.framework().stream

    def on_stream(self, handle: int) -> AbstractContextManager[Any] | None:
        return self.framework().use_stream(handle) if self.stream == "any" else None


class DefaultProducer(OnDevice):
    """A producer that stays on the legacy default stream."""

    name = "synthetic-cuda-default"
    stream = "default"


def consumer(plant: Plant) -> Probe:
    """Return the probe of a plant's framework."""
    on_host = plant.device == "cpu"
    kind: type[Synthetic] = OnHost if on_host else OnDevice
    members = {"name": plant.consumer, "immutable": plant.immutable, "stream": plant.stream}
    members |= {"reads_late": plant.rule == "DLP030"}
    probe: Synthetic = type(f"Synthetic_{plant.consumer}", (kind,), members)()
    code = "host.{way}({{x}})" if on_host else "device.{way}({{x}}, consumer)"
    if plant.source:  # its cases may run in forks, so no setup may use the device
        code = f"device.{{way}}({{{{x}}}}, {probe.own}, non_blocking=True)"
    type(probe).imports = tuple(
        Import(
            way,
            (Protocol(plant.protocol if index == 0 else "native"),),
            code.format(way=way).replace("_no_copy({x})", "({x}, copy=False)"),
            (plant.source_device,),
            promise=plant.promise if index == 0 else None,
            producers=(plant.producer,),
            setup="" if on_host or plant.source else f"consumer = {probe.own}",
        )
        for index, way in enumerate(plant.ways)
    )
    return probe


def probes() -> list[Probe]:
    consumers = [consumer(plant) for plant in (*PLANTS, *DEVICE_PLANTS)]
    return [OnHost(), OnDevice(), DefaultProducer(), *consumers]
