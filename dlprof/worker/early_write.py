"""Early write: may the source be written as soon as a copying import has returned?

A copy that is still being read when the source changes is torn. The source is written, by its own
framework's in-place write, right after the call returned, at sizes from 4 KiB to 256 MiB; the
result is then waited for and compared with what the source held before. Proof of an unsafe copy is
one changed value; no changed value does not prove that there is no race. A copy that was whole is
tried again from a source one element further, since another way of copying may serve memory that
is not aligned. It cannot tell for views (which must change), and for sources that their framework
does not let be written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dlprof.probes.base import DTYPES, Unsupported
from dlprof.worker import room
from dlprof.worker.subject import Subject, compile_call

SIZES_BYTES = (4 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20)
REPEATS_BYTES = 8 << 20
"""Sizes are repeated until so many bytes have been converted, once at least."""
MOST_REPEATS = 8
VIEW_BYTES = 4 << 10
"""What is a view at a larger size than this is taken to be one at every larger size."""

LARGE_BYTES = 128 << 20
"""Sizes from here on take seconds; they are tried once for each import, whatever the export."""

UNALIGNED = "sliced"
ALIGNED_OR_NOT = ("C", "aligned")

_tried_large: set[tuple[str, str]] = set()


def measure(subject: Subject, sizes_bytes: Sequence[int] = SIZES_BYTES) -> dict[str, Any]:
    """Verdict ``safe``, ``unsafe`` or ``unknown``; the evidence holds the sizes that were tried."""
    if not subject.import_.returns_array:
        return _unknown("the call leaves no array behind to compare")
    if subject.is_one_array:
        sizes_bytes = [subject.spec.size_bytes] if subject.spec.size_bytes else []
    tried: dict[int, str] = {}
    way = (subject.consumer.name, subject.import_.name)
    elsewhere = _elsewhere(subject)
    torn_layout = subject.spec.layout
    for size in sizes_bytes:
        if size >= LARGE_BYTES and way in _tried_large:
            tried[size] = "tried on another path of this import"
            break
        tried[size] = _try_size(subject, size)
        whole = tried[size] == "whole" and size < LARGE_BYTES
        if whole and elsewhere is not None and _try_elsewhere(elsewhere, size) == "torn":
            tried[size], torn_layout, subject = "torn", UNALIGNED, elsewhere
        if tried[size] in ("torn", "immutable") or (tried[size] == "view" and size > VIEW_BYTES):
            break
        if size >= LARGE_BYTES:
            _tried_large.add(way)
    found = judge(tried)
    if found["verdict"] == "unsafe":
        torn = next(size for size, seen in tried.items() if seen == "torn")
        found["evidence"] |= {"torn_layout": torn_layout, **_of_size(subject, torn).made()}
    return found


def _elsewhere(subject: Subject) -> Subject | None:
    """The same conversion of memory that is not aligned; None where it is a question of its own."""
    spec = subject.spec
    if subject.is_one_array or spec.layout not in ALIGNED_OR_NOT or spec.device != "cpu":
        return None
    return replace(subject, spec=replace(spec, layout=UNALIGNED))


def _try_elsewhere(subject: Subject, size_bytes: int) -> str:
    try:
        return _try_size(subject, size_bytes)
    except Unsupported:
        return "cannot be made"


def judge(tried: dict[int, str]) -> dict[str, Any]:
    """The verdict on what was seen at each size."""
    evidence = {"sizes_bytes": {str(size): seen for size, seen in tried.items()}}
    if "torn" in tried.values():
        return {"verdict": "unsafe", "evidence": evidence}
    if "whole" in tried.values():
        return {"verdict": "safe", "evidence": evidence}
    reason = {"immutable": "the source cannot be written"}.get(
        next(iter(tried.values()), ""), "no size was copied"
    )
    return {"verdict": "unknown", "evidence": {**evidence, "reason": reason}}


def _try_size(subject: Subject, size_bytes: int) -> str:
    """``whole``, ``torn``, ``view``, ``immutable`` or why it was not tried."""
    other = _of_size(subject, size_bytes)
    try:
        room.check(other.spec)
    except room.TooLarge:
        return "no memory"
    seen = "whole"
    for _ in range(max(1, min(MOST_REPEATS, REPEATS_BYTES // size_bytes))):
        seen = _try_once(other)
        if seen != "whole":
            break
    return seen


def _of_size(subject: Subject, size_bytes: int) -> Subject:
    return subject.of_elements(max(1, size_bytes // DTYPES[subject.spec.dtype]))


def _try_once(subject: Subject) -> str:
    source = subject.make_another()
    before = subject.producer.to_numpy(source)
    if subject.producer.pointer(source) in (None, before.ctypes.data):
        before = before.copy()  # a view would change with the source
    convert = compile_call(subject.code, {**subject.namespace, "x": source})
    result = convert()
    written = subject.producer.write(source, 1)
    if written is NotImplemented:
        return "immutable"
    subject.wait_for(result)
    address = subject.consumer.pointer(result)
    if address is not None and address == subject.producer.pointer(source):
        return "view"
    after = subject.consumer.to_numpy(result)
    has_dtype = subject.producer.dtype(source) is not None
    if after.nbytes != before.nbytes or (has_dtype and after.dtype != before.dtype):
        return "other dtype"
    # Sizes are multiples of 8 bytes; wide words make the comparison's own array small.
    word = "uint64" if before.nbytes % 8 == 0 else "uint8"
    equal = (after.reshape(-1).view(word) == before.reshape(-1).view(word)).all()
    return "whole" if equal else "torn"


def _unknown(reason: str) -> dict[str, Any]:
    return {"verdict": "unknown", "evidence": {"reason": reason}}
