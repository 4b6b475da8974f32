"""Look at an interpreter and at a user's own conversion, before anything is measured.

:func:`inspect` describes probes, versions and devices without importing any framework.
:func:`recognize` runs a user's setup and statement once, in a process of their own. The types of
source and result name the frameworks. Parts are sent one by one, so that a crash loses none:
``source``, ``cut``, ``result`` and ``protocol``.
"""

from __future__ import annotations

import builtins
import hmac
import importlib.machinery
import importlib.metadata
import importlib.util
import os
import platform
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from dlprof.device import gpu_state
from dlprof.device.cuda import driver_devices, is_simulated
from dlprof.probes import capsule, generic
from dlprof.probes.base import (
    ANY_DEVICE,
    DTYPES,
    HOST_MEMORY,
    ROOTS,
    Export,
    Import,
    Probe,
    Protocol,
)
from dlprof.probes.generic import UNKNOWN, is_array
from dlprof.protocol import statement
from dlprof.protocol.statement import Cut, FaultyStatement
from dlprof.worker import loading
from dlprof.worker.channel import Reply
from dlprof.worker.instruments.handshake import proxy
from dlprof.worker.program import ProgramFailed, ProgramProbe
from dlprof.worker.refusal import FaultyProbe, Refusal, attempt
from dlprof.worker.source_text import compile_call, execute
from dlprof.worker.subject import OneArray

MACHINE_ID = Path("/etc/machine-id")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
ID_BYTES, SHOWN = 16, 12
DECLARED = ("name", "aliases", "module", "devices", "flags", "narrows_why")
"""Attributes of a probe that the catalog holds as they are."""
KEY = b"dlprof.session/1"


def inspect(sources: list[str], skip: list[str], announce: Callable[[str], None]) -> dict[str, Any]:
    """Describe the interpreter and every probe of ``sources`` and of installed packages.

    ``announce`` gets each source before it is loaded, so that the parent knows which one crashed.
    ``skip`` are the sources that did.
    """
    sources = ["builtin", *sources, *(f"entry:{name}" for name in loading.entry_names())]
    probes: list[dict[str, Any]] = []
    faults: dict[str, str] = {}

    def load(source: str) -> list[dict[str, Any]]:
        return [describe(probe, source) for probe in loading.load(source)]

    for source in (source for source in sources if source not in skip):
        announce(source)
        found = attempt(partial(load, source), BaseException)
        if not isinstance(found, Refusal):
            probes += found
        elif isinstance(found.error, (FaultyProbe, ProgramFailed)):
            faults[source] = str(found.error)
        else:
            faults[source] = found.reason
    return {"interpreter": interpreter(), "probes": probes, "faults": faults}


def describe(probe: Probe, source: str) -> dict[str, Any]:
    """Return the declarations of a probe, and whether its framework can be found."""
    versions = {name: _installed(name) for name in probe.distributions}
    distribution = next((name for name, version in versions.items() if version), None)
    version = versions[distribution] if distribution else None
    if isinstance(probe, ProgramProbe):
        version, distribution = probe.version, probe.name
    array = getattr(probe, "array_name", "x")
    return {
        **{name: getattr(probe, name) for name in DECLARED},
        **{name: dict(getattr(probe, name)) for name in ("variables", "narrows")},
        "source": source,
        # The setup of a user's own array has run, and may have told Python where to look.
        "found": isinstance(probe, OneArray | ProgramProbe) or _spec(probe.module) is not None,
        "version": version,
        "distribution": distribution,
        "also": {name: known for name in probe.also if (known := _installed(name))},
        "requirement": probe.requirement or next(iter(probe.distributions), probe.module),
        "exports": [
            {**_way(probe, export), "protocols": [export.protocol], "array": array}
            for export in probe.exports
        ],
        "imports": [_way(probe, way) for way in probe.imports],
    }


def _way(probe: Probe, way: Export | Import) -> dict[str, Any]:
    return {**asdict(way), "devices": way.devices or probe.devices}


