"""Handshake: what does the consumer ask of the producer, and what does it get?

A recording proxy stands for the source. It has the methods of the export's protocol and no others.
The answer is a list of events: ``call`` with ``arguments`` and ``outcome``, and the fields of a
``capsule``, read without consuming it. The last event is ``import``. The C exchange API (DLPack
1.3) looks at the producer's type, and no proxy can have the buffer protocol.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from functools import partial, partialmethod
from typing import Any

from dlprof.probes import capsule
from dlprof.probes.base import BITS, FLAGS, Protocol, written
from dlprof.probes.generic import has
from dlprof.protocol.messages import ASKED_OTHERWISE, IMPORTED_OTHERWISE, words
from dlprof.worker.refusal import Refusal, attempt
from dlprof.worker.source_text import compile_call
from dlprof.worker.subject import Subject

VERSION = (1, 3)
"""The newest version of DLPack that is known here."""
LAST_LEGACY, FIRST_VERSIONED = (0, 8), (1, 0)
"""Capsules of older versions have no flags, so read-only memory is refused."""
EXPORT = "__dlpack__"
LEGACY, VERSIONED = "dltensor", "dltensor_versioned"
NEWER = ("copy", "dl_device", "max_version", "stream")
"""Arguments that an older producer may not know."""

Request = tuple[tuple[Any, ...], dict[str, Any]]
"""Arguments by position and by name."""

MEMBERS = {
    Protocol.DLPACK: ("__dlpack_device__", EXPORT),
    Protocol.ARRAY_INTERFACE: ("__array__", "__array_interface__"),
    Protocol.CUDA_ARRAY_INTERFACE: ("__cuda_array_interface__",),
}
"""Methods and properties of a protocol; a property ends in ``_interface__``."""


def measure(subject: Subject, requests: list[Request] | None = None) -> list[dict[str, Any]]:
    """Return the events; none for protocols without a handshake. Fill ``requests``."""
    protocol = subject.export.protocol
    if protocol is Protocol.DLPACK_CAPSULE:
        return [_capsule_event(subject)]
    if protocol not in MEMBERS:
        return []
    events: list[dict[str, Any]] = []
    names = {**subject.namespace, "_proxy": proxy(subject.source, protocol, events, requests)}
    code = written(subject.import_.code, "_proxy", subject.spec.dtype, subject.spec.shape)
    result = attempt(compile_call(code, names))
    outcome = words(result.error) if isinstance(result, Refusal) else "returned"
    events.append({"call": "import", "outcome": outcome})
    return events


def measure_refusal(subject: Subject) -> list[dict[str, Any]]:
    """Return the events of a refused conversion, and experiments that change one thing.

    Empty for other protocols, and if the proxy is taken for an array that the protocol does not
    describe in full: a consumer may refuse it for that.
    """
    protocol = subject.export.protocol
    if subject.is_one_array:
        return []
    if protocol is Protocol.DLPACK_CAPSULE:
        return _with_legacy_capsule(subject)
    if protocol not in (Protocol.DLPACK, Protocol.CUDA_ARRAY_INTERFACE):
        return []
    requests: list[Request] = []
    events = measure(subject, requests)
    spec = subject.spec
    if events[-1]["outcome"] == "returned":
        return [] if spec.layout in FLAGS or spec.dtype in BITS else events
    last = next((event for event in reversed(events) if event["call"] == EXPORT), None)
    if last is None or last["outcome"] == "returned":
        return events
    is_unknown = last["outcome"].startswith("TypeError")
    for args, kwargs in _variants(*requests[-1], is_unknown):
        call = partial(subject.source.__dlpack__, *args, **kwargs)
        arguments = _arguments(args, kwargs)
        answer = attempt(partial(_record, events, ASKED_OTHERWISE, arguments, call))
        if not isinstance(answer, Refusal):
            break
    return events


def _with_legacy_capsule(subject: Subject) -> list[dict[str, Any]]:
    events = [_capsule_event(subject)]
    capsule = events[0].get("capsule") or {}
    if capsule.get("name") != VERSIONED or not has(subject.source, EXPORT):
        return events
    legacy = attempt(partial(_record, events, ASKED_OTHERWISE, {}, subject.source.__dlpack__))
    if not isinstance(legacy, Refusal) and events[-1].get("capsule", {}).get("name") == LEGACY:
        spec = subject.spec
        code = written(subject.import_.code, f"x.{EXPORT}()", spec.dtype, spec.shape)
        take = compile_call(code, subject.namespace)
        attempt(partial(_record, events, IMPORTED_OTHERWISE, {"code": code}, take))
    return events


def _variants(args: tuple[Any, ...], kwargs: dict[str, Any], is_unknown: bool) -> Iterator[Request]:
    """Yield requests that differ from a refused one in one thing.

    If an argument ``is_unknown``, also requests that leave one out, and last one without any.
    """
    if args:
        yield (), {"stream": args[0], **kwargs}
    if (kwargs.get("max_version") or LAST_LEGACY) < FIRST_VERSIONED:
        yield args, {**kwargs, "max_version": VERSION}
    if is_unknown:
        for keyword in filter(kwargs.__contains__, NEWER):
            yield args, {name: value for name, value in kwargs.items() if name != keyword}
        yield (), {}


def proxy(
    source: Any,
    protocol: Protocol,
    events: list[dict[str, Any]],
    requests: list[Request] | None = None,
) -> Any:
    """Make an object with the protocol's methods of ``source``, which records into ``events``.

    The arguments of ``__dlpack__`` go into ``requests`` as they are.
    """

    def read(_self: Any, name: str) -> Any:
        return _record(events, name, {}, lambda: getattr(source, name))

    def call(_self: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        if requests is not None and name == EXPORT:
            requests.append((args, kwargs))
        arguments = _arguments(args, kwargs)
        return _record(events, name, arguments, lambda: getattr(source, name)(*args, **kwargs))

    members: dict[str, Any] = {
        name: property(partial(read, name=name))
        if name.endswith("_interface__")
        else partialmethod(call, name)
        for name in MEMBERS[protocol]
        if has(source, name)
    }
    return type("RecordingProxy", (), members)()


def _record(events: list[dict[str, Any]], name: str, arguments: dict[str, Any], call: Any) -> Any:
    event: dict[str, Any] = {"call": name, "arguments": arguments}
    events.append(event)
    try:
        answer = call()
    except BaseException as refusal:
        event["outcome"] = words(refusal)
        raise
    event["outcome"] = "returned"
    contents = capsule.read(answer)
    if contents is not None:
        event["capsule"] = asdict(contents)
    return answer


def _capsule_event(subject: Subject) -> dict[str, Any]:
    handed = compile_call(subject.export_code, subject.namespace)()
    contents = capsule.read(handed)
    event: dict[str, Any] = {"call": "export", "outcome": type(handed).__name__}
    if contents is not None:
        event["capsule"] = asdict(contents)
    return event


def _arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    plain = {
        name: value if value is None or isinstance(value, (bool, int, str)) else repr(value)
        for name, value in kwargs.items()
    }
    return {**{str(i): repr(a) for i, a in enumerate(args)}, **plain}
