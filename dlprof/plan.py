"""From a request to cases: pair exports with imports, and spread them over the axes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from itertools import product
from typing import Any

from dlprof.catalog import Catalog, ProbeInfo, Way
from dlprof.errors import Unmeasured, UsageError
from dlprof.probes.base import DTYPES, written


@dataclass(frozen=True)
class Path:
    """An export and an import that speak the same protocol.

    ``code`` is what a user would type, with ``{dtype}`` and ``{shape}`` where those stand in it.
    """

    export: Way
    import_: Way
    protocol: str
    code: str

    @property
    def name(self) -> str:
        return f"{self.export.name}->{self.import_.name}"

    @property
    def promise(self) -> str | None:
        """What the documentation of both halves together promises: "copy", "view" or nothing.

        One half that copies makes the whole a copy; a view needs two.
        """
        halves = [_promise(self.export), _promise(self.import_)]
        if "copy" in halves:
            return "copy"
        return "view" if halves == ["view", "view"] else None


def _promise(way: Way) -> str | None:
    return "view" if way.code == "{x}" else way.promise


@dataclass(frozen=True)
class Case:
    """A path with a shape, dtype, layout and device."""

    producer: ProbeInfo
    consumer: ProbeInfo
    path: Path
    shape: tuple[int, ...]
    dtype: str
    layout: str
    device: str

    @property
    def pair(self) -> tuple[str, str]:
        return self.producer.name, self.consumer.name

    @property
    def size_bytes(self) -> int:
        return math.prod(self.shape) * DTYPES[self.dtype]

    @property
    def code(self) -> str:
        """What a user would type for this array."""
        code = self.path.code.replace("{dtype}", self.dtype)
        return code.replace("{shape}", str(tuple(self.shape)))

    def record(self) -> dict[str, Any]:
        """The case in the session's words."""
        return {
            "producer": self.producer.name,
            "export": self.path.export.name,
            "consumer": self.consumer.name,
            "import": self.path.import_.name,
            "protocol": self.path.protocol,
            "code": self.code,
            "shape": self.shape,
            "dtype": self.dtype,
            "layout": self.layout,
            "device": self.device,
            "promise": self.path.promise,
            "setup": self.path.import_.setup,
        }


@dataclass(frozen=True)
class Axes:
    """What to spread each path over; ``device`` may be ``auto``."""

    shapes: tuple[tuple[int, ...], ...] = ((1024, 1024),)
    dtypes: tuple[str, ...] = ("float32",)
    layouts: tuple[str, ...] = ("C",)
    device: str = "auto"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def paths(producer: ProbeInfo, consumer: ProbeInfo, device: str) -> list[Path]:
    """Every export with every import that speaks its protocol, for a source array on ``device``.

    Paths with the same code are one path; a path whose code is the bare array converts nothing
    and is none.
    """
    found: dict[str, Path] = {}
    for export, import_ in product(producer.exports, consumer.imports):
        if device not in export.devices or device not in import_.devices:
            continue
        if import_.producers and producer.name not in import_.producers:
            continue
        code = written(import_.code, written(export.code, "x"))
        for protocol in export.protocols:
            if protocol in import_.protocols and code != "x" and code not in found:
                found[code] = Path(export, import_, protocol, code)
    return list(found.values())


def choose(found: Iterable[Path], globs: Sequence[str]) -> list[Path]:
    """The paths that any glob matches, by name (``tensor->from_dlpack``) or by code."""
    if not globs:
        return list(found)
    return [
        path
        for path in found
        if any(fnmatchcase(path.name, glob) or fnmatchcase(path.code, glob) for glob in globs)
    ]


def choose_device(
    producer: ProbeInfo, consumer: ProbeInfo, catalog: Catalog, asked: str
) -> tuple[str, str]:
    """The device of the source array, and why.

    cuda where both frameworks can own arrays there and this machine has one, else cpu, else the
    only device the producer has. Raises :class:`Unmeasured` where ``asked`` cannot be had.
    """
    no_cuda = catalog.interpreter.get("no_cuda")
    if asked == "cuda" and no_cuda:
        raise Unmeasured(f"cuda cannot be measured: {no_cuda}")
    if no_cuda and "cpu" not in consumer.devices:
        raise Unmeasured(f"{consumer.name} has arrays on cuda only, and {no_cuda}")
    if asked != "auto":
        if asked not in producer.devices:
            raise Unmeasured(f"{producer.name} has no arrays on {asked}")
        return asked, "asked for"
    if "cuda" in producer.devices and "cuda" in consumer.devices and not no_cuda:
        return "cuda", "both frameworks can use it"
    if "cpu" not in producer.devices:
        if no_cuda:
            raise Unmeasured(f"{producer.name} has arrays on cuda only, and {no_cuda}")
        return "cuda", f"{producer.name} has arrays nowhere else"
    if no_cuda:
        return "cpu", no_cuda
    only_cpu = " and ".join(
        probe.name for probe in (producer, consumer) if "cuda" not in probe.devices
    )
    return "cpu", f"{only_cpu} cannot own arrays on cuda"


def device_reasons(
    pairs: Iterable[tuple[ProbeInfo, ProbeInfo]], catalog: Catalog, asked: str
) -> str:
    """Which device was chosen and why, in words; several pairs may have chosen differently."""
    reasons = [choose_device(producer, consumer, catalog, asked) for producer, consumer in pairs]
    return "; ".join(dict.fromkeys(f"on {device}: {reason}" for device, reason in reasons))


def cases(
    pairs: Iterable[tuple[ProbeInfo, ProbeInfo]],
    catalog: Catalog,
    axes: Axes,
    globs: Sequence[str] = (),
) -> list[Case]:
    """All cases, in a fixed order. Raises :class:`UsageError` where the globs match no path."""
    found = list(_cases(pairs, catalog, axes, globs))
    if not found:
        raise UsageError(
            f"no path matches {', '.join(globs)}; 'dlprof paths PRODUCER CONSUMER' lists them"
            if globs
            else "the frameworks share no protocol on this device"
        )
    return found


def _cases(
    pairs: Iterable[tuple[ProbeInfo, ProbeInfo]],
    catalog: Catalog,
    axes: Axes,
    globs: Sequence[str],
) -> Iterator[Case]:
    for producer, consumer in pairs:
        device, _ = choose_device(producer, consumer, catalog, axes.device)
        chosen = choose(paths(producer, consumer, device), globs)
        for shape, dtype, layout in product(axes.shapes, axes.dtypes, axes.layouts):
            for path in chosen:
                yield Case(producer, consumer, path, shape, dtype, layout, device)
