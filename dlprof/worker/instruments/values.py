"""Values: did shape, dtype and every value survive, and did the conversion change anything else?

The source holds a pattern that shows wrong strides and truncation
(:data:`dlprof.probes.base.PATTERNS`). Source and result are read back by their own frameworks and
compared bit for bit, the result first: what is read at once shows whether its values are there.
What differs at first and not a moment later is ``unfinished``. In a survey the first result is
compared as well, which may be the only one that is wrong (``first_result``). Elsewhere the source
was converted before, for its time. If a new array is right at first, and wrong when it is converted
again, the values of a ``repeated`` conversion are wrong. If the bytes of a source in the other byte
order, read in the machine's order, are the result, the byte order was lost.

If they agree, an array of the same size is converted whose values are those at which conversions go
wrong (:func:`dlprof.probes.base.corners`). Then come the looks of
:mod:`dlprof.worker.instruments.further_calls`. Of a user's own array only the first of those is
taken, since the user's text may share memory on purpose.

If a user's own array changes without a conversion too, a difference proves nothing: it may be a
buffer that a thread or a device writes.

Verdicts: ``ok``, ``wrong``, ``unknown``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from dlprof.probes.base import Probe, Unsupported
from dlprof.protocol.messages import NO_ARRAY, UNSTEADY, unknown, verdict
from dlprof.worker import memory
from dlprof.worker.any_array import UNKNOWN
from dlprof.worker.elements import bits, changes_alone, lost_byte_order, read_elements, unequal
from dlprof.worker.instruments import further_calls
from dlprof.worker.refusal import Refusal, attempt
from dlprof.worker.simulated import OnSimulatedDevice
from dlprof.worker.subject import Subject

COPIES = 3
"""Host copies that a comparison needs: source, result, and where they differ."""
PART_BYTES = 16 << 20
"""If whole copies do not fit, parts of this size are compared. malloc reuses memory of this size,
and takes new pages for more."""
CONTENTS = {"values", "first_result", "repeated", "unfinished", "source"}
"""What changes if something else writes the source."""
ONCE = "the array was converted once"
REPEATED, REPEATED_S = 200, 5.0
"""At most so often and so long a new array is converted until it is wrong."""
FINISHED_S = 0.25
"""A copy that is made beside the call has come to its end by then."""


def wrong_at_first(subject: Subject, result: Any) -> dict[str, Any]:
    """How the values of a first result differ from those of its source; empty if they do not, or
    if its shape or dtype does.
    """
    producer, consumer, source = subject.producer, subject.consumer, subject.source
    sides = (
        (probe.shape(one), probe.dtype(one))
        for probe, one in ((producer, source), (consumer, result))
    )
    if len(set(sides)) > 1:
        return {}
    found = _difference(subject, source, result, None)
    return {} if not found or _is_unfinished(subject, source, result) else found


def measure(
    subject: Subject, again: bool = True, at_first: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The verdict. ``again`` says whether to make more conversions than one, ``at_first`` is what
    :func:`wrong_at_first` found.
    """
    if not subject.import_.returns_array:
        return unknown(NO_ARRAY)
    try:
        import numpy  # noqa: F401 - so that its absence is a reason
    except ImportError:
        return unknown("NumPy is not installed in the measured interpreter")
    source, spec = subject.source, subject.spec
    result = subject.convert()
    subject.wait_for(result)
    seen: dict[str, list[Any]] = {
        # Plain memory has neither. The import says what was asked for.
        "shape": [
            _lengths(subject.producer, source, spec.shape),
            _lengths(subject.consumer, result),
        ],
        "dtype": [subject.producer.dtype(source) or spec.dtype, subject.consumer.dtype(result)],
    }
    if UNKNOWN in seen["dtype"]:
        return _of_other_dtypes(source, result)
    changed: dict[str, Any] = {what: pair for what, pair in seen.items() if pair[0] != pair[1]}
    if "shape" not in changed:
        changed.update(_difference(subject, source, result, changed.get("dtype")))
        changed = _of_which_call(subject, source, result, changed, at_first or {})
    evidence = {"changed": changed, **_besides(subject, source, result)}
    if not again and not changed:
        evidence["left_out"] = ONCE
    if again and changed.keys() <= {"values"}:
        del result  # a framework may reuse a buffer once nothing holds it
        found = _of_more_conversions(subject, not changed)
        # A value that the conversion wrote to its source looks like a wrong result.
        if not changed or "source" in found["changed"]:
            evidence |= found
    return _judged(subject, evidence)


def _of_which_call(
    subject: Subject,
    source: Any,
    result: Any,
    changed: dict[str, Any],
    at_first: Mapping[str, Any],
) -> dict[str, Any]:
    """``changed`` if values alone differ: at which calls, or until when."""
    if not changed and at_first:
        return {"first_result": at_first["values"]}
    if changed.keys() != {"values"}:
        return changed
    if _is_unfinished(subject, source, result):
        return {"unfinished": changed["values"]}
    return _of_repeated(subject) or changed


def _judged(subject: Subject, evidence: dict[str, Any]) -> dict[str, Any]:
    changed = evidence["changed"]
    if changed and changed.keys() <= CONTENTS and changes_alone(subject):
        return unknown(UNSTEADY)
    if not changed and subject.is_one_array and _is_constant(subject):
        reason = "all values of the source are equal, so that a wrong order would not show"
        return verdict("unknown", evidence, reason)
    return verdict("wrong" if changed else "ok", evidence)