def _spec(module: str) -> Any:
    """Find the spec of a module, without an import of its package; None if there is none."""
    root, *inner = module.split(".")
    try:
        spec = importlib.util.find_spec(root)
        if spec is None or not inner:
            return spec
        places = spec.submodule_search_locations  # None of a module that is no package
        return places and importlib.machinery.PathFinder.find_spec(module, places)
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
    # NVML would list a real GPU next to it.
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


def verify(source: str, name: str) -> dict[str, str | None]:
    """Import a framework; return the reason why it cannot use CUDA."""
    probe = loading.find(source, name)
    execute(probe.setup, {}, "setup")
    ready = attempt(partial(probe.ready, "cuda"))
    return {"reason": ready.reason if isinstance(ready, Refusal) else None}


OFFERED = (Protocol.DLPACK, Protocol.CUDA_ARRAY_INTERFACE, Protocol.ARRAY_INTERFACE)


def recognize(request: dict[str, Any], reply: Reply) -> None:
    """Send the parts, or ``fault``: the reason that the text cannot be measured."""
    reply.stage("import")  # the setup imports frameworks, which has a time limit of its own
    namespace: dict[str, Any] = {}
    result = attempt(lambda: execute(request["setup"], namespace, "setup"), BaseException)
    if isinstance(result, Refusal):
        reply.part("fault", {"exit": 4, "reason": f"the setup raised {result.reason}"})
        return
    text = request["statement"]
    reply.stage("statement")  # what the object does from now on has the limit of a case
    try:
        source = find_source(text, request["source"], namespace)
        statement.check_source(statement.parse(text), source)
    except FaultyStatement as fault:
        reply.part("fault", {"exit": 2, "reason": str(fault)})
        return
    if isinstance(namespace[source], int | float | complex | str | None):
        reason = f"{source} is no array: its type is {type(namespace[source]).__name__}"
        reply.part("fault", {"exit": 2, "reason": reason})
        return
    probes = list(_probes(request["sources"]))
    description = describe_array(namespace[source], probes)
    reply.part("source", {"name": source, **description})
    reply.part("cut", vars(statement.whole(text, source)))
    producer = description["side"]["name"]
    _convert_once(text, source, namespace, probes, producer, reply)


EXPORTS = (
    ("asarray", "numpy.asarray({x})"),
    ("to_numpy", "{x}.to_numpy()"),
    ("values", "{x}.values"),
    ("slice", "{x}[...]"),
)
"""Ways from objects of other libraries to a NumPy array."""


def recognize_object(request: dict[str, Any], reply: Reply) -> None:
    """Send ``object``: what the expression makes; or ``fault``: the reason that it makes none."""
    reply.stage("import")
    namespace: dict[str, Any] = {}
    expression = request["expression"]

    def make() -> Any:
        execute(request["setup"], namespace, "setup")
        imports = _imports(expression, namespace)
        execute(f"{imports}\nx = {expression}", namespace, "create")
        return imports

    imports = attempt(make, BaseException)
    if isinstance(imports, Refusal):
        reply.part("fault", {"exit": 4, "reason": f"{expression} raised {imports.reason}"})
        return
    thing = namespace["x"]
    if not is_array(thing):
        kind = type(thing).__name__
        reply.part("fault", {"exit": 2, "reason": f"{expression} makes no array, but a {kind}"})
        return
    found = describe_array(thing, list(_probes(request["sources"])))
    exports = [] if found["side"]["probe"] else list(_exports(thing))
    reply.part("object", {**found, "imports": imports, "exports": exports})


def _imports(expression: str, namespace: dict[str, Any]) -> str:
    """Return imports of the modules that the expression names, if the setup has not made them."""
    found: dict[str, None] = {}
    for chain in statement.dotted_names(statement.parse(expression)):
        root, *others = chain.split(".")
        if root in namespace or hasattr(builtins, root):
            continue
        modules = (".".join([root, *others[:count]]) for count in range(len(others), -1, -1))
        if module := next(filter(_spec, modules), None):
            found[f"import {module}"] = None
    return "\n".join(found)


