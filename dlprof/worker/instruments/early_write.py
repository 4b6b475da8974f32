"""Early write: may the source be written as soon as a copying import has returned?

A copy that still reads its source when the source changes is torn. The source is written by its
own framework right after the call has returned, at sizes from 4 KiB to 64 MiB and at the case's own
shape. Then the result is waited for and compared with what the source held. Proof of an unsafe
copy: a value became what was written, and the same conversion without a write changes none. A
user's own array must keep its values without a conversion, too. A result that differs is read again
a moment later: it may not have been finished when its framework said so, and what differs then is
what counts. A whole copy does not prove that there is no race.
After a whole copy or a view the same is tried from a source one element further: unaligned memory
may be copied in another way. If a copy of an unaligned source was torn, an aligned one of the same
size is tried as well. Only that tells whether the address is the cause.

Verdicts: ``safe``, ``unsafe``, ``unknown``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from dlprof.probes.capsule import alignment
from dlprof.protocol.messages import NO_ARRAY, unknown
from dlprof.worker import memory
from dlprof.worker.elements import changes_alone
from dlprof.worker.refusal import FaultyProbe, Refusal, attempt
from dlprof.worker.subject import LINE_BYTES, Subject, lies_within

SIZES_BYTES = (4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20)
REPEATS_BYTES = 8 << 20
"""A size is repeated until this many bytes have been converted, once at least."""
MOST_REPEATS = 8
VIEW_BYTES = 4 << 10
"""A path that gives a view at a larger size than this is taken to give one at every larger size."""
LARGE_BYTES = 64 << 20
"""From here on a size takes long. It is tried once for each import, whatever the export."""
MOSTLY = 0.5
"""If this share of a user's values are ones, zeros are written."""
ORDINARY, UNALIGNED, ALIGNED = "C", "sliced", "aligned"
CHANGED = "changed without a write"
STRANGE = "values that nobody wrote"
UNFINISHED = "unfinished"
NO_MEMORY, FAILED = "no memory", "not read"
FINISHED_S = 0.25
"""A copy that is made beside the call has come to its end by then."""
CONTROLS = 2
"""A torn copy counts if so many more conversions, without a write, change nothing."""
REASONS = {
    CHANGED: "the result differs from the source without a write, too",
    STRANGE: "elements of the result have neither the value of their source nor the written one",
    UNFINISHED: "the result was not there when it should be, and a moment later it was",
    "immutable": "the source cannot be written",
}
LEFT_OUT = {
    NO_MEMORY: "there is too little memory for the largest arrays",
    FAILED: "a source that is not aligned cannot be made, or its result cannot be read",
}

_tried_large: set[tuple[str, str]] = set()


@dataclass
class Tried:
    """What was seen at each size in bytes: of the case's layout, and of an unaligned source."""

    here: dict[int, str] = field(default_factory=dict)
    unaligned: dict[int, str] = field(default_factory=dict)
    torn_at: set[int] = field(default_factory=set)
    """Alignments in bytes of the sources of torn copies."""


def measure(subject: Subject, sizes_bytes: Sequence[int] = SIZES_BYTES) -> dict[str, Any]:
    if not subject.import_.returns_array:
        return unknown(NO_ARRAY)
    subject.check_own()
    spec = subject.spec
    if subject.is_one_array:
        sizes_bytes = [spec.size_bytes] if spec.size_bytes else []
    elif spec.size_bytes > min(sizes_bytes, default=0):
        sizes_bytes = sorted({*sizes_bytes, spec.size_bytes})
    unaligned = None
    if not subject.is_one_array and (spec.layout, spec.device) == (ORDINARY, "cpu"):
        unaligned = replace(subject, spec=replace(spec, layout=UNALIGNED))
    tried = _try_sizes(subject, unaligned, sizes_bytes)
    found = judge(tried)
    seen = "torn" if found["verdict"] == "unsafe" else UNFINISHED
    for source, looks in ((subject, tried.here), (unaligned, tried.unaligned)):
        size = next((size for size, look in looks.items() if look == seen), None)
        if source is not None and size is not None:
            if seen == UNFINISHED:
                found["evidence"]["unfinished_bytes"] = size
            else:
                found["evidence"]["torn_layout"] = source.spec.layout
            if seen == "torn" and tried.torn_at:
                found["evidence"]["torn_alignment_bytes"] = min(tried.torn_at)
            if seen == "torn" and unaligned is not None and _begins_anywhere(tried):
                found["evidence"] |= _of_aligned(subject, size)
            found["evidence"] |= _of_size(source, size).made()
            break
    return found


