"""Recognise a user's own conversion: which name is the source, and which frameworks take part.

The setup and the statement run once, in a process of their own. The types of source and result
name the frameworks. Parts are sent one by one, so that a crash loses none: ``source``, ``cut``,
``result`` and ``protocol``.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from functools import partial
from typing import Any

from dlprof.probes import capsule
from dlprof.probes.base import ANY_DEVICE, DTYPES, ROOTS, Probe, Protocol
from dlprof.protocol import statement
from dlprof.protocol.statement import Cut, FaultyStatement
from dlprof.worker import any_array, loading
from dlprof.worker.any_array import UNKNOWN
from dlprof.worker.channel import Answer
from dlprof.worker.instruments.handshake import proxy
from dlprof.worker.refusal import Refusal, attempt
from dlprof.worker.source_text import compile_call, execute

ARRAYS = ("__dlpack__", "__array__", "__array_interface__", "__cuda_array_interface__")
OFFERED = (Protocol.DLPACK, Protocol.CUDA_ARRAY_INTERFACE, Protocol.ARRAY_INTERFACE)


def recognise(request: dict[str, Any], answer: Answer) -> None:
    """Send what was found, or ``fault``: why the text cannot be measured."""
    answer.stage("import")  # the setup imports frameworks, which has a time limit of its own
    namespace: dict[str, Any] = {}
    done = attempt(lambda: execute(request["setup"], namespace, "setup"), BaseException)
    if isinstance(done, Refusal):
        answer.part("fault", {"exit": 4, "reason": f"the setup raised {done.reason}"})
        return
    text = request["statement"]
    try:
        source = find_source(text, request["source"], namespace)
        statement.check_source(statement.parse(text), source)
    except FaultyStatement as fault:
        answer.part("fault", {"exit": 2, "reason": str(fault)})
        return
    probes = list(_probes(request["sources"]))
    seen = describe(namespace[source], probes)
    answer.part("source", {"name": source, **seen})
    answer.part("cut", vars(statement.whole(text, source)))
    _convert_once(text, source, namespace, probes, seen, answer)


def find_source(text: str, asked: str | None, namespace: dict[str, Any]) -> str:
    """The name of the source. Raises :class:`FaultyStatement` if it is not clear."""
    made = [name for name in namespace if name != "__builtins__"]
    if asked is not None:
        if asked not in namespace:
            found = f"it binds {', '.join(made)}" if made else "it binds nothing"
            raise FaultyStatement(f"the setup binds no name {asked}: {found}")
        return asked
    used = [name for name in statement.names(statement.parse(text)) if name in made]
    arrays = [name for name in used if is_array(namespace[name])]
    if not arrays:
        plain = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)
        arrays = [name for name in used if not isinstance(namespace[name], plain)]
    if len(arrays) == 1:
        return arrays[0]
    if arrays:
        found = f"the statement uses several arrays: name one with --source {arrays[0]}"
        raise FaultyStatement(f"{found}; they are {', '.join(arrays)}")
    raise FaultyStatement("the statement uses no array of the setup: bind one with -s 'x = …'")


def is_array(thing: Any) -> bool:
    return not isinstance(thing, type) and any(any_array.has(thing, name) for name in ARRAYS)


def describe(thing: Any, probes: list[tuple[str, Probe]]) -> dict[str, Any]:
    roots = [kind.__module__.partition(".")[0] for kind in type(thing).__mro__]
    told = any_array.metadata(thing)
    for root in (ROOTS.get(root, root) for root in roots):
        for source, probe in probes:
            known = _told_by(probe, thing) if probe.module.partition(".")[0] == root else None
            if known is not None:
                side = {"name": probe.name, "module": probe.module, "probe": [source, probe.name]}
                layout = told.layout if list(told.shape) == known["shape"] else UNKNOWN
                return {"side": side, **known, "layout": layout}
    return {
        "side": {**_foreign_side(roots[0], probes), "wait": any_array.wait_text(thing)},
        "shape": list(any_array.shape_of(thing)),
        "dtype": told.dtype,
        "device": told.device,
        "array": told is not any_array.NOTHING,
        "layout": told.layout,
    }


def _told_by(probe: Probe, thing: Any) -> dict[str, Any] | None:
    """What a probe says of an object; None if it is none of its arrays."""

    def ask() -> dict[str, Any] | None:
        shape = probe.shape(thing)
        if shape is None:
            return None  # plain memory does not say what it is an array of
        probe.pointer(thing)
        dtype, device = probe.dtype(thing), probe.device(thing)
        return {"shape": list(shape), "dtype": dtype, "device": device, "array": True}

    known = attempt(ask)
    if known is None or isinstance(known, Refusal):
        return None
    return known if known["dtype"] in DTYPES and known["device"] in ANY_DEVICE else None


def _foreign_side(root: str, probes: list[tuple[str, Probe]]) -> dict[str, Any]:
    is_plain = root == "__main__" or root in sys.stdlib_module_names
    name = "python" if is_plain else root
    if name in {probe.name for _, probe in probes}:
        name = f"{name} object"  # of the framework, but no array that its probe knows
    return {"name": name, "module": "builtins" if is_plain else root, "probe": None}


def _probes(sources: list[str]) -> Iterator[tuple[str, Probe]]:
    """The probes that were named, then those of dlprof, then those of installed packages."""
    for source in (*sources, "builtin", *(f"entry:{name}" for name in loading.entry_names())):
        loaded = attempt(partial(loading.load, source), BaseException)
        if not isinstance(loaded, Refusal):  # the inspection has said why
            yield from ((source, probe) for probe in loaded)


def _convert_once(
    text: str,
    source: str,
    namespace: dict[str, Any],
    probes: list[tuple[str, Probe]],
    seen: dict[str, Any],
    answer: Answer,
) -> None:
    """Convert once. An error is left to the measurement, where it is a result."""
    answer.stage("statement")
    names = {**namespace, statement.ARRAY: namespace[source]}
    result = attempt(compile_call(statement.whole(text, source).code, names), BaseException)
    if isinstance(result, Refusal):
        return
    answer.part("result", describe(result, probes))
    cut, protocol = _handed_over(text, source, names, seen)
    answer.part("cut", vars(cut))
    answer.part("protocol", protocol)
    if protocol == Protocol.NATIVE.value:
        answer.stage("handshake")
        answer.part("protocol", _asked_for(cut, names))


def _handed_over(
    text: str, source: str, names: dict[str, Any], seen: dict[str, Any]
) -> tuple[Cut, str]:
    """The innermost part of the statement that gives a capsule or a host array, if any."""
    producer = seen["side"]["name"]
    for cut in statement.cuts(text, source):
        code = cut.export.format(x=statement.ARRAY)
        handed = attempt(compile_call(code, names), BaseException)
        if isinstance(handed, Refusal):
            break  # a part alone may need what the whole gives it
        if capsule.is_capsule(handed):
            return cut, Protocol.DLPACK_CAPSULE.value
        if type(handed).__module__ == "numpy" and is_array(handed) and producer != "numpy":
            return cut, Protocol.NUMPY.value
    return statement.whole(text, source), Protocol.NATIVE.value


def _asked_for(cut: Cut, names: dict[str, Any]) -> str:
    """The protocol for which the statement asks a stand-in of the source."""
    for protocol in OFFERED:
        events: list[dict[str, Any]] = []
        stand_in = proxy(names[statement.ARRAY], protocol, events)
        call = compile_call(cut.import_.format(x="_proxy"), {**names, "_proxy": stand_in})
        if not isinstance(attempt(call, BaseException), Refusal) and events:
            return protocol.value
    return Protocol.NATIVE.value