def _exports(thing: Any) -> Iterator[tuple[str, str, str]]:
    """Yield name, protocol and code of the ways out of an object of an unknown library."""
    if generic.has(thing, "__dlpack__"):
        yield "dlpack", Protocol.DLPACK.value, "{x}"
    if generic.has(thing, "__cuda_array_interface__"):
        yield "cuda_array", Protocol.CUDA_ARRAY_INTERFACE.value, "{x}"
        return
    yield "array", Protocol.ARRAY_INTERFACE.value, "{x}"
    names = {"x": thing}
    execute("import numpy", names, "setup")
    for name, code in EXPORTS:
        array = attempt(compile_call(code.format(x="x"), names))
        if type(array).__module__ == "numpy" and is_array(array):
            yield name, Protocol.NUMPY.value, code


def find_source(text: str, source: str | None, namespace: dict[str, Any]) -> str:
    """Return the name of the source. Raises :class:`FaultyStatement` if it is not clear."""
    names = [name for name in namespace if name != "__builtins__"]
    if source is not None:
        if source not in namespace:
            found = f"it binds {', '.join(names)}" if names else "it binds nothing"
            raise FaultyStatement(f"the setup binds no name {source}: {found}")
        return source
    uses = [name for name in statement.names(statement.parse(text)) if name in names]
    arrays = [name for name in uses if is_array(namespace[name])]
    if not arrays:
        plain = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)
        arrays = [name for name in uses if not isinstance(namespace[name], plain)]
    if len(arrays) == 1:
        return arrays[0]
    if arrays:
        found = f"the statement uses several arrays: name one with --source {arrays[0]}"
        raise FaultyStatement(f"{found}; they are {', '.join(arrays)}")
    raise FaultyStatement("the statement uses no array of the setup: bind one with -s 'x = …'")


def describe_array(thing: Any, probes: list[tuple[str, Probe]]) -> dict[str, Any]:
    """Describe a source or a result: its framework, else the library and the type."""
    memory, is_bytes = generic.metadata(thing), generic.is_bytes(thing)
    roots = [
        str(getattr(kind, "__module__", "builtins")).partition(".")[0]
        for kind in type(thing).__mro__
    ]
    for root in (ROOTS.get(root, root) for root in roots):
        for source, probe in probes:
            known = _described(probe, thing) if probe.module.partition(".")[0] == root else None
            # A probe of host arrays would read a device's memory, and die of it.
            if known is not None and (known["device"], memory.device) != ("cpu", "cuda"):
                side = {"name": probe.name, "module": probe.module, "probe": [source, probe.name]}
                layout = memory.layout if list(memory.shape) == known["shape"] else UNKNOWN
                layout = probe.layout(thing) or layout
                return {"side": side, **known, "layout": layout, "bytes": is_bytes}
    return {
        "side": {**_foreign_side(type(thing), roots[0]), "wait": generic.wait_text(thing)},
        "shape": list(generic.read_shape(thing)),
        "dtype": memory.dtype,
        "device": memory.device,
        "array": memory is not generic.NOTHING or is_array(thing),
        "layout": memory.layout,
        "bytes": is_bytes,
    }


def _described(probe: Probe, thing: Any) -> dict[str, Any] | None:
    """Describe an array by its probe; None if it is no array of the probe."""

    def ask() -> dict[str, Any] | None:
        shape, dtype, device = probe.shape(thing), probe.dtype(thing), probe.device(thing)
        probe.pointer(thing)
        is_own = type(thing).__name__ in (probe.name, "Buffer")
        if shape is None and is_own and generic.is_bytes(thing):
            shape, dtype = (memoryview(thing).nbytes,), "uint8"
        if shape is None:
            return None
        return {"shape": list(shape), "dtype": dtype or UNKNOWN, "device": device, "array": True}

    known = attempt(ask)
    if known is None or isinstance(known, Refusal):
        return None
    is_named = known["dtype"] in (*DTYPES, UNKNOWN)
    return known if is_named and known["device"] in ANY_DEVICE else None


