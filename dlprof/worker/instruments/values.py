"""Values: did shape, dtype and every value survive, and did the conversion change anything else?

The source holds a pattern that shows wrong strides and truncation
(:data:`dlprof.probes.base.PATTERNS`). Source and result are read back by their own frameworks and
compared bit for bit, the result first: what is read at once shows whether its values are there.
What differs at first and not a moment later is ``unfinished``. If the bytes of a source in the
other byte order, read in the machine's order, are the result, the byte order was lost.

If they agree, :mod:`dlprof.worker.instruments.further_calls` looks at more conversions.

If a user's own array changes without a conversion too, a difference proves nothing: it may be a
buffer that a thread or a device writes.

Verdicts: ``ok``, ``wrong``, ``unknown``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from dlprof.probes.base import Probe
from dlprof.protocol.messages import NO_ARRAY, unknown, verdict
from dlprof.worker import memory
from dlprof.worker.any_array import UNKNOWN
from dlprof.worker.elements import bits, lost_byte_order, read_elements, unequal
from dlprof.worker.instruments import further_calls
from dlprof.worker.subject import Subject

COPIES = 3
"""Host copies that a comparison needs: source, result, and where they differ."""
PART_BYTES = 16 << 20
"""If whole copies do not fit, parts of this size are compared. malloc reuses memory of this size,
and takes new pages for more."""
CONTENTS = {"values", "unfinished", "source"}
"""What changes if something else writes the source."""
FINISHED_S = 0.25
"""A copy that is made beside the call has come to its end by then."""


def measure(subject: Subject) -> dict[str, Any]:
    """Return the verdict on the values, after one conversion and after further ones."""
    if not subject.import_.returns_array:
        return unknown(NO_ARRAY)
    try:
        import numpy  # noqa: F401 - so that its absence is a reason
    except ImportError:
        return unknown("NumPy is not installed in the measured interpreter")
    producer, consumer = subject.producer, subject.consumer
    source, spec = subject.source, subject.spec
    result = subject.convert()
    subject.wait_for(result)
    seen: dict[str, list[Any]] = {
        # Plain memory has neither. The import says what was asked for.
        "shape": [_lengths(producer, source, spec.shape), _lengths(consumer, result)],
        "dtype": [producer.dtype(source) or spec.dtype, consumer.dtype(result)],
    }
    if UNKNOWN in seen["dtype"]:
        return _judge_dtypes(source, result)
    changed: dict[str, Any] = {what: pair for what, pair in seen.items() if pair[0] != pair[1]}
    if "shape" not in changed:
        changed.update(_difference(subject, source, result, changed.get("dtype")))
        if changed.keys() == {"values"}:
            time.sleep(FINISHED_S)
            if not _difference(subject, source, result, None):
                changed = {"unfinished": changed["values"]}
    evidence = {"changed": changed, **_properties(subject, source, result)}
    if changed.keys() <= {"values"}:
        del result  # a framework may reuse a buffer once nothing holds it
        found = further_calls.look(subject)
        # A value that the conversion wrote to its source looks like a wrong result.
        if not changed or "source" in found["changed"]:
            evidence |= found
    return _judge(subject, evidence)


def _judge(subject: Subject, evidence: dict[str, Any]) -> dict[str, Any]:
    changed = evidence["changed"]
    if not changed and subject.is_one_array and _is_constant(subject):
        reason = "all values of the source are equal, so that a wrong order would not show"
        return verdict("unknown", evidence, reason)
    return verdict("wrong" if changed else "ok", evidence)


def _judge_dtypes(source: Any, result: Any) -> dict[str, Any]:
    """The verdict by dtypes alone if dlprof has no name for one of them, as for datetime64."""
    import numpy

    if not (isinstance(source, numpy.ndarray) and isinstance(result, numpy.ndarray)):
        return unknown("nothing tells the dtype of source or result")
    dtypes = [str(side.dtype) for side in (source, result)]
    if dtypes[0] != dtypes[1]:
        return verdict("wrong", {"changed": {"dtype": dtypes}})
    return unknown(f"values of dtype {dtypes[0]} are not compared")


def _properties(subject: Subject, source: Any, result: Any) -> dict[str, Any]:
    """Evidence of source and result besides their values."""
    writable = {
        "source": subject.producer.writable(source),
        "result": subject.consumer.writable(result),
        "immutable": subject.consumer.immutable,
    }
    evidence: dict[str, Any] = {"writable": writable}
    orders = [order_of(side) for side in (source, result)]
    if subject.spec.layout == "F" and None not in orders:
        evidence["orders"] = orders
    kept = subject.consumer.properties(result)
    dropped = [name for name in subject.producer.properties(source) if name not in kept]
    if dropped:
        evidence["dropped"] = dropped
    return evidence


def different(subject: Subject) -> dict[str, Any]:
    """How the values of a new conversion differ from those of the source; empty if they do not."""
    result = subject.convert()
    subject.wait_for(result)
    return _difference(subject, subject.source, result, None)


def _lengths(probe: Probe, array: Any, otherwise: tuple[int, ...] | None = None) -> list[int]:
    shape = probe.shape(array)
    shape = otherwise if shape is None else shape
    if shape is None:
        raise TypeError(f"{probe.name} does not say the shape of its array")
    return list(shape)


def order_of(array: Any) -> str | None:
    """``F`` or ``C`` of an array of two axes that says its strides."""
    strides = getattr(array, "strides", None) or getattr(array, "stride", None)
    strides = strides() if callable(strides) else strides
    if strides is None or len(strides) != 2 or 1 in tuple(array.shape):  # noqa: PLR2004 - rows and columns
        return None
    return "F" if strides[0] < strides[1] else "C"


def _is_constant(subject: Subject) -> bool:
    import numpy

    values = bits(numpy.ascontiguousarray(subject.producer.to_numpy(subject.source)).reshape(-1))
    return bool(values.size > 1 and (values == values[0]).all())


def _difference(
    subject: Subject, source: Any, result: Any, dtypes: tuple[str, str] | None
) -> dict[str, Any]:
    different, first, begin, order_lost = 0, None, 0, dtypes is None
    masked = getattr(source, "mask", None)  # the value of a masked element is no data
    for rows in _parts(subject, result):
        after = read_elements(subject.consumer, result, subject.spec, rows)
        before = read_elements(subject.producer, source, subject.spec, rows)
        if before.size != after.size:
            raise ValueError(f"{after.size} values of the result were read back")
        differ = unequal(before, after, dtypes)
        if masked is not None and differ.size == masked.size:
            differ &= ~masked.reshape(-1)
        order_lost = order_lost and lost_byte_order(before, after)
        count = int(differ.sum())
        if count and first is None:
            first = begin + int(differ.argmax())
        different, begin = different + count, begin + before.size
    if not different:
        return {}
    found = {"different": different, "of": subject.spec.elements, "first_index": first}
    return {"values": {**found, **({"byte_order_lost": True} if order_lost else {})}}


def _parts(subject: Subject, result: Any) -> Iterator[tuple[int, int] | None]:
    """Rows to compare at once; None for all, if their copies fit into memory."""
    spec = subject.spec
    if memory.fits(COPIES * spec.size_bytes) or not hasattr(result, "__getitem__"):
        memory.check_more(COPIES * spec.size_bytes)
        yield None
        return
    rows = spec.shape[0]
    step = max(1, PART_BYTES * rows // spec.size_bytes)
    for begin in range(0, rows, step):
        yield begin, min(begin + step, rows)
