"""What a user's own conversion is: which name is the source, and whose source and result are.

The setup and the statement run once, in a process of its own. Frameworks are recognised by the
types of the objects. Answers come one by one, so that what was found before a crash is kept:
``setup``, ``source``, ``cut``, ``result`` and ``protocol``.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dlprof.probes import capsule
from dlprof.probes.base import ANY_DEVICE, DTYPES, Probe, Protocol
from dlprof.protocol import statement
from dlprof.protocol.messages import words
from dlprof.protocol.statement import Cut, FaultyStatement
from dlprof.worker import foreign, loading
from dlprof.worker.foreign import UNKNOWN
from dlprof.worker.instruments.handshake import proxy
from dlprof.worker.subject import compile_call

if TYPE_CHECKING:
    from dlprof.worker.channel import Answer

ROOTS = {"jaxlib": "jax", "numba_cuda": "numba"}
"""Modules whose types belong to another framework."""
ARRAYS = ("__dlpack__", "__array__", "__array_interface__", "__cuda_array_interface__")
OFFERED = (Protocol.DLPACK, Protocol.CUDA_ARRAY_INTERFACE, Protocol.ARRAY_INTERFACE)


def recognise(request: dict[str, Any], answer: Answer) -> None:
    """Answer with what was found, or with ``fault``: why the text cannot be measured."""
    answer.stage("import")  # the setup imports frameworks, which has a limit of its own
    namespace: dict[str, Any] = {}
    try:
        run_setup(request["setup"], namespace)
    except BaseException as fault:  # noqa: BLE001 - a user's text may raise anything
        answer.part("fault", {"exit": 4, "reason": f"the setup raised {words(fault)}"})
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
    _try(text, source, namespace, probes, seen, answer)


def run_setup(text: str, namespace: dict[str, Any]) -> None:
    """Run a setup; it may raise anything."""
    exec(compile(text, "<setup>", "exec", dont_inherit=True), namespace)  # noqa: S102 - the user's own text


def find_source(text: str, asked: str | None, namespace: dict[str, Any]) -> str:
    """The name of the source. Raises :class:`FaultyStatement` where it cannot be told."""
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
    found = f"uses several: {', '.join(arrays)}" if arrays else "uses none that the setup binds"
    raise FaultyStatement(f"name the array to convert as the source: the statement {found}")


def is_array(thing: Any) -> bool:
    return not isinstance(thing, type) and any(foreign.has(thing, name) for name in ARRAYS)


def describe(thing: Any, probes: list[tuple[str, Probe]]) -> dict[str, Any]:
    """Whose object it is, and what is known of it."""
    roots = [kind.__module__.partition(".")[0] for kind in type(thing).__mro__]
    told = foreign.metadata(thing)
    for root in (ROOTS.get(root, root) for root in roots):
        for source, probe in probes:
            if probe.module.partition(".")[0] == root:
                known = _ask(probe, thing)
                if known is not None:
                    word = _layout(told, known["shape"])
                    return {
                        "side": _side(probe.name, probe.module, source),
                        **known,
                        "layout": word,
                    }
    side = {**_foreign_side(roots[0], probes), "wait": foreign.wait_text(thing)}
    return {"side": side, **_told(told), "layout": foreign.layout(told)}


def _ask(probe: Probe, thing: Any) -> dict[str, Any] | None:
    """What a probe says of an object; None if it is none of its arrays."""
    try:
        shape = probe.shape(thing)
        if shape is None:
            return None  # plain memory says too little: what it is an array of is not known
        known = {
            "shape": list(shape),
            "dtype": probe.dtype(thing),
            "device": probe.device(thing),
            "array": True,
        }
        probe.pointer(thing)
    except Exception:  # noqa: BLE001 - any framework, any error: then it is not its array
        return None
    return known if known["dtype"] in DTYPES and known["device"] in ANY_DEVICE else None


def _told(told: foreign.Metadata) -> dict[str, Any]:
    found = told is not foreign.NOTHING
    return {
        "shape": list(told.shape),
        "dtype": told.dtype,
        "device": told.device,
        "array": found,
    }


def _layout(told: foreign.Metadata, shape: list[int]) -> str:
    return foreign.layout(told) if list(told.shape) == shape else UNKNOWN


def _side(name: str, module: str, source: str) -> dict[str, Any]:
    return {"name": name, "module": module, "probe": [source, name]}


def _foreign_side(root: str, probes: list[tuple[str, Probe]]) -> dict[str, Any]:
    is_plain = root == "__main__" or root in sys.stdlib_module_names
    name = "python" if is_plain else root
    if name in {probe.name for _, probe in probes}:
        name = f"{name} object"  # of the framework, but no array that its probe knows
    return {"name": name, "module": "builtins" if is_plain else root, "probe": None}


def _probes(sources: list[str]) -> Iterator[tuple[str, Probe]]:
    """The probes that were named, then those of dlprof, then those of installed packages."""
    for source in (*sources, "builtin", *(f"entry:{name}" for name in loading.entry_names())):
        try:
            yield from ((source, probe) for probe in loading.load(source))
        except BaseException:  # noqa: BLE001, S112 - foreign code; the inspection has said why
            continue


def _try(
    text: str,
    source: str,
    namespace: dict[str, Any],
    probes: list[tuple[str, Probe]],
    seen: dict[str, Any],
    answer: Answer,
) -> None:
    """Convert once; an error is left to the measurement, where it is a result."""
    answer.stage("statement")
    names = {**namespace, statement.ARRAY: namespace[source]}
    try:
        result = compile_call(statement.whole(text, source).code, names)()
    except BaseException as refusal:  # noqa: BLE001 - it is the answer of the case
        answer.part("refusal", words(refusal))
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
    """The innermost part of the statement that gives a capsule or a host array, if there is one."""
    producer = seen["side"]["name"]
    for cut in statement.cuts(text, source):
        try:
            handed = compile_call(cut.export.format(x=statement.ARRAY), names)()
        except BaseException:  # noqa: BLE001 - a part alone may need what the whole gives it
            break
        if capsule.is_capsule(handed):
            return cut, Protocol.DLPACK_CAPSULE.value
        if type(handed).__module__ == "numpy" and is_array(handed) and producer != "numpy":
            return cut, Protocol.NUMPY.value
    return statement.whole(text, source), Protocol.NATIVE.value


def _asked_for(cut: Cut, names: dict[str, Any]) -> str:
    """The protocol that the statement asks a stand-in of the source for."""
    for protocol in OFFERED:
        events: list[dict[str, Any]] = []
        stand_in = proxy(names[statement.ARRAY], protocol, events)
        try:
            compile_call(cut.import_.format(x="_proxy"), {**names, "_proxy": stand_in})()
        except BaseException:  # noqa: BLE001, S112 - it does not take this one
            continue
        if events:
            return protocol.value
    return Protocol.NATIVE.value