def _begins_anywhere(tried: Tried) -> bool:
    return bool(tried.torn_at) and max(tried.torn_at) < LINE_BYTES


def _of_aligned(subject: Subject, size_bytes: int) -> dict[str, str]:
    """What was seen of an aligned source of this size; empty if there is none."""
    aligned = replace(subject, spec=replace(subject.spec, layout=ALIGNED))
    seen = attempt(lambda: _try_size(aligned, size_bytes, set()))
    return {} if isinstance(seen, Refusal) else {"aligned": seen}


def _of_size(subject: Subject, size_bytes: int) -> Subject:
    """The case's own array if it has this size: its shape may take another way."""
    is_own = size_bytes == subject.spec.size_bytes
    return subject if is_own else subject.of_bytes(size_bytes)


def _try_sizes(subject: Subject, unaligned: Subject | None, sizes_bytes: Sequence[int]) -> Tried:
    tried = Tried()
    way = (subject.consumer.name, subject.import_.name)
    for size in sizes_bytes:
        large = size >= LARGE_BYTES
        if large and "view" in tried.here.values():
            break  # it is a view at this size, too, and the unaligned source is not tried here
        if large and way in _tried_large:
            tried.here[size] = "tried on another path of this import"
            break
        seen = tried.here[size] = _try_size(subject, size, tried.torn_at)
        if seen in ("whole", "view") and not large and unaligned is not None:
            other = attempt(partial(_try_size, unaligned, size, tried.torn_at))
            tried.unaligned[size] = (
                _why_none(unaligned, size) if isinstance(other, Refusal) else other
            )
        looks = {seen, tried.unaligned.get(size, seen)}
        if looks & {"torn", "immutable"} or (looks == {"view"} and size > VIEW_BYTES):
            break
        if large and seen == "whole":  # all else tells nothing of the next path
            _tried_large.add(way)
    return tried


def _why_none(unaligned: Subject, size_bytes: int) -> str:
    """``refused`` if there is no such source or result, else an instrument or a probe failed."""
    other = _of_size(unaligned, size_bytes)
    converted = attempt(lambda: other.wait_for(other.converting(other.make_another())()))
    is_refused = isinstance(converted, Refusal) and not isinstance(converted.error, FaultyProbe)
    return "refused" if is_refused else FAILED


def judge(tried: Tried) -> dict[str, Any]:
    evidence: dict[str, Any] = {
        "sizes_bytes": {str(size): seen for size, seen in tried.here.items()}
    }
    if tried.unaligned:
        evidence["unaligned_bytes"] = {str(size): seen for size, seen in tried.unaligned.items()}
    looks = {*tried.here.values(), *tried.unaligned.values()}
    if "torn" in looks:
        return {"verdict": "unsafe", "evidence": evidence}
    left_out = [why for seen, why in LEFT_OUT.items() if seen in looks]
    if left_out:
        evidence["left_out"] = "; ".join(left_out)
    if "whole" in looks and not looks & {CHANGED, STRANGE, UNFINISHED}:
        return {"verdict": "safe", "evidence": evidence}
    reason = next(
        (why for seen, why in REASONS.items() if seen in looks),
        "no copy of the source's own dtype was seen",
    )
    moot = bool(looks) and looks <= {"immutable", "view", "refused"}
    return {"verdict": "unknown", "evidence": {**evidence, "reason": reason, "moot": moot}}


