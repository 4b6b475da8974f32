"""Further calls: does each result keep its own values, whatever is converted after it?

New arrays of one path are converted, of 64 KiB at most:

- The source is compared with what it was before the call. It must have its shape, and must not have
  become writable.
- A first result is held while other values are converted four times, for buffers that take turns.
  If it changes and its source does not, a later conversion has overwritten it. For sources that
  cannot be written, two held results that are writable and at one address prove the same.
- An array is converted, written by its own framework, and converted again. If the second result has
  the old values, it was kept from the first conversion.
- One array is converted fifty times, and then four in turns: two of equal content and two of
  another. If a result differs from the first one of its array, other calls have changed it.
- The results of the two arrays of equal content are held. If a write to one shows in the other,
  and both may be written, one of them is not the result of its own array.
- Where a copy is documented, an array is converted twice. If both results are copies, and a write
  to one shows in the other, they are one.

Nothing is written before its results were waited for: a write could tear an unfinished copy.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from dlprof.probes.base import Unsupported
from dlprof.worker import memory
from dlprof.worker.elements import count_different, host_copy
from dlprof.worker.refusal import Refusal, attempt
from dlprof.worker.subject import Subject

LARGEST_BYTES = 64 << 10
"""The further looks read arrays seven times. PyTorch uses several threads at 256 KiB, which
took 25 ms while other programs kept the processors."""
OWN_LARGEST_BYTES = 64 << 20
"""A user's own array is read four times, and cannot be made smaller."""
OWN_COPIES = 5
"""Another source, its values before and after the call, the result and its values."""
OF_OWN = "of an array of your own, only the first result is compared with it"
SLOW_NS = 500_000_000
RING = 4
"""So many later results are held with the first."""
CALLS = 51
"""So often one array is converted before others follow: a framework may learn from its calls."""
TURNS = (2, 0, 1, 3, 2, 1, 0, 3)
"""The order of four arrays: each comes after two others."""
TURN_BYTES = 4 << 10
WRITTEN = 1
"""What the framework's write puts everywhere, as the ``write`` of a reproducer does."""


class Conversion(NamedTuple):
    """A result that is held with its source, and the values that both had when it was made."""

    source: Any
    source_values: Any
    result: Any
    result_values: Any


def look(subject: Subject) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    evidence: dict[str, Any] = {"changed": changed}
    left_out: list[str] = []
    looked = attempt(partial(_look_further, subject, changed))
    if isinstance(looked, Refusal):  # it says nothing about values
        left_out += [] if isinstance(looked.error, NothingToTry) else [looked.reason]
    elif changed and looked.spec != subject.spec:
        evidence |= looked.made()
    elif subject.is_one_array:
        left_out.append(OF_OWN)
    # A survey takes many arrays, and what a framework learns does not depend on the array.
    later = [_convert_twice] if subject.spec.corners else [_take_turns, _convert_twice]
    for one in [] if changed or subject.is_one_array else later:
        found = attempt(partial(one, subject))
        if not isinstance(found, Refusal):
            evidence |= {} if evidence["changed"] else found
        elif isinstance(looked, Refusal) or not isinstance(found.error, NothingToTry):
            left_out.append(found.reason)
    if left_out and not evidence["changed"]:
        evidence["left_out"] = "; ".join(dict.fromkeys(left_out))
    return evidence


class NothingToTry(Unsupported):
    """The array is one of which the question does not arise, or another look answers it."""


def _look_further(subject: Subject, changed: dict[str, Any]) -> Subject:
    """Fill ``changed``; returns the conversion that was looked at, which may be a smaller one."""
    subject = _of_size(subject)
    source, begun = _new_source(subject), time.perf_counter_ns()
    first = _convert(subject, source, changed)
    if changed or subject.is_one_array:
        return subject
    if time.perf_counter_ns() - begun > SLOW_NS and _takes_long(subject, source):
        raise Unsupported("a conversion takes too long to be made again")
    _convert_others(subject, first, changed)
    return subject


def _takes_long(subject: Subject, source: Any) -> bool:
    """Whether another conversion takes long, too: the first one may have compiled something."""
    convert, begun = subject.converting(source), time.perf_counter_ns()
    subject.wait_for(convert())
    return time.perf_counter_ns() - begun > SLOW_NS


def _of_size(subject: Subject) -> Subject:
    largest = OWN_LARGEST_BYTES if subject.is_one_array else LARGEST_BYTES
    if subject.spec.elements == 0:
        raise NothingToTry("there are no elements")
    if not subject.is_one_array:
        small = subject.spec.size_bytes <= largest
        return subject if small else subject.of_bytes(largest)
    if subject.spec.size_bytes > largest:
        raise Unsupported(f"the array is larger than {largest >> 20} MiB")
    memory.check_more(OWN_COPIES * subject.spec.size_bytes)
    return subject


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
    before, writable = host_copy(subject, source, producer), producer.writable(source)
    shape = producer.shape(source)
    result = subject.converting(source)()
    subject.wait_for(result)
    if (now := producer.shape(source)) != shape:
        changed["source_shape"] = [shape, now]
    elif difference := count_different(before, host_copy(subject, source, producer)):
        changed["source"] = difference
    if writable is False and producer.writable(source) is True:
        # The opposite is allowed: MXNet makes a source read-only that it shares.
        changed["source_writable"] = [False, True]
    return Conversion(source, before, result, host_copy(subject, result, subject.consumer))


