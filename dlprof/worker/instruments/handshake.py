"""Handshake: what does the consumer ask of the producer, and what does it get?

A recording proxy stands for the source: it has the methods of the export's protocol and nothing
else, passes each call on, and writes down arguments, answer and time. Capsules are read without
being consumed. It shows the Python protocol only: the C exchange API (DLPack 1.3) looks at the
producer's type, which the proxy is not, and the buffer protocol cannot be stood in for.
"""

from __future__ import annotations

import time
from typing import Any

from dlprof.probes import capsule
from dlprof.probes.base import DTYPES, Protocol, written
from dlprof.worker.foreign import has
from dlprof.worker.subject import Subject, compile_call

LARGEST_BYTES = 256 << 20
"""Of a larger array a smaller one asks and is asked the same."""

_METHODS = {
    Protocol.DLPACK: ("__dlpack_device__", "__dlpack__"),
    Protocol.ARRAY_INTERFACE: ("__array__",),
}
_PROPERTIES = {
    Protocol.ARRAY_INTERFACE: ("__array_interface__",),
    Protocol.CUDA_ARRAY_INTERFACE: ("__cuda_array_interface__",),
}


def measure(subject: Subject) -> list[dict[str, Any]]:
    """The transcript; empty for protocols that have no handshake."""
    protocol = subject.export.protocol
    if protocol is Protocol.DLPACK_CAPSULE:
        return [_capsule_event(subject)]
    if protocol not in _METHODS and protocol not in _PROPERTIES:
        return []
    events: list[dict[str, Any]] = []
    source = subject.source
    if subject.spec.size_bytes > LARGEST_BYTES and not subject.is_one_array:
        subject = subject.of_elements(LARGEST_BYTES // DTYPES[subject.spec.dtype])
        source = subject.make_another()
    subject.namespace["_proxy"] = proxy(source, protocol, events)
    try:
        call = compile_call(_written(subject.import_.code, "_proxy", subject), subject.namespace)
        events.append({"call": "import", "outcome": _outcome(call)})
    finally:
        del subject.namespace["_proxy"]
    return events


def proxy(source: Any, protocol: Protocol, events: list[dict[str, Any]]) -> Any:
    """An object with the protocol's methods of ``source`` that records into ``events``."""
    members: dict[str, Any] = {}
    for name in _METHODS.get(protocol, ()):
        if has(source, name):
            members[name] = _method(source, name, events)
    for name in _PROPERTIES.get(protocol, ()):
        if has(source, name):
            members[name] = _property(source, name, events)
    return type("RecordingProxy", (), members)()


def _method(source: Any, name: str, events: list[dict[str, Any]]) -> Any:
    def method(_self: Any, *args: Any, **kwargs: Any) -> Any:
        arguments = {**{str(i): repr(a) for i, a in enumerate(args)}, **_plain(kwargs)}
        return _record(events, name, arguments, lambda: getattr(source, name)(*args, **kwargs))

    method.__name__ = name
    return method


def _property(source: Any, name: str, events: list[dict[str, Any]]) -> Any:
    return property(lambda _self: _record(events, name, {}, lambda: getattr(source, name)))


def _record(events: list[dict[str, Any]], name: str, arguments: dict[str, Any], call: Any) -> Any:
    event: dict[str, Any] = {"call": name, "arguments": arguments}
    events.append(event)
    begin = time.perf_counter_ns()
    try:
        answer = call()
    except BaseException as refusal:
        event.update(ns=time.perf_counter_ns() - begin, outcome=_words(refusal))
        raise
    event.update(ns=time.perf_counter_ns() - begin, outcome="returned")
    contents = capsule.read(answer)
    if contents is not None:
        event["capsule"] = contents.as_dict()
    elif isinstance(answer, (tuple, dict)):
        event["answer"] = repr(answer)[:500]
    return answer


def _capsule_event(subject: Subject) -> dict[str, Any]:
    handed = compile_call(_written(subject.export.code, "x", subject), subject.namespace)()
    contents = capsule.read(handed)
    event: dict[str, Any] = {"call": "export", "outcome": type(handed).__name__}
    if contents is not None:
        event["capsule"] = contents.as_dict()
    return event


def _written(code: str, x: str, subject: Subject) -> str:
    return written(code, x, subject.spec.dtype, subject.spec.shape)


def _outcome(call: Any) -> str:
    try:
        call()
    except Exception as refusal:  # noqa: BLE001 - any framework, any error: it is the answer
        return _words(refusal)
    return "returned"


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:500]


def _plain(arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value if value is None or isinstance(value, (bool, int, str)) else repr(value)
        for name, value in arguments.items()
    }