def _try_size(subject: Subject, size_bytes: int, torn_at: set[int]) -> str:
    """What was seen at this size. ``torn_at`` gets the alignment of a torn copy's source."""
    other = _of_size(subject, size_bytes)
    try:
        memory.check_room(other.spec)
    except memory.TooLarge:
        return NO_MEMORY
    value = _value_that_shows(other)
    seen = "whole"
    for tries in range(1, 1 + max(1, min(MOST_REPEATS, REPEATS_BYTES // size_bytes))):
        seen, address = _try_once(other, value)
        if seen == "torn":
            # A conversion may be wrong by itself, and only now and then.
            controls = tries + CONTROLS if size_bytes < LARGE_BYTES else 1
            looks = [_try_once(other, None)[0] for _ in range(controls)]
            if "torn" in looks or changes_alone(other):
                return CHANGED
            torn_at |= {alignment(address)} if address else set()
        if seen != "whole":
            break
    return seen


def _words(values: Any) -> Any:
    # Wide words make the array of differences small.
    return values.reshape(-1).view("uint64" if values.nbytes % 8 == 0 else "uint8")


def _value_that_shows(subject: Subject) -> int:
    """What to write. Values that the source has already would hide a torn copy.

    Probes make values of all kinds. A user's own array may be full of ones.
    """
    if not subject.is_one_array:
        return 1
    source = subject.make_another()
    before = subject.producer.to_numpy(source).copy()
    if subject.producer.write(source, 1) is NotImplemented:
        return 1
    same = _words(subject.producer.to_numpy(source)) == _words(before)
    return 0 if same.mean() > MOSTLY else 1


def _try_once(subject: Subject, value: int | None) -> tuple[str, int | None]:
    """What became of one copy, and the address of its source.

    ``value`` is written to the source; None writes nothing.
    """
    producer, consumer = subject.producer, subject.consumer
    source = subject.make_another()
    begins = producer.pointer(source)
    before = producer.to_numpy(source)
    if begins in (None, before.ctypes.data):
        before = before.copy()  # it is a view of the source, or may be one
    result = subject.converting(source)()
    if value is not None and producer.write(source, value) is NotImplemented:
        return "immutable", begins
    subject.wait_for(result)
    address, begins_now = consumer.pointer(result), producer.pointer(source)
    if address is not None and begins_now is not None:
        located = True
        if lies_within(address, begins_now, source, subject.spec):
            return "view", begins
    else:
        located = False
    after = consumer.to_numpy(result)
    same_dtype = producer.dtype(source) is None or after.dtype == before.dtype
    if after.nbytes != before.nbytes or not same_dtype:
        return "other dtype", begins
    seen = _of_right_values(subject, result, before, after, value)
    if seen:
        return seen, begins
    return _of_wrong_values(subject, source, result, before, value, located), begins


def _of_wrong_values(
    subject: Subject, source: Any, result: Any, before: Any, value: int | None, located: bool
) -> str:
    """``torn``, unless nobody wrote what differs; ``view`` of a result that follows its source.

    A result elsewhere in memory is a copy, whatever it shows later: it may still be read.
    """
    if value is None:
        return "torn"
    written = subject.producer.to_numpy(source)
    seen = "torn" if _has_written(before, subject.consumer.to_numpy(result), written) else STRANGE
    return "view" if not located and _follows(subject, source, result, value) else seen


def _of_right_values(
    subject: Subject, result: Any, before: Any, after: Any, value: int | None
) -> str:
    """``whole`` or ``unfinished``; empty if the values are wrong a moment later, too."""
    differ = _words(after) != _words(before)
    if not differ.any():
        return "whole"
    if value is not None and value in _elements(after, int(differ.argmax())):
        return ""  # what was written stays: there is nothing to wait for
    time.sleep(FINISHED_S)
    later = subject.consumer.to_numpy(result)
    return UNFINISHED if bool((_words(later) == _words(before)).all()) else ""


def _has_written(before: Any, after: Any, written: Any) -> bool:
    """Whether an element that differs from the source has what was written into the source later.

    A conversion that is wrong now and then, without a write too, is not torn.
    """
    # What is written into complex numbers has no imaginary part, nor have numbers that are lost.
    parts = 2 if before.dtype.kind == "c" else 1
    unit = math.gcd(before.itemsize // parts, 8)
    every = (before, after, written)
    old, now, new = (values.reshape(-1).view(f"u{unit}")[::parts] for values in every)
    return bool(((now != old) & (now == new)).any())


def _elements(values: Any, word: int) -> Any:
    """The elements that have bytes in a word of :func:`_words`."""
    item, size = values.itemsize, _words(values).itemsize
    begin = word * size // item * item
    end = begin + max(item, size)
    return values.reshape(-1).view("uint8")[begin:end].view(values.dtype)


def _follows(subject: Subject, source: Any, result: Any, value: int) -> bool:
    """Whether a result without an address shows a later write: then it is a view."""
    before = subject.consumer.to_numpy(result).copy()
    subject.producer.write(source, 1 - value)
    return bool((_words(subject.consumer.to_numpy(result)) != _words(before)).any())
