"""Find probes, and import the path that a request names.

A source of probes is text: ``builtin``, ``synthetic``, ``file:/path/to/probe.py``, ``entry:name``,
``code:`` and a user's own conversion, ``program:`` and a user's command, or ``step:`` and a
framework that runs a model. Generic code runs here, in a worker, and never in the parent.
"""

from __future__ import annotations

import gc
import importlib.util
import sys
from collections.abc import Callable, Collection, Sequence
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any

from dlprof import inference
from dlprof.probes.base import ANY_DEVICE, LAYOUTS, ArraySpec, Export, Import, Probe, Protocol
from dlprof.probes.builtin import ALL
from dlprof.probes.generic import Generic
from dlprof.protocol.statement import STATEMENT, ProgramSource, Side, UserCode, UserObject, promise
from dlprof.worker import program
from dlprof.worker.channel import Channel, Reply
from dlprof.worker.refusal import FaultyProbe
from dlprof.worker.simulated import adapt
from dlprof.worker.source_text import check_code, check_text, need
from dlprof.worker.subject import FailedImports, LoadedPath, OneArray, run_setups

GROUP = "dlprof.probes"


def entry_names() -> list[str]:
    return sorted({entry.name for entry in entry_points(group=GROUP)})


def load(source: str) -> list[Probe]:
    """Load the probes of a source. Raises :class:`FaultyProbe`; foreign code may raise anything."""
    if source == "builtin":
        return [kind() for kind in ALL]
    if source == "synthetic":
        from dlprof.selftest import plants

        return plants.probes()
    made: dict[str, Callable[[], list[Probe]]] = {
        UserCode.PREFIX: lambda: own_probes(UserCode.read(source)),
        UserObject.PREFIX: lambda: [_object_probe(UserObject.read(source))],
        inference.PREFIX: lambda: [inference.load(source)],
        ProgramSource.PREFIX: lambda: program.load(source),
        "file:": lambda: _from_module(_load_file(source.removeprefix("file:")), source),
    }
    for prefix, probes in made.items():
        if source.startswith(prefix):
            return probes()
    name = source.removeprefix("entry:")
    (entry,) = (entry for entry in entry_points(group=GROUP) if entry.name == name)
    return [_checked(entry.load(), source)]


def find(source: str, name: str) -> Probe:
    for probe in load(source):
        if probe.name == name:
            return probe
    raise FaultyProbe(f"{source} has no probe named {name}")


