"""Values: did shape, dtype and every value survive the conversion, and did it change anything else?

The source holds a pattern that shows wrong strides and truncation
(:data:`dlprof.probes.base.PATTERNS`). Source and result are read back by their own frameworks and
compared bit for bit. It cannot tell for a call that leaves no array behind.

Where they agree, three more looks are taken at new arrays of the same path:

- The source is compared with what it was before the call; and it must not have become writable.
- A first result is held while an array of other values is converted. If it changes, and its own
  source did not, the second conversion has overwritten it. Of arrays that cannot be written none of
  other values can be had: there, two held copies that can be written and are at one address are it.
- An array is converted, written by its own framework, and converted again. If the second result
  has the old values, it was kept from the first conversion.

Nothing is written before the results of it were waited for, since a copy that is still being made
may be torn by that. Of a user's own array the first look alone is taken: the user's text may hold
the result's memory on purpose, and may use more than the array. Where a framework refuses something
on the way, nothing is called wrong for it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from dlprof.probes.base import DTYPES, ArraySpec, Probe, Unsupported
from dlprof.protocol.messages import unknown, words
from dlprof.worker import memory
from dlprof.worker.foreign import UNKNOWN
from dlprof.worker.subject import Subject

COPIES = 3
"""Source and result, as they are read back; and where they differ, which is as large at most."""
PART_BYTES = 16 << 20
"""Where there is no room for whole copies, parts of this size are compared: of as many bytes malloc
uses memory again, and of more it takes new pages each time."""


def measure(subject: Subject, again: bool = True) -> dict[str, Any]:
    """Verdict ``ok``, ``wrong`` or ``unknown`` with evidence.

    ``again`` says whether there is time for more conversions than one.
    """
    if not subject.import_.returns_array:
        return unknown("the call leaves no array behind to compare")
    try:
        import numpy  # noqa: F401 - asked for here so that its absence is told in words
    except ImportError:
        return unknown("NumPy is not installed in the measured interpreter")
    source = subject.source
    result = subject.convert()
    subject.wait_for(result)
    spec, producer, consumer = subject.spec, subject.producer, subject.consumer
    seen: dict[str, list[Any]] = {
        # Plain memory has neither; what the way in says is what was asked for.
        "shape": [_lengths(producer, source, spec.shape), _lengths(consumer, result)],
        "dtype": [producer.dtype(source) or spec.dtype, consumer.dtype(result)],
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
    evidence = {"changed": changed, "writable": writable}
    if again and changed.keys() <= {"values"}:
        del result  # a buffer that is used again only when nobody holds it would be another
        found = look_after(subject)
        # What a conversion wrote to its source looks like a wrong result of it.
        if not changed or "source" in found["changed"]:
            evidence |= found
            changed = found["changed"]
    if not changed and subject.is_one_array and _is_constant(subject):
        reason = "all values of the source are equal, so that a wrong order would not show"
        return {"verdict": "unknown", "evidence": {**evidence, "reason": reason}}
    return {"verdict": "wrong" if changed else "ok", "evidence": evidence}


def _lengths(probe: Probe, array: Any, otherwise: tuple[int, ...] | None = None) -> list[int]:
    shape = probe.shape(array)
    shape = otherwise if shape is None else shape
    if shape is None:
        raise TypeError(f"{probe.name} does not say the shape of its array")
    return list(shape)


def _is_constant(subject: Subject) -> bool:
    import numpy

    values = bits(numpy.ascontiguousarray(subject.producer.to_numpy(subject.source)).reshape(-1))
    return bool(values.size > 1 and (values == values[0]).all())


def _difference(
    subject: Subject, source: Any, result: Any, dtypes: tuple[str, str] | None
) -> dict[str, Any]:
    different, first = 0, None
    for start, before, after in _parts(subject, source, result):
        differ = unequal(before, after, dtypes)
        count = int(differ.sum())
        different += count
        if count and first is None:
            first = start + int(differ.argmax())
    if not different:
        return {}
    return {"values": {"different": different, "of": subject.spec.elements, "first_index": first}}


def _parts(subject: Subject, source: Any, result: Any) -> Iterator[tuple[int, Any, Any]]:
    """Index of the first element, source and result, one-dimensional on the host.

    Arrays are read back whole where their copies fit into memory, and else in parts along
    their first axis.
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
        before = read_elements(subject.producer, source, spec, None if whole else (begin, end))
        after = read_elements(subject.consumer, result, spec, None if whole else (begin, end))
        for side, values in (("source", before), ("result", after)):
            if values.size != elements:
                raise ValueError(f"{values.size} values of the {side} were read back")
        yield begin * (spec.elements // max(rows, 1)), before, after


LARGEST_BYTES = 64 << 10
"""Arrays are read about ten times. At 256 KiB PyTorch worked with several threads, which took 25 ms
where other programs kept the processors; at this size it did not."""
OWN_LARGEST_BYTES = 1 << 20
"""Of a user's own array, which is read four times and cannot be made smaller."""
SLOW_NS = 500_000_000
WRITTEN = 1
"""What the framework's write puts everywhere, as the ``write`` of a reproducer does."""


class Conversion(NamedTuple):
    """A result that is held with its source, and the values that both had when it was made."""

    source: Any
    source_values: Any
    result: Any
    result_values: Any


def look_after(subject: Subject) -> dict[str, Any]:
    """Evidence: ``changed`` by what it is, and ``not_tried`` where a look was not to be had.

    Where something changed, and the array had another shape than the case's, ``create`` is the
    text that makes it.
    """
    changed: dict[str, Any] = {}
    evidence: dict[str, Any] = {"changed": changed}
    try:
        small = _of_size(subject)
        _look_after(small, changed)
        if changed and small.spec != subject.spec:
            evidence |= small.made()
    except Unsupported as reason:
        evidence["not_tried"] = str(reason)
    except Exception as refusal:  # noqa: BLE001 - any framework, any error: it says nothing of values
        evidence["not_tried"] = words(refusal)
    return evidence


def _of_size(subject: Subject) -> Subject:
    """The same conversion of a smaller array where it is large."""
    largest = OWN_LARGEST_BYTES if subject.is_one_array else LARGEST_BYTES
    elements = largest // DTYPES.get(subject.spec.dtype, 1)
    if subject.spec.elements == 0:
        raise Unsupported("there are no elements")
    if subject.spec.elements <= elements:
        return subject
    if subject.is_one_array:
        raise Unsupported(f"the array is larger than {largest >> 20} MiB")
    return subject.of_elements(elements)


def _look_after(subject: Subject, changed: dict[str, Any]) -> None:
    begun = time.perf_counter_ns()
    first = _convert(subject, _new(subject), changed)
    if changed or subject.is_one_array:
        return
    if time.perf_counter_ns() - begun > SLOW_NS:
        raise Unsupported("a conversion takes too long to be made again")
    second = _convert(subject, subject.make_another(), changed)
    if not changed:
        _convert_again(subject, first, second, changed)


def _new(subject: Subject) -> Any:
    """A new source; the old one where a user's setup makes no other, or not at once.

    What a conversion writes, it may have written to the old one before.
    """
    if subject.is_one_array and subject.setup_ns > SLOW_NS:
        return subject.source
    try:
        return subject.make_another()
    except Unsupported:
        if subject.is_one_array:
            return subject.source
        raise


def _convert(subject: Subject, source: Any, changed: dict[str, Any]) -> Conversion:
    """Convert, and say whether the source is what it was before."""
    producer = subject.producer
    before, writable = _values_of_source(subject, source), producer.writable(source)
    result = subject.converting(source)()
    subject.wait_for(result)
    difference = _count_different(before, _values_of_source(subject, source))
    if difference:
        changed["source"] = difference
    if writable is False and producer.writable(source) is True:
        # The other way round a framework guards what it shares, as MXNet does by its documents.
        changed["source_writable"] = [False, True]
    return Conversion(source, before, result, _values_of_result(subject, result))


def _convert_again(
    subject: Subject, first: Conversion, second: Conversion, changed: dict[str, Any]
) -> None:
    """Convert the second source once more, with other values."""
    if subject.producer.write(second.source, WRITTEN) is NotImplemented:
        if _is_one_buffer(subject, first, second):
            changed["earlier_result"] = {"same_address": True}
            return
        raise Unsupported("the source cannot be written")
    written = _values_of_source(subject, second.source)
    if not _count_different(second.source_values, written):
        raise Unsupported("a write left the source as it was")
    if not _is_as_it_was(subject, first):
        raise Unsupported("a write to one source shows in another, or in its result")
    third = _convert(subject, second.source, changed)
    missed = _missed(second, third, written)
    if missed:
        changed["after_write"] = missed
    held = _count_different(first.result_values, _values_of_result(subject, first.result))
    if held and not _count_different(first.source_values, _values_of_source(subject, first.source)):
        changed["earlier_result"] = held


def _is_as_it_was(subject: Subject, held: Conversion) -> bool:
    pairs = (
        (held.source_values, _values_of_source(subject, held.source)),
        (held.result_values, _values_of_result(subject, held.result)),
    )
    return not any(_count_different(before, now) for before, now in pairs)


def _missed(second: Conversion, third: Conversion, written: Any) -> dict[str, int]:
    """How many values are those from before the write: only where all of them are."""
    right = not _count_different(second.source_values, second.result_values)
    is_old = not _count_different(second.result_values, third.result_values)
    return _count_different(written, third.result_values) if right and is_old else {}


def _is_one_buffer(subject: Subject, first: Conversion, second: Conversion) -> bool:
    """Whether two copies share memory that can be written: that of immutable ones may be shared."""
    at = [subject.consumer.pointer(one.result) for one in (first, second)]
    sources = [subject.producer.pointer(one.source) for one in (first, second)]
    if None in (*at, *sources):
        return False
    apart = sources[0] != sources[1] and at[0] not in sources
    return apart and at[0] == at[1] and subject.consumer.writable(first.result) is True


def _values_of_source(subject: Subject, source: Any) -> Any:
    import numpy

    return numpy.array(read_elements(subject.producer, source, subject.spec))


def _values_of_result(subject: Subject, result: Any) -> Any:
    import numpy

    values = numpy.array(read_elements(subject.consumer, result, subject.spec))
    if values.size != subject.spec.elements:
        raise Unsupported(f"{values.size} values of the result were read back")
    return values


def _count_different(before: Any, after: Any) -> dict[str, int]:
    """How many elements differ; empty where none does. Those of another dtype are not compared."""
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
    """Which elements differ: of one dtype by their bits, of two by their numbers.

    ``dtypes`` are their names where there are two.
    """
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
    """Bit patterns, so that NaN equals NaN and -0.0 differs from 0.0; of the machine's byte order,
    since the order is no part of a value.
    """
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    return array.view(f"uint{8 * min(array.dtype.itemsize, 8)}")


def _are_numbers(values: Any, dtype: str) -> bool:
    # Of a dtype that NumPy lacks these are the bits, and those no numbers of another dtype.
    return values.dtype.kind in "biufc" and values.dtype.name == dtype
