"""Ownership: does the result share the source's memory, or own a copy?

Proof: a view shows a later write, a copy does not. In both directions one bit is flipped at the
array's address and put back. Without an address the framework's own in-place write is used. If the
addresses differ and are near, the result may begin elsewhere in the memory of the source. Then all
elements are watched, not the first alone. Shared and read-only mappings are not written.

Verdicts: ``view``, ``copy``, ``unknown``.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

from dlprof.device.cuda import Gpu, device_ordinal
from dlprof.probes.base import DTYPES, WHOLE_LAYOUTS, Probe
from dlprof.probes.capsule import alignment
from dlprof.protocol.messages import NO_ARRAY, unknown, verdict
from dlprof.worker import memory
from dlprof.worker.refusal import Refusal, attempt
from dlprof.worker.simulated import computed
from dlprof.worker.subject import Subject, result_device

NOT_WRITTEN = "not written: the memory is read-only, a file's, or shared with other processes"


def measure(subject: Subject, gpu: Gpu | None = None) -> dict[str, Any]:
    if not subject.import_.returns_array:
        return unknown(NO_ARRAY)
    if subject.spec.elements == 0:
        return unknown("an array without elements has no memory to share")
    converted = subject.convert()
    subject.wait_for(converted)  # an unfinished copy would show the write
    source = _Side(subject.producer, subject.source, gpu, subject)
    result = _Side(subject.consumer, converted, gpu, subject)
    same_address = None
    if source.device != result.device:
        same_address = False
    elif source.address and result.address:
        same_address = source.address == result.address
    apart = abs((source.address or 0) - (result.address or 0))
    is_near = source.device == result.device and apart < max(source.reach, result.reach)
    source.watch_all = result.watch_all = same_address is False and is_near
    evidence: dict[str, Any] = {
        "source_alignment_bytes": source.address and alignment(source.address),
        "result_device": result.device,
        "same_address": same_address,
        "source_write_shows": _write_shows(source, result),
        "result_write_shows": _write_shows(result, source),
    }
    if gpu is not None and gpu.is_simulated:
        evidence["crosses_twice"] = _crosses_twice(subject, gpu)
    devices = [device_ordinal(side.address) for side in (source, result) if side.device == "cuda"]
    if len(set(devices)) > 1:
        evidence["devices"] = [f"cuda:{number}" for number in devices]
    declared = result_device(subject.consumer, subject.import_, subject.spec)
    if result.device != declared:
        evidence["declared_device"] = declared
    if source.is_forbidden or result.is_forbidden:
        evidence["not_written"] = NOT_WRITTEN
    word, reason = judge(evidence)
    return verdict(word, evidence, reason)


def _crosses_twice(subject: Subject, gpu: Gpu) -> bool:
    """Whether a conversion copies all of the array to the host and to the device.

    A new source: TensorFlow keeps a copy on the host.
    """
    made = attempt(subject.make_another)
    source = subject.source if isinstance(made, Refusal) else made
    convert, before = subject.converter(source), gpu.crossed_bytes()
    subject.wait_for(convert())
    crossed = zip(gpu.crossed_bytes(), before, strict=True)
    return min(after - before for after, before in crossed) >= subject.spec.size_bytes


def judge(evidence: dict[str, Any]) -> tuple[str, str | None]:
    """Return the verdict that address and writes allow, and the reason if there is one."""
    results = (evidence["source_write_shows"], evidence["result_write_shows"])
    writes = [shows for shows in results if shows is not None]
    same = evidence["same_address"]
    if not writes and same and evidence.get("not_written"):
        return "view", f"{evidence['not_written']}; both begin at the same address"
    if not writes:
        return "unknown", "no write could be tried on either side"
    if all(writes) and same is not False:
        return "view", None
    if not any(writes) and not same:
        return "copy", None
    if all(writes):
        # Memory mapped twice, or an address of something else: the write is proof.
        return "view", "different addresses, but writes show on both sides"
    return "unknown", "address and writes contradict each other"


class _Side:
    def __init__(self, probe: Probe, array: Any, gpu: Gpu | None, subject: Subject) -> None:
        self.probe = probe
        self.array = array
        self.address, self.device = probe.pointer(array), probe.device(array)
        # The widest layout of probes, every second element, spans twice the array's bytes. A
        # user's own array may span any number.
        times = 1 if subject.spec.layout in WHOLE_LAYOUTS else 2
        self.reach = (
            math.inf if subject.is_one_array and times > 1 else times * subject.spec.size_bytes
        )
        self.gpu = gpu if self.device == "cuda" else None
        self.item = DTYPES.get(probe.dtype(array) or subject.spec.dtype, 0)
        self.watch_all = False

    @property
    def is_reachable(self) -> bool:
        on_host = self.device == "cpu" or self.gpu is not None
        return bool(self.address) and on_host and self.item > 0

    @cached_property
    def is_forbidden(self) -> bool:
        """Whether a write would end the process or show outside of it."""
        found = memory.find_mapping(self.address) if self.device == "cpu" else None
        return found is not None and (found.shared or not found.writable)

    def first_bytes(self) -> bytes:
        """Return the first element as it is in memory now."""
        if self.is_reachable and self.address:
            return memory.read(self.address, self.item, self.gpu)
        return bytes(self._contents().reshape(-1)[:1].tobytes())

    def watched_bytes(self) -> bytes:
        """Return what changes if this side sees a write: the first element, or all of them."""
        contents = self._contents().tobytes() if self.watch_all else b""
        return self.first_bytes() + bytes(contents)

    def _contents(self) -> Any:
        return computed(self.gpu, lambda: self.probe.to_numpy(self.array))


def _write_shows(written: _Side, watched: _Side) -> bool | None:
    """Whether a write to one side changes the other; None if it cannot be tried."""
    if written.is_forbidden:
        return None  # some frameworks write without asking, too
    before = watched.watched_bytes()
    if written.is_reachable and written.address:
        original = written.first_bytes()
        flipped = bytes([original[0] ^ 1]) + original[1:]  # a bool stays a bool
        memory.write(written.address, flipped, written.gpu)
        try:
            return watched.watched_bytes() != before
        finally:
            memory.write(written.address, original, written.gpu)
    # Two writes of different values: one of them differs from what was there before.
    initial, has_effect = written.first_bytes(), False
    for value in (0, 1):
        if written.probe.write(written.array, value) is NotImplemented:
            return None
        has_effect |= written.first_bytes() != initial
        if watched.watched_bytes() != before:
            return True
    return False if has_effect else None
