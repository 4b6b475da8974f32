"""Early write: may the source be written as soon as a copying import has returned?

A copy that still reads its source when the source changes is torn. The source is written by its
own framework right after the call has returned, at sizes from 4 KiB to 16 MiB and at the case's own
shape. Then the result is waited for and compared with what the source held. Proof of an unsafe
copy: a value became what was written, and the same conversion without a write changes none. A
user's own array must keep its values without a conversion, too. A whole copy does not prove that
there is no race.

After a whole copy or a view, a source one element further is tried: unaligned memory may be copied
in another way. If a copy of an unaligned source was torn, an aligned source of the same size is
tried. Only that tells whether the address is the cause.

Verdicts: ``safe``, ``unsafe``, ``unknown``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from dlprof.protocol.messages import NO_ARRAY, unknown, verdict
from dlprof.worker import memory
from dlprof.worker.refusal import Refusal, attempt
from dlprof.worker.subject import LINE_BYTES, Subject, lies_within

SIZES_BYTES = (4 << 10, 64 << 10, 1 << 20, 16 << 20)
REPEATS_BYTES = 8 << 20
"""A size is repeated until this many bytes have been converted, once at least."""
MOST_REPEATS = 8
VIEW_BYTES = 4 << 10
"""A path that gives a view at a larger size than this is taken to give one at every larger size."""
LARGEST_BYTES = 64 << 20
"""A case's own shape is tried up to this size."""
ORDINARY, UNALIGNED, ALIGNED = "C", "sliced", "aligned"
CHANGED, STRANGE = "changed without a write", "values that nobody wrote"
HALF = 0.5
CONTROLS = 2
"""A torn copy counts if so many more conversions, without a write, change nothing."""
REASONS = {
    CHANGED: "the result differs from the source without a write, too",
    STRANGE: "elements of the result have neither the value of their source nor the written one",
    "immutable": "the source cannot be written",
}


def measure(subject: Subject, sizes_bytes: Sequence[int] = SIZES_BYTES) -> dict[str, Any]:
    if not subject.import_.returns_array:
        return unknown(NO_ARRAY)
    subject.check_own()
    spec = subject.spec
    if subject.is_one_array:
        sizes_bytes = [spec.size_bytes] if spec.size_bytes else []
    elif min(sizes_bytes, default=0) < spec.size_bytes <= LARGEST_BYTES:
        sizes_bytes = sorted({*sizes_bytes, spec.size_bytes})
    unaligned = None
    if not subject.is_one_array and (spec.layout, spec.device) == (ORDINARY, "cpu"):
        unaligned = replace(subject, spec=replace(spec, layout=UNALIGNED))
    torn_at: list[int] = []
    here, shifted = _try_sizes(subject, unaligned, sizes_bytes, torn_at)
    found = judge(here, shifted)
    if found["verdict"] != "unsafe":
        return found
    size = next(size for size, seen in [*here.items(), *shifted.items()] if seen == "torn")
    evidence: dict[str, Any] = found["evidence"]
    if unaligned is not None and any(address % LINE_BYTES for address in torn_at):
        aligned = replace(subject, spec=replace(spec, layout=ALIGNED))
        seen = attempt(partial(_try_size, aligned, size, []))
        evidence |= {} if isinstance(seen, Refusal) else {"aligned": seen}
    source = subject if unaligned is None or "torn" in here.values() else unaligned
    evidence |= {"torn_layout": source.spec.layout} | _with_size(source, size).made()
    return found


def _with_size(subject: Subject, size_bytes: int) -> Subject:
    """The case's own array if it has this size: its shape may take another way."""
    is_own = size_bytes == subject.spec.size_bytes
    return subject if is_own else subject.of_bytes(size_bytes)


def _try_sizes(
    subject: Subject, unaligned: Subject | None, sizes_bytes: Sequence[int], torn_at: list[int]
) -> tuple[dict[int, str], dict[int, str]]:
    """What was seen at each size: of the case's layout, and of an unaligned source."""
    here: dict[int, str] = {}
    shifted: dict[int, str] = {}
    for size in sizes_bytes:
        here[size] = _try_size(subject, size, torn_at)
        looks = {here[size]}
        if unaligned is not None and looks <= {"whole", "view"}:
            seen = attempt(partial(_try_size, unaligned, size, torn_at))
            shifted[size] = "refused" if isinstance(seen, Refusal) else seen
            looks.add(shifted[size])
        if looks & {"torn", "immutable"} or (looks == {"view"} and size > VIEW_BYTES):
            break
    return here, shifted