def _foreign_side(kind: type, root: str) -> dict[str, Any]:
    """Name an object by its type: ``memoryview``, ``h5py.Dataset``."""
    if root in ("__main__", "builtins"):
        return {"name": kind.__name__, "module": "builtins", "probe": None}
    distribution = ""
    if root not in sys.stdlib_module_names:
        known = () if _installed(root) else importlib.metadata.packages_distributions().get(root)
        distribution = next(iter(known or ()), root)
    name = f"{root}.{kind.__name__}"
    return {"name": name, "module": root, "probe": None, "distribution": distribution}


def _probes(sources: list[str]) -> Iterator[tuple[str, Probe]]:
    """Yield the probes of ``sources``, then dlprof's, then those of installed packages."""
    for source in (*sources, "builtin", *(f"entry:{name}" for name in loading.entry_names())):
        loaded = attempt(partial(loading.load, source), BaseException)
        if not isinstance(loaded, Refusal):  # the inspection has said why
            yield from ((source, probe) for probe in loaded)


def _convert_once(
    text: str,
    source: str,
    namespace: dict[str, Any],
    probes: list[tuple[str, Probe]],
    producer: str,
    reply: Reply,
) -> None:
    """Convert once. An error is left to the measurement, where it is a result."""
    names = {**namespace, statement.ARRAY: namespace[source]}
    reply.part("called", _called_side(text, namespace, probes))
    result = attempt(compile_call(statement.whole(text, source).code, names), BaseException)
    if isinstance(result, Refusal):
        if isinstance(result.error, NameError):  # a slip, and no result
            reply.part("fault", {"exit": 2, "reason": f"the statement raised {result.reason}"})
        return
    reply.part("result", describe_array(result, probes))
    cut, protocol = _cut_at_export(text, source, names, producer)
    reply.part("cut", vars(cut))
    reply.part("protocol", protocol)
    if protocol == Protocol.NATIVE.value:
        reply.stage("handshake")
        reply.part("protocol", _find_protocol(cut, names))


def _called_side(
    text: str, namespace: dict[str, Any], probes: list[tuple[str, Probe]]
) -> dict[str, Any]:
    """Return the framework of the function that makes the result, should it make none."""
    module = namespace.get(statement.called_name(text))
    root = module.__name__.partition(".")[0] if isinstance(module, types.ModuleType) else ""
    root = root or text.rpartition(".")[2].partition("(")[0].removeprefix("to_")  # x.to_numpy()
    for source, probe in probes:
        if probe.module == ROOTS.get(root, root) and probe.name not in HOST_MEMORY:
            return {"name": probe.name, "module": probe.module, "probe": [source, probe.name]}
    name = root if isinstance(module, types.ModuleType) else "no result"
    return {"name": name, "module": "builtins", "probe": None}


def _cut_at_export(text: str, source: str, names: dict[str, Any], producer: str) -> tuple[Cut, str]:
    """Find the innermost part of the statement that gives a capsule or a host array, if any."""
    for cut in statement.cuts(text, source):
        code = cut.export.format(x=statement.ARRAY)
        export = attempt(compile_call(code, names), BaseException)
        if isinstance(export, Refusal):
            break  # a part alone may need the whole statement
        if capsule.is_capsule(export):
            return cut, Protocol.DLPACK_CAPSULE.value
        if type(export).__module__ == "numpy" and is_array(export) and producer != "numpy":
            return cut, Protocol.NUMPY.value
    return statement.whole(text, source), Protocol.NATIVE.value


def _find_protocol(cut: Cut, names: dict[str, Any]) -> str:
    """Return the protocol that the statement requests from a stand-in of the source."""
    for protocol in OFFERED:
        events: list[dict[str, Any]] = []
        stand_in = proxy(names[statement.ARRAY], protocol, events)
        call = compile_call(cut.import_.format(x="_proxy"), {**names, "_proxy": stand_in})
        if not isinstance(attempt(call, BaseException), Refusal) and events:
            return protocol.value
    return Protocol.NATIVE.value
