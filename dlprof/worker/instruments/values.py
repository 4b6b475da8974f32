"""Values: did shape, dtype and every value survive, and did the conversion change anything else?

The source holds a pattern that shows wrong strides and truncation
(:data:`dlprof.probes.base.PATTERNS`). Source and result are read back by their own frameworks and
compared bit for bit.

If they agree, three more looks follow at new arrays of the same path:

- The source is compared with what it was before the call, and must not have become writable.
- A first result is held while other values are converted four times, for buffers that take turns.
  If it changes and its source does not, a later conversion has overwritten it. For sources that
  cannot be written, two held results that are writable and at one address prove the same.
- An array is converted, written by its own framework, and converted again. If the second result has
  the old values, it was kept from the first conversion.

Nothing is written before its results were waited for: a write could tear an unfinished copy. Of a
user's own array only the first look is taken, since the user's text may share memory on purpose.

Verdicts: ``ok``, ``wrong``, ``unknown``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from dlprof.probes.base import ArraySpec, Probe, Unsupported
from dlprof.protocol.messages import unknown
from dlprof.worker import memory
from dlprof.worker.any_array import UNKNOWN
from dlprof.worker.refusal import Refusal, attempt
from dlprof.worker.subject import Subject

COPIES = 3
"""Host copies that a comparison needs: source, result, and where they differ."""
PART_BYTES = 16 << 20
"""If whole copies do not fit, parts of this size are compared. malloc reuses memory of this size,
and takes new pages for more."""


def measure(subject: Subject, again: bool = True) -> dict[str, Any]:
    """The verdict. ``again`` says whether there is time for more conversions than one."""
    if not subject.import_.returns_array:
        return unknown("the call leaves no array behind to compare")
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
        return unknown("nothing tells the dtype of source or result")
    changed: dict[str, Any] = {what: pair for what, pair in seen.items() if pair[0] != pair[1]}
    if "shape" not in changed:
        changed.update(_difference(subject, source, result, changed.get("dtype")))
    writable = {
        "source": subject.producer.writable(source),
        "result": subject.consumer.writable(result),
    }
    evidence: dict[str, Any] = {"changed": changed, "writable": writable}
    orders = [order_of(side) for side in (source, result)]
    if spec.layout == "F" and None not in orders:
        evidence["orders"] = orders
    kept = subject.consumer.properties(result)
    dropped = [name for name in subject.producer.properties(source) if name not in kept]
    if dropped:
        evidence["dropped"] = dropped
    if again and changed.keys() <= {"values"}:
        del result  # a framework may reuse a buffer once nothing holds it
        found = look_further(subject)
        # A value that the conversion wrote to its source looks like a wrong result.
        if not changed or "source" in found["changed"]:
            evidence |= found
            changed = found["changed"]
    if not changed and subject.is_one_array and _is_constant(subject):
        reason = "all values of the source are equal, so that a wrong order would not show"
        return {"verdict": "unknown", "evidence": {**evidence, "reason": reason}}
    return {"verdict": "wrong" if changed else "ok", "evidence": evidence}


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
    different, first = 0, None
    masked = getattr(source, "mask", None)  # the value of a masked element is no data
    for start, before, after in _parts(subject, source, result):
        differ = unequal(before, after, dtypes)
        if masked is not None and differ.size == masked.size:
            differ &= ~masked.reshape(-1)
        count = int(differ.sum())
        different += count
        if count and first is None:
            first = start + int(differ.argmax())
    if not different:
        return {}
    return {"values": {"different": different, "of": subject.spec.elements, "first_index": first}}


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
        before = read_elements(subject.producer, source, spec, part)
        after = read_elements(subject.consumer, result, spec, part)
        for side, values in (("source", before), ("result", after)):
            if values.size != elements:
                raise ValueError(f"{values.size} values of the {side} were read back")
        yield begin * (spec.elements // max(rows, 1)), before, after


LARGEST_BYTES = 64 << 10
"""The further looks read arrays seven times. PyTorch uses several threads at 256 KiB, which
took 25 ms while other programs kept the processors."""
OWN_LARGEST_BYTES = 1 << 20
"""A user's own array is read four times, and cannot be made smaller."""
SLOW_NS = 500_000_000
RING = 4
"""So many later results are held with the first."""
WRITTEN = 1
"""What the framework's write puts everywhere, as the ``write`` of a reproducer does."""


