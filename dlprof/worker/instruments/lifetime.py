"""Lifetime: does the result outlive its source, and does everything go when it is dropped?

At a size of its own, whatever the case's: the source and every intermediate are dropped while the
result lives, the memory is used again for other values, and the result is read once more. Proof of
a dangling result: its values changed (or the process died of reading them, which is why this runs
when all times are taken, and says where it is). Then the conversion is repeated with its results
dropped: memory, Python objects or references to the source that go on growing are retained; see
:mod:`dlprof.worker.growth`. It cannot tell where no values can be read.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from dlprof.probes.base import DTYPES, WHOLE_LAYOUTS, Probe, Unsupported
from dlprof.worker import growth, pages, room
from dlprof.worker.host_memory import malloc_meter, resident_bytes
from dlprof.worker.subject import Subject, compile_call

if TYPE_CHECKING:
    from dlprof.device.cuda import Gpu

CHURN = 4
"""Arrays and blocks of the source's size that are made after it was dropped."""
SIZE_BYTES = 64 << 10
"""Small enough that the allocator hands freed memory out again instead of returning it."""
LARGEST_BYTES = 64 << 20
"""An array of a user's own may be larger; many of them would not fit into memory."""
UNCOUNTED = "neither framework says how much of the device's memory it uses"
AFTER_DROP = "lifetime after drop"
"""The stage from the end of the source to the end of reading the result: who dies here dangled."""


class Listener(Protocol):
    """Is told how far it got, and what was found by then; see ``dlprof.worker.case``."""

    def stage(self, name: str) -> None: ...
    def part(self, name: str, value: Any) -> None: ...


class Nobody:
    """A listener that is not there."""

    def stage(self, name: str) -> None: ...
    def part(self, name: str, value: Any) -> None: ...


def measure(
    subject: Subject, gpu: Gpu | None = None, listener: Listener | None = None
) -> dict[str, Any]:
    """Verdict ``safe``, ``dangling``, ``retained`` or ``unknown`` with evidence."""
    listener = listener or Nobody()
    subject.check_own()
    other = subject.of_elements(SIZE_BYTES // max(DTYPES.get(subject.spec.dtype, 1), 1))
    if subject.is_one_array and not other.spec.size_bytes:
        raise Unsupported("nothing tells how many bytes the source has")
    if other.spec.size_bytes > LARGEST_BYTES:
        raise Unsupported(f"the array is larger than {LARGEST_BYTES:,} bytes: too large to repeat")
    evidence: dict[str, Any] = {"changed_after_drop": _changed_after_drop(other, gpu, listener)}
    listener.part("after_drop", evidence)
    listener.stage("lifetime repetition")
    source = other.make_another()
    convert = compile_call(other.code, {**subject.namespace, "x": source})

    def convert_and_wait() -> None:
        subject.wait_for(convert())  # what is still being made is not retained

    if other.spec.device == "cpu" and not evidence["changed_after_drop"]:
        room.check_more(growth.most_kept(other.spec.size_bytes))
    evidence |= growth.measure(convert_and_wait, source, _meters(subject), other.spec.size_bytes)
    if "cuda" in _places(subject) and not _counting(subject):
        evidence["device_counted"] = False
    verdict, reason = judge(evidence)
    if verdict in ("dangling", "retained"):
        evidence |= other.made()
    return {"verdict": verdict, "evidence": {**evidence, **({"reason": reason} if reason else {})}}


def judge(evidence: dict[str, Any]) -> tuple[str, str | None]:
    """The verdict that the evidence allows, and why if something grew that proves nothing."""
    if evidence["changed_after_drop"]:
        return "dangling", None
    left = growth.judge(evidence)
    if left == "retained":
        return "retained", None
    if left == "nothing" and evidence.get("device_counted") is False:
        return "unknown", UNCOUNTED
    if left == "nothing":
        return ("unknown" if evidence["changed_after_drop"] is None else "safe"), None
    return "unknown", growth.told(evidence)


def _changed_after_drop(subject: Subject, gpu: Gpu | None, listener: Listener) -> bool | None:
    if not subject.import_.returns_array or subject.spec.elements == 0:
        return None
    namespace = {**subject.namespace, "x": subject.make_another()}
    result = compile_call(subject.code, namespace)()
    subject.wait_for(result)
    before = subject.consumer.to_numpy(result).tobytes()
    listener.stage(AFTER_DROP)
    del namespace["x"]
    gc.collect()
    subject.producer.give_back(subject.spec.device)
    kept = _churn(subject, gpu)
    after = subject.consumer.to_numpy(result).tobytes()
    listener.stage("lifetime release")
    del kept, result
    return bool(before != after)


def _churn(subject: Subject, gpu: Gpu | None) -> list[Any]:
    """Arrays and plain memory of the source's size, with values of their own."""
    size = subject.spec.size_bytes
    kept: list[Any] = []
    for _ in range(CHURN):
        array = subject.make_another()
        _overwrite(subject, array, size, gpu)
        block = ctypes.create_string_buffer(size)
        ctypes.memset(block, 0xA5, size)
        kept += [array, block]
    return kept


def _overwrite(subject: Subject, array: Any, size: int, gpu: Gpu | None) -> None:
    if subject.producer.write(array, 1) is not NotImplemented:
        return
    address = subject.producer.pointer(array)
    if address is None or subject.spec.layout not in WHOLE_LAYOUTS:
        return
    if subject.spec.device == "cpu":
        if not pages.is_read_only(address):
            ctypes.memset(address, 0xA5, size)
    elif gpu is not None:
        gpu.write(address, b"\xa5" * size)


def _meters(subject: Subject) -> list[Callable[[], int]]:
    """Bytes in use, where source and result are: the frameworks' counters on a device; malloc's
    and the system's on the host.
    """
    meters = []
    counting = _counting(subject)
    if counting:
        meters.append(lambda: sum(probe.memory_in_use("cuda") or 0 for probe in counting))
    if "cpu" in _places(subject):
        malloc_bytes = malloc_meter()
        meters += [resident_bytes] if malloc_bytes is None else [resident_bytes, malloc_bytes]
    return meters


def _places(subject: Subject) -> set[str]:
    return {subject.spec.device, subject.result_device}


def _counting(subject: Subject) -> list[Probe]:
    """The frameworks that say how much of the device's memory they use."""
    if "cuda" not in _places(subject):
        return []
    probes = {probe.name: probe for probe in (subject.producer, subject.consumer)}
    return [probe for probe in probes.values() if probe.memory_in_use("cuda") is not None]
