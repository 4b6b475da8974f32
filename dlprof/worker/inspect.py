"""Inspect an interpreter: probes, versions and devices, without importing any framework."""

from __future__ import annotations

import hmac
import importlib.metadata
import importlib.util
import os
import platform
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from dlprof.device import gpu_state
from dlprof.device.cuda import driver_devices, is_simulated
from dlprof.probes.base import Probe
from dlprof.worker import loading
from dlprof.worker.refusal import FaultyProbe, Refusal, attempt
from dlprof.worker.source_text import execute
from dlprof.worker.subject import OneArray

MACHINE_ID = Path("/etc/machine-id")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
ID_BYTES, SHOWN = 16, 12
KEY = b"dlprof.session/1"


def inspect(sources: list[str], skip: list[str], announce: Callable[[str], None]) -> dict[str, Any]:
    """Describe the interpreter and every probe of ``sources`` and of installed packages.

    ``announce`` gets each source before it is loaded, so that the parent knows which one crashed.
    ``skip`` are the sources that did.
    """
    sources = ["builtin", *sources, *(f"entry:{name}" for name in loading.entry_names())]
    probes: list[dict[str, Any]] = []
    faults: dict[str, str] = {}
    for source in (source for source in sources if source not in skip):
        announce(source)
        found = attempt(partial(_described, source), BaseException)
        if not isinstance(found, Refusal):
            probes += found
        elif isinstance(found.error, FaultyProbe):
            faults[source] = str(found.error)
        else:
            faults[source] = found.reason
    return {"interpreter": interpreter(), "probes": probes, "faults": faults}


def _described(source: str) -> list[dict[str, Any]]:
    return [describe(probe, source) for probe in loading.load(source)]


def describe(probe: Probe, source: str) -> dict[str, Any]:
    """The declarations of a probe, and whether its framework can be found."""
    versions = {name: _installed(name) for name in probe.distributions}
    distribution = next((name for name, version in versions.items() if version), None)
    return {
        "source": source,
        "name": probe.name,
        "aliases": list(probe.aliases),
        "module": probe.module,
        # The setup of a user's own array has run, and may have told Python where to look.
        "found": (found := _spec(probe.module)) is not None or isinstance(probe, OneArray),
        "file": os.path.realpath(found.origin) if found and found.has_location else None,
        "version": versions[distribution] if distribution else None,
        "distribution": distribution,
        "also": {name: known for name in probe.also if (known := _installed(name))},
        "requirement": probe.requirement or next(iter(probe.distributions), probe.module),
        "variables": dict(probe.variables),
        "devices": list(probe.devices),
        "flags": list(probe.flags),
        "narrows": dict(probe.narrows),
        "narrows_why": probe.narrows_why,
        "exports": [
            {**_way(export, [export.protocol]), "array": getattr(probe, "array_name", "x")}
            for export in probe.exports
        ],
        "imports": [
            {
                **_way(way, way.protocols),
                "producers": list(way.producers),
                "setup": way.setup,
                "result_device": way.result_device,
            }
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
    }


def _spec(module: str) -> Any:
    """Return where Python finds a module; None for nowhere."""
    try:
        return importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None


def _installed(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def interpreter() -> dict[str, Any]:
    """Describe the interpreter and the machine, as far as the standard library knows them."""
    devices = driver_devices()
    simulated = isinstance(devices, int) and devices > 0 and is_simulated()
    # NVML would tell of a real GPU beside it.
    gpus = gpu_state.read() if isinstance(devices, int) and not simulated else []
    for gpu in gpus if isinstance(gpus, list) else ():
        gpu.pop("uuid")  # a session goes into bug reports
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "executable": sys.executable,
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "governor": governor(),
        "machine_id": fingerprint(MACHINE_ID),
        "boot_id": fingerprint(BOOT_ID),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "gpus": gpus,
        "simulated": simulated,
        "cupti": _spec("cupti") is not None,
        "cuda_devices": devices if isinstance(devices, int) else 0,
        "no_cuda": None if isinstance(devices, int) and devices else str(devices or "no device"),
    }


def cpu_model() -> str:
    with suppress(OSError):
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        for line in text.splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def governor() -> str | None:
    """Return what chooses the clocks of this process's processors, such as ``performance``."""
    cpu = min(os.sched_getaffinity(0))
    with suppress(OSError):
        file = Path(f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor")
        return file.read_text(encoding="ascii").strip()
    return None


def fingerprint(path: Path) -> str | None:
    """Return a keyed hash of the random number that names a machine or its boot; None for none.

    The number itself is confidential, and programs shall publish such a hash (machine-id(5)).
    Network addresses and serial numbers are too short: their hash could be reversed.
    """
    try:
        number = bytes.fromhex(path.read_text(encoding="ascii").strip().replace("-", ""))
    except (OSError, ValueError):
        return None
    if len(number) != ID_BYTES or not any(number):
        return None
    return hmac.new(KEY, number, "sha256").hexdigest()[:SHOWN]


def verify(source: str, name: str) -> dict[str, Any]:
    """Import a framework and say what it can really do here."""
    probe = loading.find(source, name)
    namespace: dict[str, Any] = {}
    execute(probe.setup, namespace, "setup")
    devices = {}
    for device in probe.devices:
        ready = attempt(partial(probe.ready, device))
        devices[device] = ready.reason if isinstance(ready, Refusal) else "usable"
    return {"devices": devices, "c_exchange_api": _has_c_exchange_api(probe, namespace)}


def _has_c_exchange_api(probe: Probe, namespace: dict[str, Any]) -> bool | None:
    """Whether the array type has it; None if the probe does not name the type."""
    if not probe.c_exchange_type:
        return None
    kind = eval(probe.c_exchange_type, namespace)  # noqa: S307 - the probe's own text
    return hasattr(kind, "__dlpack_c_exchange_api__")