class Conversion(NamedTuple):
    """A result that is held with its source, and the values that both had when it was made."""

    source: Any
    source_values: Any
    result: Any
    result_values: Any


def look_further(subject: Subject) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    evidence: dict[str, Any] = {"changed": changed}
    looked = attempt(partial(_look_further, subject, changed))
    if isinstance(looked, Refusal):
        evidence["not_tried"] = looked.reason  # a refusal says nothing about values
    elif changed and looked.spec != subject.spec:
        evidence |= looked.made()
    return evidence


def _look_further(subject: Subject, changed: dict[str, Any]) -> Subject:
    """Fill ``changed``; returns the conversion that was looked at, which may be a smaller one."""
    begun = time.perf_counter_ns()
    subject = _of_size(subject)
    first = _convert(subject, _new_source(subject), changed)
    if changed or subject.is_one_array:
        return subject
    if time.perf_counter_ns() - begun > SLOW_NS:
        raise Unsupported("a conversion takes too long to be made again")
    _convert_others(subject, first, changed)
    return subject


def _of_size(subject: Subject) -> Subject:
    largest = OWN_LARGEST_BYTES if subject.is_one_array else LARGEST_BYTES
    if subject.spec.elements == 0:
        raise Unsupported("there are no elements")
    if subject.spec.size_bytes <= largest:
        return subject
    if subject.is_one_array:
        raise Unsupported(f"the array is larger than {largest >> 20} MiB")
    return subject.of_bytes(largest)


def _new_source(subject: Subject) -> Any:
    """A new source; the old one if a user's setup makes no other, or takes long.

    The conversion may have written to the old source before.
    """
    if subject.is_one_array and subject.create_ns > SLOW_NS:
        return subject.source
    try:
        return subject.make_another()
    except Unsupported:
        if subject.is_one_array:
            return subject.source
        raise


def _convert(subject: Subject, source: Any, changed: dict[str, Any]) -> Conversion:
    """Convert, and compare the source with what it was before."""
    producer = subject.producer
    before, writable = _values(subject, source, producer), producer.writable(source)
    result = subject.converting(source)()
    subject.wait_for(result)
    difference = _count_different(before, _values(subject, source, producer))
    if difference:
        changed["source"] = difference
    if writable is False and producer.writable(source) is True:
        # The opposite is allowed: MXNet makes a source read-only that it shares.
        changed["source_writable"] = [False, True]
    return Conversion(source, before, result, _values(subject, result, subject.consumer))


def _convert_others(subject: Subject, first: Conversion, changed: dict[str, Any]) -> None:
    """Convert another source, of other values, while the first result is held."""
    producer, other = subject.producer, subject.make_another()
    if producer.write(other, WRITTEN) is NotImplemented:
        if _is_one_buffer(subject, first, other):
            changed["earlier_result"] = {"same_address": True}
            return
        raise Unsupported("the source cannot be written")
    written = _values(subject, other, producer)
    if not _count_different(first.source_values, written):
        raise Unsupported("a write left the source as it was")
    if _result_changed(subject, first):
        raise Unsupported("a write to one source shows in the result of another")
    convert, wait, held = subject.converting(other), subject.waiter(), []
    for _ in range(RING):
        held.append(convert())
        wait(held[-1])
    overwritten = _result_changed(subject, first)
    if overwritten and not _source_changed(subject, first):
        changed["earlier_result"] = overwritten
        return
    del held
    _convert_again(subject, first, written, changed)


