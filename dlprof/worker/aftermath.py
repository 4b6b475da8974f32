"""Aftermath: what a conversion changes besides making its result.

Three looks, each a part of the verdict on *values*, at new arrays of the same path:

- The source is compared with what it was before the call; and it must not have become writable.
- A first result is held while an array of other values is converted. If it changes, and its own
  source did not, the second conversion has overwritten it. Of arrays that cannot be written none of
  other values can be had: there, two held copies that can be written and are at one address are it.
- An array is converted, written by its own framework, and converted again. If the second result
  has the old values, it was kept from the first conversion.

Nothing is written before the results of it were waited for, since a copy that is still being made
may be torn by that. Of a user's own array the first look alone is taken: his text may hold the
result's memory on purpose, and may use more than the array. It cannot tell where a framework
refuses something on the way; then nothing is called wrong for it.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from dlprof.probes.base import DTYPES, Unsupported
from dlprof.worker.elements import read, unequal
from dlprof.worker.subject import Subject, compile_call
from dlprof.worker.words import words

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


def look(subject: Subject) -> dict[str, Any]:
    """Evidence: ``changed`` by what it is, and ``not_tried`` where a look was not to be had.

    Where something changed, and the array had another shape than the case's, ``create`` is the
    text that makes it.
    """
    changed: dict[str, Any] = {}
    evidence: dict[str, Any] = {"changed": changed}
    try:
        small = _of_size(subject)
        _look(small, changed)
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


def _look(subject: Subject, changed: dict[str, Any]) -> None:
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
    before, writable = _values(subject, source), producer.writable(source)
    result = compile_call(subject.code, {**subject.namespace, "x": source})()
    subject.wait_for(result)
    difference = _difference(before, _values(subject, source))
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
    written = _values(subject, second.source)
    if not _difference(second.source_values, written):
        raise Unsupported("a write left the source as it was")
    if not _is_as_it_was(subject, first):
        raise Unsupported("a write to one source shows in another, or in its result")
    third = _convert(subject, second.source, changed)
    missed = _missed(second, third, written)
    if missed:
        changed["after_write"] = missed
    held = _difference(first.result_values, _values_of_result(subject, first.result))
    if held and not _difference(first.source_values, _values(subject, first.source)):
        changed["earlier_result"] = held


def _is_as_it_was(subject: Subject, held: Conversion) -> bool:
    pairs = (
        (held.source_values, _values(subject, held.source)),
        (held.result_values, _values_of_result(subject, held.result)),
    )
    return not any(_difference(before, now) for before, now in pairs)


def _missed(second: Conversion, third: Conversion, written: Any) -> dict[str, int]:
    """How many values are those from before the write: only where all of them are."""
    right = not _difference(second.source_values, second.result_values)
    is_old = not _difference(second.result_values, third.result_values)
    return _difference(written, third.result_values) if right and is_old else {}


def _is_one_buffer(subject: Subject, first: Conversion, second: Conversion) -> bool:
    """Whether two copies share memory that can be written: that of immutable ones may be shared."""
    at = [subject.consumer.pointer(one.result) for one in (first, second)]
    sources = [subject.producer.pointer(one.source) for one in (first, second)]
    if None in (*at, *sources):
        return False
    apart = sources[0] != sources[1] and at[0] not in sources
    return apart and at[0] == at[1] and subject.consumer.writable(first.result) is True


def _values(subject: Subject, source: Any) -> Any:
    import numpy

    return numpy.array(read(subject.producer, source, subject.spec))


def _values_of_result(subject: Subject, result: Any) -> Any:
    import numpy

    values = numpy.array(read(subject.consumer, result, subject.spec))
    if values.size != subject.spec.elements:
        raise Unsupported(f"{values.size} values of the result were read back")
    return values


def _difference(before: Any, after: Any) -> dict[str, int]:
    """How many elements differ; empty where none does. Those of another dtype are not compared."""
    if before.dtype != after.dtype:
        raise Unsupported(f"{before.dtype} cannot be compared with {after.dtype}")
    differ = unequal(before, after)
    count = int(differ.sum())
    if not count:
        return {}
    return {"different": count, "of": int(before.size), "first_index": int(differ.argmax())}