def _load_file(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"dlprof_outside_probe:{path}", path)
    if spec is None or spec.loader is None:
        raise FaultyProbe(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # a dataclass looks there for the names in its annotations
    spec.loader.exec_module(module)
    return module


def _from_module(module: ModuleType, source: str) -> list[Probe]:
    kinds = [
        thing
        for thing in vars(module).values()
        if isinstance(thing, type)
        and issubclass(thing, Probe)
        and thing.__module__ == module.__name__
    ]
    if not kinds:
        raise FaultyProbe("it defines no subclass of dlprof.probes.base.Probe")
    return [_checked(kind, source) for kind in dict.fromkeys(kinds)]  # a class may have two names


def _checked(kind: Any, source: str) -> Probe:
    if not (isinstance(kind, type) and issubclass(kind, Probe)):
        raise FaultyProbe(f"{source} is not a subclass of dlprof.probes.base.Probe")
    check_probe(kind)
    probe: Probe = kind()
    return probe


def check_probe(kind: type[Probe]) -> None:
    """Raise :class:`FaultyProbe` for the first declaration of ``kind`` that cannot be used."""
    place = kind.__name__
    for attribute in ("name", "module", "requirement", "setup", "array_type"):
        check_text(getattr(kind, attribute, None), f"{place}.{attribute}")
    need(kind.name.isprintable() and bool(kind.name), f"{place}.name", "a name", kind.name)
    for attribute in ("aliases", "distributions", "also"):
        _check_tuple(str, getattr(kind, attribute, None), f"{place}.{attribute}")
    _check_names(kind.devices, ANY_DEVICE, f"{place}.devices")
    _check_ways(Export, kind.exports, f"{place}.exports")
    _check_ways(Import, kind.imports, f"{place}.imports")


def _check_ways(kind: type, ways: tuple[Export | Import, ...], place: str) -> None:
    _check_tuple(kind, ways, place)
    names = [way.name for way in ways]
    need(len(set(names)) == len(names), f"names in {place}", "different", names)
    for way in ways:
        _check_way(way, f"{place} {way.name!r}")


def _check_way(way: Export | Import, place: str) -> None:
    check_code(way.code, f"the code of {place}", names=("x", "dtype", "shape"))
    _check_names(way.devices, ANY_DEVICE, f"devices of {place}")
    promised = way.promise in (None, "copy", "view")
    need(promised, f"the promise of {place}", "copy or view", way.promise)
    protocols = way.protocols if isinstance(way, Import) else (way.protocol,)
    _check_tuple(Protocol, protocols, f"the protocol of {place}")
    if isinstance(way, Import):
        _check_tuple(str, way.producers, f"producers of {place}")
        check_text(way.setup, f"the setup of {place}")
        _check_names(way.layouts, LAYOUTS, f"the layouts of {place}")


def _check_tuple(kind: type, values: Any, place: str) -> None:
    # A forgotten comma makes a string of a tuple, which can be iterated as well.
    right = isinstance(values, tuple) and all(isinstance(value, kind) for value in values)
    need(right, place, f"a tuple of {kind.__name__}", values)


def _check_names(values: Any, allowed: Collection[str], place: str) -> None:
    _check_tuple(str, values, place)
    need(set(values) <= set(allowed), place, f"of {', '.join(allowed)}", values)


def own_probes(codes: Sequence[UserCode]) -> list[Probe]:
    """Make a probe for each framework of a user's own conversions of one array.

    Each is the framework's own probe with the user's text: the setup makes the array, and the
    statement takes the place of an export and an import. An unknown object speaks for itself.
    """
    sides = {side.name: side for own in codes for side in (own.producer, own.consumer)}
    return [_own_probe(codes, side) for side in sides.values()]


def _own_probe(codes: Sequence[UserCode], side: Side) -> Probe:
    own = codes[0]
    base = type(find(*side.probe)) if side.probe else Generic
    name = "array" if own.export == "{x}" else "export"
    export = Export(name, Protocol(own.protocol), own.export)
    imports = [
        Import(
            f"{STATEMENT} {number}" if number > 1 else STATEMENT,
            (Protocol(code.protocol),),
            code.import_,
            setup=code.setup,
            promise=promise(code.import_.format(x="x")),
            result_device=code.result_device,
            returns_array=code.returns_array,
            arrays=code.arrays,
        )
        for number, code in enumerate(codes, 1)
        if code.consumer.name == side.name
    ]
    # The setup has made the array. To make another one, it runs again.
    rerun = f"exec(compile({own.setup!r}, '<setup>', 'exec', dont_inherit=True), globals())"
    created = f"if '_made' in globals():\n    {rerun}\n_made = True\nx = {own.source}"
    members: dict[str, Any] = {
        "name": side.name,
        "array_name": own.source,
        "created": f"x = {own.source}",  # its setup has made the array
        "module": side.module,
        "devices": ANY_DEVICE,
        "exports": (export,),
        "imports": tuple(imports),
        # The arrays of a survey are the framework's.
        "create": lambda self, spec: base.create(self, spec) if spec.corners else created,
    }
    return _one_array(base, side, members)


def _object_probe(own: UserObject) -> Probe:
    """Make the probe of an object from its framework's probe, or a generic one."""
    base = type(find(*own.side.probe)) if own.side.probe else Generic
    created = f"x = {own.expression}"
    members: dict[str, Any] = {
        "name": own.side.name,
        "array_name": "x",
        "created": created,
        "module": own.side.module,
        "setup": f"{base.setup}\n{own.imports}".strip(),
        "create": lambda _self, _spec: created,
    }
    if own.side.probe is None:
        exports = [Export(name, Protocol(protocol), code) for name, protocol, code in own.exports]
        members |= {"exports": tuple(exports), "devices": ANY_DEVICE}
        members["setup"] += "\nimport numpy"
    return _one_array(base, own.side, members)


def _one_array(base: type[Probe], side: Side, members: dict[str, Any]) -> Probe:
    if side.probe is None:
        distributions = (side.distribution,) if side.distribution else ()
        members |= {"distributions": distributions, "wait_text": side.wait}
    probe: Probe = type(f"Own{base.__name__}", (OneArray, base), members)()
    return probe


class WorkerState:
    """Probes, namespaces, imports that failed, and how many cases ran."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.probes: dict[tuple[str, str], Probe] = {}
        self.namespaces: dict[tuple[str, ...], dict[str, Any]] = {}
        self.failed: FailedImports = {}
        self.cases_before = 0

    def probe(self, source: str, name: str) -> Probe:
        """Return the probe, loaded once per worker."""
        if (source, name) not in self.probes:
            found = find(source, name)
            # The synthetic frameworks compute by copies of the driver alone.
            self.probes[source, name] = found if source == "synthetic" else adapt(found)
        return self.probes[source, name]


def load_path(state: WorkerState, request: dict[str, Any], reply: Reply) -> LoadedPath:
    reply.stage("import")
    producer = state.probe(*request["producer"])
    consumer = state.probe(*request["consumer"])
    export = find_way(producer, producer.exports, request["export"])
    import_ = find_way(consumer, consumer.imports, request["import"])
    setup = str(request.get("setup", ""))
    key = (producer.name, consumer.name, import_.name, setup)
    if key not in state.namespaces:
        state.namespaces[key] = run_setups(producer, consumer, import_, setup, state.failed)
        gc.freeze()  # the frameworks' own objects would slow every collection below
    return LoadedPath(producer, consumer, export, import_, state.namespaces[key])


def read_spec(request: dict[str, Any]) -> ArraySpec:
    shape, dtype, layout, device = (request[n] for n in ("shape", "dtype", "layout", "device"))
    return ArraySpec(tuple(shape), dtype, layout, device, request.get("corners", False))


def find_way(probe: Probe, ways: tuple[Any, ...], name: str) -> Any:
    for way in ways:
        if way.name == name:
            return way
    raise FaultyProbe(f"{probe.name} has no way named {name}")