def _convert_again(
    subject: Subject, first: Conversion, written: Any, changed: dict[str, Any]
) -> None:
    """Convert the first source once more, with the values that were ``written`` to it."""
    if subject.producer.write(first.source, WRITTEN) is NotImplemented:
        raise Unsupported("the source cannot be written once it is converted")
    result = subject.converting(first.source)()
    subject.wait_for(result)
    values = _values(subject, result, subject.consumer)
    was_right = not _count_different(first.source_values, first.result_values)
    is_old = not _count_different(first.result_values, values)
    missed = _count_different(written, values)
    if was_right and is_old and missed:
        changed["after_write"] = missed


def _source_changed(subject: Subject, held: Conversion) -> dict[str, int]:
    return _count_different(held.source_values, _values(subject, held.source, subject.producer))


def _result_changed(subject: Subject, held: Conversion) -> dict[str, int]:
    return _count_different(held.result_values, _values(subject, held.result, subject.consumer))


def _is_one_buffer(subject: Subject, first: Conversion, other: Any) -> bool:
    """Whether the copy of another source shares writable memory with the first.

    Immutable results may share theirs.
    """
    results = first.result, subject.converting(other)()
    at = [subject.consumer.pointer(result) for result in results]
    sources = [subject.producer.pointer(source) for source in (first.source, other)]
    if None in (*at, *sources):
        return False
    are_copies = sources[0] != sources[1] and at[0] not in sources
    return are_copies and at[0] == at[1] and subject.consumer.writable(first.result) is True


def _values(subject: Subject, array: Any, probe: Probe) -> Any:
    """A host copy of all elements of a source or a result."""
    import numpy

    values = numpy.array(read_elements(probe, array, subject.spec))
    if values.size != subject.spec.elements:
        raise Unsupported(f"{values.size} values of the result were read back")
    return values


def _count_different(before: Any, after: Any) -> dict[str, int]:
    """How many elements differ; empty if none does."""
    if before.dtype != after.dtype:
        raise Unsupported(f"{before.dtype} cannot be compared with {after.dtype}")
    differ = unequal(before, after)
    count = int(differ.sum())
    if not count:
        return {}
    return {"different": count, "of": int(before.size), "first_index": int(differ.argmax())}


def read_elements(
    probe: Probe, array: Any, spec: ArraySpec, rows: tuple[int, int] | None = None
) -> Any:
    """The elements, or those of some rows, one-dimensional; may be a view of the array."""
    import numpy

    if probe.dtype(array) is not None:
        part = array if rows is None else array[slice(*rows)]
        return numpy.ascontiguousarray(probe.to_numpy(part)).reshape(-1)
    raw = probe.to_numpy(array)
    if rows is not None:
        row_bytes = spec.size_bytes // spec.shape[0]
        raw = raw[rows[0] * row_bytes : rows[1] * row_bytes]
    return raw.view(spec.dtype)


def unequal(before: Any, after: Any, dtypes: tuple[str, str] | None = None) -> Any:
    """Which elements differ: by their bits, or by their numbers if there are two ``dtypes``."""
    import numpy

    elements = before.size
    if dtypes is None:
        before, after = bits(before), bits(after)
    elif not all(map(_are_numbers, (before, after), dtypes)):
        return numpy.zeros(1, dtype=bool)
    differ = before != after
    words = max(1, differ.size // max(elements, 1))  # a complex number is two
    return differ if words == 1 else differ.reshape(-1, words).any(axis=1)


def bits(array: Any) -> Any:
    """Bit patterns in the machine's byte order: NaN equals NaN, and -0.0 differs from 0.0."""
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    return array.view(f"uint{8 * min(array.dtype.itemsize, 8)}")


def _are_numbers(values: Any, dtype: str) -> bool:
    # For a dtype that NumPy lacks these are its bits, which are no numbers of another dtype.
    return values.dtype.kind in "biufc" and values.dtype.name == dtype