def _convert_twice(subject: Subject) -> dict[str, Any]:
    """Evidence of a copy that is the result of two conversions; empty if there is none."""
    promised = subject.export.promise, subject.import_.promise
    if subject.spec.elements == 0 or "copy" not in promised:  # a mirror of each array is no fault
        return {}
    subject, consumer = _of_size(subject), subject.consumer
    first = _convert(subject, subject.make_another(), {})
    second = subject.converting(first.source)()
    subject.wait_for(second)
    at = consumer.pointer(second)
    others = consumer.pointer(first.result), subject.producer.pointer(first.source)
    if at is None or at != others[0] or at == others[1] or consumer.writable(second) is False:
        return {}
    if memory.must_not_be_written(at) or consumer.write(second, WRITTEN) is NotImplemented:
        return {}
    shown = _result_changed(subject, first)
    if not shown or _source_changed(subject, first):
        return {}
    return {"changed": {"one_result": shown}} | subject.made()


def _convert_others(subject: Subject, first: Conversion, changed: dict[str, Any]) -> None:
    """Convert another source, of other values, while the first result is held."""
    producer, other = subject.producer, subject.make_another()
    if producer.write(other, WRITTEN) is NotImplemented:
        if _is_one_buffer(subject, first, other):
            changed["earlier_result"] = {"same_address": True}
            return
        raise NothingToTry("the source cannot be written")  # it is converted in turns
    written = host_copy(subject, other, producer)
    if not count_different(first.source_values, written):
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
        raise NothingToTry("the source cannot be written once it is converted")
    result = subject.converting(first.source)()
    subject.wait_for(result)
    values = host_copy(subject, result, subject.consumer)
    was_right = not count_different(first.source_values, first.result_values)
    is_old = not count_different(first.result_values, values)
    missed = count_different(written, values)
    if was_right and is_old and missed:
        changed["after_write"] = missed


def _source_changed(subject: Subject, held: Conversion) -> dict[str, int]:
    return count_different(held.source_values, host_copy(subject, held.source, subject.producer))


def _result_changed(subject: Subject, held: Conversion) -> dict[str, int]:
    return count_different(held.result_values, host_copy(subject, held.result, subject.consumer))


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


class Turn(NamedTuple):
    """One of the arrays that take turns, and the values of its first result."""

    source: Any
    convert: Callable[[], Any]
    values: Any


def _take_turns(subject: Subject) -> dict[str, Any]:
    """Evidence of a result that is not that of its own array; empty if there is none."""
    subject = subject.of_bytes(min(TURN_BYTES, subject.spec.size_bytes))
    if subject.spec.elements == 0:
        return {}
    other = replace(subject, spec=replace(subject.spec, corners=True))
    turns = [_turn(one) for one in (subject, subject, other, other)]
    if not count_different(turns[0].values, turns[2].values):
        raise NothingToTry("the probe gives the same values to each array")
    wait = subject.waiter()
    end = time.perf_counter_ns() + SLOW_NS
    for _ in range(CALLS):
        wait(turns[0].convert())
        if time.perf_counter_ns() > end:
            raise Unsupported("a conversion takes too long to be made fifty times")
    texts = subject.made() | {"other": subject.producer.create(other.spec), "corners": True}
    held: deque[tuple[Turn, Any]] = deque(maxlen=len(turns))
    for number in TURNS:
        result = turns[number].convert()
        wait(result)
        held.append((turns[number], result))
        missed = count_different(turns[number].values, host_copy(subject, result, subject.consumer))
        if missed:
            return {"changed": {"in_turns": missed}} | texts
    for turn, result in held:
        overwritten = count_different(turn.values, host_copy(subject, result, subject.consumer))
        if overwritten:
            return {"changed": {"earlier_result": overwritten}} | texts
    results = {id(turn): result for turn, result in held}
    shared = _shared(subject, *((turn, results[id(turn)]) for turn in turns[:2]))
    return {"changed": {"equal_sources": shared}} | subject.made() if shared else {}


def _turn(subject: Subject) -> Turn:
    source = subject.make_another()
    convert = subject.converting(source)
    result = convert()
    subject.wait_for(result)
    return Turn(source, convert, host_copy(subject, result, subject.consumer))


def _shared(subject: Subject, one: tuple[Turn, Any], other: tuple[Turn, Any]) -> dict[str, int]:
    """How many values of one result a write to the other changes, where both may be written."""
    (turn, kept), (_, written) = one, other
    may_write = subject.consumer.writable(written), subject.producer.writable(turn.source)
    if False in may_write or memory.must_not_be_written(subject.consumer.pointer(written)):
        return {}
    if subject.consumer.write(written, WRITTEN) is NotImplemented:
        return {}
    return count_different(turn.values, host_copy(subject, kept, subject.consumer))