def judge(here: dict[int, str], shifted: dict[int, str]) -> dict[str, Any]:
    evidence: dict[str, Any] = {"sizes_bytes": {str(size): seen for size, seen in here.items()}}
    if shifted:
        evidence["unaligned_bytes"] = {str(size): seen for size, seen in shifted.items()}
    looks = {*here.values(), *shifted.values()}
    if "torn" in looks:
        return verdict("unsafe", evidence)
    if "whole" in looks and not looks & {CHANGED, STRANGE}:
        return verdict("safe", evidence)
    reason = next(
        (why for seen, why in REASONS.items() if seen in looks),
        "no copy of the source's own dtype was seen",
    )
    evidence["moot"] = bool(looks) and looks <= {"immutable", "view", "refused"}
    return verdict("unknown", evidence, reason)


def _try_size(subject: Subject, size_bytes: int, torn_at: list[int]) -> str:
    """What was seen at this size. ``torn_at`` gets the address of the source of a torn copy."""
    other, value = _with_size(subject, size_bytes), _value_that_shows(subject)
    memory.check_room(other.spec)
    seen = "whole"
    for tries in range(1, 1 + max(1, min(MOST_REPEATS, REPEATS_BYTES // size_bytes))):
        seen, address = _try_once(other, value)
        if seen == "torn":
            # A conversion may be wrong by itself, and only now and then.
            looks = [_try_once(other, None)[0] for _ in range(tries + CONTROLS)]
            if "torn" in looks:
                return CHANGED
            torn_at += [address or 0]
        if seen != "whole":
            break
    return seen


def _value_that_shows(subject: Subject) -> int:
    """What to write: a user's own array may be full of ones, which would hide a torn copy."""
    if not subject.is_one_array:
        return 1
    return 0 if (subject.producer.to_numpy(subject.source) == 1).mean() > HALF else 1


def _try_once(subject: Subject, value: int | None) -> tuple[str, int | None]:
    """What one copy shows after ``value`` was written to its source, and the source's address.

    None writes nothing.
    """
    producer = subject.producer
    source = subject.make_another()
    begins = producer.pointer(source)
    before = producer.to_numpy(source)
    if begins in (None, before.ctypes.data):
        before = before.copy()  # it is a view of the source, or may be one
    result = subject.converting(source)()
    if value is not None and producer.write(source, value) is NotImplemented:
        return "immutable", begins
    subject.wait_for(result)
    return _look(subject, source, before, result, value), begins


def _look(subject: Subject, source: Any, before: Any, result: Any, value: int | None) -> str:
    """What a result shows whose source had the values ``before``."""
    producer, consumer = subject.producer, subject.consumer
    address, begins = consumer.pointer(result), producer.pointer(source)
    is_located = address is not None and begins is not None
    if is_located and lies_within(address or 0, begins or 0, source, subject.spec):
        return "view"
    after = consumer.to_numpy(result)
    same_dtype = producer.dtype(source) is None or after.dtype == before.dtype
    if after.nbytes != before.nbytes or not same_dtype:
        return "other dtype"
    if not (_words(after) != _words(before)).any():
        return "whole"
    if value is not None and not _has_written(before, after, producer.to_numpy(source)):
        return STRANGE
    # A result elsewhere in memory is a copy, whatever it shows later: it may still be read.
    is_view = value is not None and not is_located and _follows(subject, source, result, value)
    return "view" if is_view else "torn"


def _words(values: Any) -> Any:
    # Wide words make the array of differences small.
    return values.reshape(-1).view("uint64" if values.nbytes % 8 == 0 else "uint8")


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


def _follows(subject: Subject, source: Any, result: Any, value: int) -> bool:
    """Whether a result without an address shows a later write: then it is a view."""
    before = subject.consumer.to_numpy(result).copy()
    subject.producer.write(source, 1 - value)
    return bool((_words(subject.consumer.to_numpy(result)) != _words(before)).any())
