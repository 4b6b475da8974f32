"""Early write: may the source be written as soon as a copying import has returned?

The source is written by its own framework right after the call has returned. Then the result is
waited for and compared with what the source held. Proof of an unsafe copy: it differs, and the same
conversion without a write does not. A whole copy does not prove that there is no race.

After a whole copy or a view, a source one element further is tried: unaligned memory may be copied
in another way. If a copy was torn, an aligned source of the same size is tried.

Verdicts: ``safe``, ``unsafe``, ``unknown``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from dlprof.protocol.messages import NO_ARRAY, unknown, verdict
from dlprof.worker import memory
from dlprof.worker.refusal import Refusal, attempt
from dlprof.worker.simulated import simulated_gpu
from dlprof.worker.subject import Subject, lies_within

SIZES_BYTES = (4 << 10, 64 << 10, 1 << 20, 16 << 20)
REPEATS_BYTES = 8 << 20
"""A size is repeated until this many bytes have been converted, once at least."""
MOST_REPEATS = 8
VIEW_BYTES = 4 << 10
"""A path that gives a view at a larger size than this is taken to give one at every larger size."""
LARGEST_BYTES = 64 << 20
"""A case's own shape is tried up to this size."""
ORDINARY, UNALIGNED, ALIGNED = "C", "sliced", "aligned"
CHANGED = "changed without a write"
HALF = 0.5
LIMIT_NS = 100_000_000
"""A simulated device holds the copy back until the write is done, at most so long."""
CONTROLS = 2
"""A torn copy counts if this many more conversions, without a write, change nothing."""
REASONS = {
    CHANGED: "the result differs from the source without a write, too",
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
    results, shifted = _try_sizes(subject, unaligned, sizes_bytes)
    found = judge(results, shifted)
    if found["verdict"] != "unsafe":
        return found
    size = next(size for size, word in [*results.items(), *shifted.items()] if word == "torn")
    evidence: dict[str, Any] = found["evidence"]
    if unaligned is not None:
        aligned = replace(subject, spec=replace(spec, layout=ALIGNED))
        word = attempt(partial(_try_size, aligned, size))
        evidence |= {} if isinstance(word, Refusal) else {"aligned": word}
    source = subject if unaligned is None or "torn" in results.values() else unaligned
    evidence |= _with_size(source, size).array_evidence()
    return found


def _with_size(subject: Subject, size_bytes: int) -> Subject:
    """Return the case's own array if it has this size: its shape may take another way."""
    is_own = size_bytes == subject.spec.size_bytes
    return subject if is_own else subject.of_bytes(size_bytes)


def _try_sizes(
    subject: Subject, unaligned: Subject | None, sizes_bytes: Sequence[int]
) -> tuple[dict[int, str], dict[int, str]]:
    """Return the result at each size, for the case's layout and for an unaligned source."""
    results: dict[int, str] = {}
    shifted: dict[int, str] = {}
    for size in sizes_bytes:
        results[size] = _try_size(subject, size)
        looks = {results[size]}
        if unaligned is not None and looks <= {"whole", "view"}:
            word = attempt(partial(_try_size, unaligned, size))
            shifted[size] = "refused" if isinstance(word, Refusal) else word
            looks.add(shifted[size])
        if looks & {"torn", "immutable"} or (looks == {"view"} and size > VIEW_BYTES):
            break
    return results, shifted


def judge(results: dict[int, str], shifted: dict[int, str]) -> dict[str, Any]:
    evidence: dict[str, Any] = {"sizes_bytes": {str(size): word for size, word in results.items()}}
    if shifted:
        evidence["unaligned_bytes"] = {str(size): word for size, word in shifted.items()}
    looks = {*results.values(), *shifted.values()}
    if "torn" in looks:
        return verdict("unsafe", evidence)
    if "whole" in looks and CHANGED not in looks:
        return verdict("safe", evidence)
    reason = next(
        (reason for word, reason in REASONS.items() if word in looks),
        "no copy of the source's own dtype was seen",
    )
    evidence["moot"] = bool(looks) and looks <= {"immutable", "view", "refused"}
    return verdict("unknown", evidence, reason)


def _try_size(subject: Subject, size_bytes: int) -> str:
    """Return the first result at this size that is no whole copy, or ``whole``."""
    trial, value = _with_size(subject, size_bytes), _visible_value(subject)
    memory.check_room(trial.spec)
    word = "whole"
    repeats = max(1, min(MOST_REPEATS, REPEATS_BYTES // size_bytes))
    if simulated_gpu(subject.producer, subject.consumer):
        repeats = 1  # the gate leaves nothing to chance
        if _try_once(trial, None) == "torn":
            return CHANGED
    for tries in range(1, 1 + repeats):
        word = _try_once(trial, value)
        if word == "torn":
            # A conversion may be wrong by itself, and only now and then.
            controls = [_try_once(trial, None) for _ in range(tries + CONTROLS)]
            return CHANGED if "torn" in controls else word
        if word != "whole":
            break
    return word


def _visible_value(subject: Subject) -> int:
    """Return what to write: ones would not show in a user's own array that is full of ones."""
    if not subject.is_one_array:
        return 1
    return 0 if (subject.producer.to_numpy(subject.source) == 1).mean() > HALF else 1


def _try_once(subject: Subject, value: int | None) -> str:
    """Return what one result shows after ``value`` was written to its source; None for no write."""
    producer, consumer = subject.producer, subject.consumer
    source = subject.make_another()
    begin = producer.pointer(source)
    before = producer.to_numpy(source)
    if begin in (None, before.ctypes.data):
        before = before.copy()  # it is a view of the source, or may be one
    convert, gpu = subject.converter(source), simulated_gpu(producer, consumer)
    if gpu is not None:
        gpu.close_gate(LIMIT_NS, copies=True)
    try:
        result = convert()
        if value is not None and producer.write(source, value) is NotImplemented:
            return "immutable"
        if value is not None and gpu is not None:
            gpu.open_gate()
        subject.wait_for(result)
        address = consumer.pointer(result)
        if address is None or begin is None:
            return "no address"
        if lies_within(address, begin, source, subject.spec):
            return "view"
        after = consumer.to_numpy(result)
    finally:
        if gpu is not None:
            gpu.open_gate()
    same_dtype = producer.dtype(source) is None or after.dtype == before.dtype
    if after.nbytes != before.nbytes or not same_dtype:
        return "other dtype"
    return "torn" if after.tobytes() != before.tobytes() else "whole"