def _of_other_dtypes(source: Any, result: Any) -> dict[str, Any]:
    """What the dtypes of two NumPy arrays tell if dlprof has no name for one of them, such as
    ``datetime64[ms]``. Their values are not compared.
    """
    import numpy

    if not (isinstance(source, numpy.ndarray) and isinstance(result, numpy.ndarray)):
        return unknown("nothing tells the dtype of source or result")
    dtypes = [str(side.dtype) for side in (source, result)]
    if dtypes[0] != dtypes[1]:
        return {"verdict": "wrong", "evidence": {"changed": {"dtype": dtypes}}}
    return unknown(f"values of dtype {dtypes[0]} are not compared")


def _besides(subject: Subject, source: Any, result: Any) -> dict[str, Any]:
    """What can be said of source and result besides their values."""
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


def _of_repeated(subject: Subject) -> dict[str, Any]:
    """How a new array is wrong that was right at first; empty if it is always or never wrong."""
    source = attempt(subject.make_another)
    if isinstance(source, Refusal):
        return {}
    convert, end = subject.converting(source), time.monotonic() + REPEATED_S
    for call in range(REPEATED):
        result = convert()
        subject.wait_for(result)
        wrong = _difference(subject, source, result, None)
        if wrong:
            return {"repeated": wrong["values"]} if call else {}
        if time.monotonic() > end:
            break
    return {}


def _is_unfinished(subject: Subject, source: Any, result: Any) -> bool:
    """Whether the values are there a moment later."""
    time.sleep(FINISHED_S)
    return not _difference(subject, source, result, None)


def _of_more_conversions(subject: Subject, is_right: bool) -> dict[str, Any]:
    """Evidence of the conversions that follow a first one."""
    cornered = _at_corners(subject) if is_right else {}
    if "changed" in cornered:
        return cornered
    found = further_calls.look(subject)
    left_out = [one["left_out"] for one in (cornered, found) if "left_out" in one]
    return found | ({"left_out": "; ".join(left_out)} if left_out else {})


def _at_corners(subject: Subject) -> dict[str, Any]:
    """Evidence of a conversion at this size that loses corners, or why there is none; empty if it
    keeps them all.
    """
    spec = subject.spec
    is_simulated = isinstance(subject.producer, OnSimulatedDevice)  # it has values of its own
    if spec.corners or not spec.elements or subject.is_one_array or is_simulated:
        return {}
    if not memory.fits((1 + COPIES) * spec.size_bytes):
        return {"left_out": "there is too little memory for an array of NaN and extremes"}
    cornered = replace(subject, spec=replace(spec, corners=True))
    for _ in range(2):  # the values of an array before it are lost once
        changed = attempt(partial(_changed_of_another, cornered))
        if isinstance(changed, Refusal):  # it says nothing about values
            error = changed.error
            makes_none = isinstance(error, Unsupported) and not isinstance(error, memory.TooLarge)
            return {} if makes_none else {"left_out": f"NaN and extremes: {changed.reason}"}
        if not changed:
            return {}
    return {"changed": changed} | cornered.made()


def _changed_of_another(subject: Subject) -> dict[str, Any]:
    source = subject.make_another()
    result = subject.converting(source)()
    subject.wait_for(result)
    return _difference(subject, source, result, None)


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
    different, first, order_lost = 0, None, dtypes is None
    masked = getattr(source, "mask", None)  # the value of a masked element is no data
    for start, before, after in _parts(subject, source, result):
        differ = unequal(before, after, dtypes)
        if masked is not None and differ.size == masked.size:
            differ &= ~masked.reshape(-1)
        order_lost = order_lost and lost_byte_order(before, after)
        count = int(differ.sum())
        different += count
        if count and first is None:
            first = start + int(differ.argmax())
    if not different:
        return {}
    found = {"different": different, "of": subject.spec.elements, "first_index": first}
    return {"values": {**found, **({"byte_order_lost": True} if order_lost else {})}}


def _parts(subject: Subject, source: Any, result: Any) -> Iterator[tuple[int, Any, Any]]:
    """Index of the first element, source and result, one-dimensional on the host.

    Arrays are read whole if their copies fit into memory, else in parts along the first axis.
    """
    spec = subject.spec
    rows = spec.shape[0] if spec.shape else 1
    if memory.fits(COPIES * spec.size_bytes) or not hasattr(result, "__getitem__"):
        step = rows
        memory.check_more(COPIES * spec.size_bytes)
    else:
        step = max(1, PART_BYTES * rows // max(spec.size_bytes, 1))
        memory.check_more(COPIES * spec.size_bytes * step // rows)
    for begin in range(0, max(rows, 1), max(step, 1)):
        end = min(begin + step, rows)
        whole = end - begin >= rows
        elements = spec.elements if whole else spec.elements // rows * (end - begin)
        part = None if whole else (begin, end)
        after = read_elements(subject.consumer, result, spec, part)
        before = read_elements(subject.producer, source, spec, part)
        for side, values in (("source", before), ("result", after)):
            if values.size != elements:
                raise ValueError(f"{values.size} values of the {side} were read back")
        yield begin * (spec.elements // max(rows, 1)), before, after
