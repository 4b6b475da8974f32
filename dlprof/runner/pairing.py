"""Pair exports with imports, choose the device of the arrays, and describe one case."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import product
from typing import Any

from dlprof.errors import Unmeasured
from dlprof.probes.base import DTYPES, Protocol, written
from dlprof.protocol.statement import OF_USER
from dlprof.runner.catalog import Catalog, ProbeInfo, Way, builds_text


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

    def written(self, dtype: str, shape: tuple[int, ...]) -> str:
        """Return the code for an array of this dtype and shape."""
        exported = written(self.export.code, self.export.array, dtype, shape)
        return written(self.import_.code, exported, dtype, shape)

    @property
    def promise(self) -> str | None:
        """Return the documented result of both halves together: "copy", "view" or None.

        If one half copies, the whole is a copy. A view needs two.
        """
        ways = (self.export, self.import_)
        halves = ["view" if way.code == "{x}" else way.promise for way in ways]
        if "copy" in halves:
            return "copy"
        return "view" if halves == ["view", "view"] else None


@dataclass(frozen=True)
class Case:
    """A path with a shape, dtype, layout and device.

    If it is ``surveyed``, it is converted once and not timed; see :mod:`dlprof.runner.survey`.
    """

    producer: ProbeInfo
    consumer: ProbeInfo
    path: Path
    shape: tuple[int, ...]
    dtype: str
    layout: str
    device: str
    surveyed: bool = False

    @property
    def pair(self) -> tuple[str, str]:
        return self.producer.name, self.consumer.name

    @property
    def is_step(self) -> bool:
        """Whether it is a step of inference, and converts nothing; see ``dlprof.inference``."""
        return self.path.protocol == Protocol.STEP

    @property
    def size_bytes(self) -> int:
        """Bytes of all elements; 0 for a dtype that is not known."""
        return math.prod(self.shape) * DTYPES.get(self.dtype, 0)

    @property
    def code(self) -> str:
        """Return the text that a user would type for this array."""
        return self.path.written(self.dtype, tuple(self.shape))

    def record(self) -> dict[str, Any]:
        """Return the case as the session keeps it."""
        found: dict[str, Any] = {
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
            "source": self.path.export.array,
        }
        narrowed = self.consumer.narrows.get(self.dtype)
        if narrowed:
            found |= {"narrows_to": narrowed, "narrows_why": self.consumer.narrows_why}
        if self.path.import_.arrays > 1:
            found["arrays"] = self.path.import_.arrays
        return found | ({"survey": True} if self.surveyed else {})


def paths(producer: ProbeInfo, consumer: ProbeInfo, device: str) -> list[Path]:
    """Return every export with every import that speaks its protocol, for arrays on ``device``.

    Of paths with the same code, one with a promise is kept, and then the one whose protocol the
    import names first. A path whose code is the bare array converts nothing, so it is left out.
    """
    found: dict[str, Path] = {}
    for export, import_ in product(producer.exports, consumer.imports):
        if device not in export.devices or device not in import_.devices:
            continue
        if import_.producers and producer.name not in import_.producers:
            continue
        code = written(import_.code, written(export.code, export.array))
        for protocol in export.protocols:
            if protocol not in import_.protocols or code == export.array:
                continue
            path = Path(export, import_, protocol, code)
            if code not in found or _rank(path) < _rank(found[code]):
                found[code] = path
    return list(found.values())


def _rank(path: Path) -> tuple[bool, int]:
    return path.promise is None, path.import_.protocols.index(path.protocol)


def matches(path: Path, glob: str) -> bool:
    """Whether ``glob`` matches the path's name or its code, or is its code for some array."""
    text = re.escape(path.code).replace(r"\{dtype\}", ".+").replace(r"\{shape\}", ".+")
    return (
        fnmatchcase(path.name, glob)
        or fnmatchcase(path.code, glob)
        or re.fullmatch(text, glob) is not None
    )


def choose(candidates: Iterable[Path], globs: Sequence[str]) -> list[Path]:
    """Return paths that match any glob, by name (``tensor->from_dlpack``) or by code."""
    return [path for path in candidates if not globs or any(matches(path, glob) for glob in globs)]


SIMULATE = "--device simulated shows order, waits and copies without a GPU"


def choose_device(
    producer: ProbeInfo, consumer: ProbeInfo, catalog: Catalog, choice: str
) -> tuple[str, str]:
    """Return the device of the source array, and the reason.

    ``auto`` is cuda if both frameworks can own arrays there and this machine has one, else cpu,
    else the only device of the producer. Raises :class:`Unmeasured` if it cannot be used here.
    """
    no_cuda = catalog.interpreter.get("no_cuda")
    builds = builds_text([producer, consumer])
    simulate = f"{SIMULATE} (needs {builds})" if builds else SIMULATE
    if choice == "cuda" and no_cuda:
        raise Unmeasured(f"cuda cannot be measured: {no_cuda}. {simulate}")
    for probe in (consumer, producer):
        if no_cuda and "cpu" not in probe.devices and (probe is consumer or choice == "auto"):
            raise Unmeasured(f"{probe.name} has arrays on cuda only, and {no_cuda}. {simulate}")
    if choice != "auto":
        if choice not in producer.devices and "cuda" not in consumer.devices:
            raise Unmeasured(f"{producer.name} has no arrays on {choice}")
        if choice not in producer.devices:
            return producer.devices[0], f"{producer.name} has no arrays on {choice}"
        is_user_code = producer.source.startswith(OF_USER)
        return choice, "where the setup made the array" if is_user_code else "asked for"
    if no_cuda:
        return "cpu", no_cuda
    if "cuda" in producer.devices and "cuda" in consumer.devices:
        return "cuda", "both frameworks can use it"
    if "cpu" not in producer.devices:
        return "cuda", f"{producer.name} has arrays nowhere else"
    only_cpu = " and ".join(
        probe.name for probe in (producer, consumer) if "cuda" not in probe.devices
    )
    return "cpu", f"{only_cpu} cannot own arrays on cuda"
