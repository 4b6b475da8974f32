"""What is there: probes, versions and devices, without importing any framework."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import mmap
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dlprof.device import gpu_state
from dlprof.device.cuda import driver_devices
from dlprof.probes.base import Probe
from dlprof.protocol.messages import words
from dlprof.worker import loading
from dlprof.worker.contract import FaultyProbe


def inspect(sources: list[str], skip: list[str], announce: Callable[[str], None]) -> dict[str, Any]:
    """Describe the interpreter and every probe of ``sources`` and of installed packages.

    ``announce`` is told each source before it is loaded, so that the parent knows which one
    crashed; ``skip`` are those that did.
    """
    sources = ["builtin", *sources, *(f"entry:{name}" for name in loading.entry_names())]
    probes: list[dict[str, Any]] = []
    faults: dict[str, str] = {}
    for source in (source for source in sources if source not in skip):
        announce(source)
        try:
            probes += [describe(probe, source) for probe in loading.load(source)]
        except FaultyProbe as fault:
            faults[source] = str(fault)
        except BaseException as fault:  # noqa: BLE001 - foreign code may raise anything
            faults[source] = words(fault)
    return {"interpreter": interpreter(), "probes": probes, "faults": faults}


def describe(probe: Probe, source: str) -> dict[str, Any]:
    """The declarations of a probe, and whether its framework can be found."""
    versions = {name: _installed(name) for name in probe.distributions}
    distribution = next((name for name, version in versions.items() if version), None)
    return {
        "source": source,
        "name": probe.name,
        "aliases": list(probe.aliases),
        "module": probe.module,
        "found": _found(probe.module),
        "c_exchange_api": c_exchange_declared(probe),
        "version": versions[distribution] if distribution else None,
        "distribution": distribution,
        "also": {name: known for name in probe.also if (known := _installed(name))},
        "requirement": probe.requirement or next(iter(probe.distributions), probe.module),
        "variables": dict(probe.variables),
        "devices": list(probe.devices),
        "exports": [
            {**_way(export, [export.protocol]), "array": getattr(probe, "array_name", "x")}
            for export in probe.exports
        ],
        "imports": [
            {**_way(way, way.protocols), "producers": list(way.producers), "setup": way.setup}
            for way in probe.imports
        ],
    }


def _way(way: Any, protocols: Any) -> dict[str, Any]:
    return {
        "name": way.name,
        "protocols": [protocol.value for protocol in protocols],
        "code": way.code,
        "devices": list(way.devices),
        "promise": way.promise,
        "note": way.note,
    }


def _found(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _installed(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def interpreter() -> dict[str, Any]:
    """The interpreter and the machine, as far as the standard library knows them."""
    devices = driver_devices()
    gpus = gpu_state.read() if isinstance(devices, int) else []
    for gpu in gpus if isinstance(gpus, list) else ():
        gpu.pop("uuid")  # a session goes into bug reports, where nobody's hardware is numbered
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "executable": sys.executable,
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "gpus": gpus,
        "cuda_devices": devices if isinstance(devices, int) else 0,
        "no_cuda": None if isinstance(devices, int) and devices else str(devices or "no device"),
    }


def cpu_model() -> str:
    """The processor's name."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    for line in text.splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def verify(source: str, name: str) -> dict[str, Any]:
    """Import a framework and say what it can really do here."""
    probe = loading.find(source, name)
    namespace: dict[str, Any] = {}
    exec(compile(probe.setup, "<setup>", "exec"), namespace)  # noqa: S102 - the probe's own text
    devices = {}
    for device in probe.devices:
        try:
            probe.ready(device)
        except Exception as refusal:  # noqa: BLE001 - any framework, any error: it is the answer
            devices[device] = words(refusal)
        else:
            devices[device] = "usable"
    return {"devices": devices, "c_exchange_api": c_exchange_verified(probe, namespace)}


ATTRIBUTE = "__dlpack_c_exchange_api__"
SIBLING = b"__dlpack__"
"""What stands in a file that defines the type, whether it has the attribute or not."""


def c_exchange_declared(probe: Probe) -> bool | None:
    """Whether the framework's array type has the C exchange API of DLPack 1.3, without an import.

    The attribute's name is looked for in the files that define the type. None where they are not
    what the probe takes them for.
    """
    try:
        spec = importlib.util.find_spec(probe.module)
        locations = spec.submodule_search_locations if spec is not None else None
        folders = [Path(location).parent for location in locations or ()]
        patterns = probe.c_exchange_files
        found = [file for folder in folders for name in patterns for file in folder.glob(name)]
        holds = [_holds(file) for file in found]
    except (OSError, ImportError, ValueError, NotImplementedError):
        return None
    if any(attribute for attribute, _ in holds):
        return True
    return False if any(sibling for _, sibling in holds) else None


def c_exchange_verified(probe: Probe, namespace: dict[str, Any]) -> bool | None:
    """As the type says, in a ``namespace`` where the probe's setup has run."""
    if not probe.c_exchange_type:
        return None
    kind = eval(probe.c_exchange_type, namespace)  # noqa: S307 - the probe's own text
    return hasattr(kind, ATTRIBUTE)


def _holds(file: Path) -> tuple[bool, bool]:
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as text:
        return text.find(ATTRIBUTE.encode()) >= 0, text.find(SIBLING) >= 0
