"""Further calls: does each result keep its own values, whatever is converted after it?

New arrays of one path are converted, of 64 KiB at most:

- The source is compared with what it was before the call.
- A first result is held while other values are converted four times, for buffers that take turns.
  If it changes and its source does not, a later conversion has overwritten it.
- An array is converted, written by its own framework, and converted again. If the second result has
  the old values, it was kept from the first conversion.

Nothing is written before its results were waited for: a write could tear an unfinished copy.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from dlprof.worker.elements import count_different, host_copy
from dlprof.worker.refusal import Refusal, attempt
from dlprof.worker.subject import Subject

LARGEST_BYTES = 64 << 10
"""Arrays are read seven times. PyTorch uses several threads at 256 KiB, which took 25 ms while
other programs kept the processors."""
OWN_LARGEST_BYTES = 64 << 20
"""A user's own array is read four times, and cannot be made smaller."""
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


def look(subject: Subject) -> dict[str, Any]:
    """Evidence: what ``changed``, and how the array was made if it is another one."""
    changed: dict[str, Any] = {}
    looked = attempt(partial(_look_further, subject, changed))  # a refusal is no change
    if changed and not isinstance(looked, Refusal) and looked.spec != subject.spec:
        return {"changed": changed} | looked.made()
    return {"changed": changed}


def _look_further(subject: Subject, changed: dict[str, Any]) -> Subject:
    """Fill ``changed``; returns the conversion that was looked at, which may be a smaller one."""
    size = subject.spec.size_bytes
    if subject.spec.elements == 0 or (subject.is_one_array and size > OWN_LARGEST_BYTES):
        return subject
    if size > LARGEST_BYTES:
        subject = subject.of_bytes(LARGEST_BYTES)
    made = attempt(subject.make_another)  # the conversion may have written to the old source
    source = subject.source if isinstance(made, Refusal) else made
    first = _convert(subject, source, changed)
    # Of a user's own array only that is looked at: the text may share memory on purpose.
    if not (changed or subject.is_one_array):
        _convert_others(subject, first, changed)
    return subject


def _convert(subject: Subject, source: Any, changed: dict[str, Any]) -> Conversion:
    """Convert, and compare the source with what it was before."""
    producer = subject.producer
    before = host_copy(subject, source, producer)
    result = subject.converting(source)()
    subject.wait_for(result)
    if difference := count_different(before, host_copy(subject, source, producer)):
        changed["source"] = difference
    return Conversion(source, before, result, host_copy(subject, result, subject.consumer))


def _convert_others(subject: Subject, first: Conversion, changed: dict[str, Any]) -> None:
    """Convert other values while the first result is held, and then the first source with them."""
    producer, other = subject.producer, subject.make_another()
    if producer.write(other, WRITTEN) is NotImplemented:
        return
    written = host_copy(subject, other, producer)
    if not count_different(first.source_values, written) or _result_changed(subject, first):
        return  # the write changed nothing, or shows in the result of another source
    convert, wait, held = subject.converting(other), subject.waiter(), []
    for _ in range(RING):
        held.append(convert())
        wait(held[-1])
    overwritten = _result_changed(subject, first)
    source_now = host_copy(subject, first.source, producer)
    if overwritten and not count_different(first.source_values, source_now):
        changed["earlier_result"] = overwritten
        return
    del held
    if producer.write(first.source, WRITTEN) is NotImplemented:
        return
    result = subject.converting(first.source)()
    subject.wait_for(result)
    values = host_copy(subject, result, subject.consumer)
    was_right = not count_different(first.source_values, first.result_values)
    is_old = not count_different(first.result_values, values)
    missed = count_different(written, values)
    if was_right and is_old and missed:
        changed["after_write"] = missed


def _result_changed(subject: Subject, held: Conversion) -> dict[str, int]:
    return count_different(held.result_values, host_copy(subject, held.result, subject.consumer))
