"""Fresh source: is the second conversion of the same array cheaper than the first?

Some frameworks keep a host copy, or objects that describe the array. So several new arrays are
converted twice, while the first result is held. Proof for a copy: both results have one address.
Proof for a view, and for a copy to another device: the first conversion takes over twice as long.

Verdicts: ``kept``, ``not kept``, ``unknown``. Evidence: ``first_ns`` and ``second_ns`` (the fastest
of all arrays, since other programs only add time), and ``size_bytes`` of each. For a copy that is
kept also ``new_ns``: the median first conversion of arrays of the case's size.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from dlprof.protocol.messages import unknown
from dlprof.worker import memory, timer
from dlprof.worker.subject import Subject, lies_within

MOST = 15
LEAST = 7
NEW = 5
"""Arrays of the case's own size."""
LARGEST_BYTES = 1 << 18
"""Arrays are no larger: whether something is kept does not depend on the size."""
SLOW_NS = 5_000_000_000
"""A user's setup may take long, and the case's time limit is for all instruments."""
KEPT_RATIO = 2.25
"""On busy processors, JAX's first ``__dlpack__`` took 2.7 to 3.4 times as long as its second one,
which is kept, ``device_get`` 1.6 to 1.9 times, a copy from a GPU 5.5 to 10 times if it is kept, and
1.0 to 1.3 times if not."""
KEPT_NS = 2_000
"""The first conversion of a view must cost this much more than the second."""


class Pair(NamedTuple):
    """Two conversions of one new array: times in ns, and the places of the results."""

    first_ns: int
    second_ns: int
    is_view: bool
    same_result: bool
    moved: bool = False
    """Whether the source had no address before, as one of several chunks."""


def measure(subject: Subject, budget_ns: int) -> dict[str, Any]:
    if not subject.import_.returns_array or subject.spec.elements == 0:
        return unknown("there is no result whose address could be compared")
    whole = subject
    if not subject.is_one_array and subject.spec.size_bytes > LARGEST_BYTES:
        subject = subject.of_bytes(LARGEST_BYTES)
        names = {**subject.namespace, "x": subject.make_another()}
        subject = replace(subject, namespace=names)
    crosses = subject.result_device != subject.spec.device
    start = time.perf_counter_ns()
    pairs: list[Pair] = []
    while len(pairs) < LEAST or (len(pairs) < MOST and time.perf_counter_ns() - start < budget_ns):
        pair = _convert_twice(subject)
        if pair is None:
            return unknown("a framework does not say where its array is")
        pairs.append(pair)
        if not (crosses or pair.is_view or pair.same_result):
            break  # two copies on the host: nothing is kept
        if subject.is_one_array and time.perf_counter_ns() - start > SLOW_NS:
            return unknown("it takes too long to make new arrays")
    found = judge(pairs, timer.clock_cost_ns(), crosses)
    found["evidence"]["size_bytes"] = subject.spec.size_bytes
    is_copy = not all(pair.is_view for pair in pairs)
    fits = memory.fits(memory.COPIES * whole.spec.size_bytes)
    if found["verdict"] == "kept" and is_copy and fits and not subject.is_one_array:
        start, wait, times = time.perf_counter_ns(), whole.waiter(), list[int]()
        while len(times) < NEW and time.perf_counter_ns() - start < SLOW_NS:
            times.append(_once(whole.converter(whole.make_another()), wait)[0])
        found["evidence"]["new_ns"] = statistics.median(times)
    return found


def judge(pairs: list[Pair], clock_ns: float, crosses: bool = False) -> dict[str, Any]:
    """Return the verdict on all pairs; ``clock_ns`` is subtracted from the times.

    ``crosses`` says whether the result is on another device than the source.
    """
    first = min(pair.first_ns for pair in pairs) - clock_ns
    second = min(pair.second_ns for pair in pairs) - clock_ns
    is_cheaper = first - second > KEPT_NS and first > KEPT_RATIO * max(second, 0.0)
    if all(pair.is_view for pair in pairs):
        is_kept = is_cheaper or any(pair.moved for pair in pairs)
    else:
        is_kept = all(pair.same_result for pair in pairs) or (crosses and is_cheaper)
    evidence = {"first_ns": first, "second_ns": second}
    return {"verdict": "kept" if is_kept else "not kept", "evidence": evidence}


def _convert_twice(subject: Subject) -> Pair | None:
    source = subject.make_another()
    call, wait = subject.converter(source), subject.waiter()
    moved = subject.is_one_array and subject.producer.pointer(source) is None
    wait(subject.convert())
    first_ns, first = _once(call, wait)
    second_ns, second = _once(call, wait)
    addresses = subject.consumer.pointer(first), subject.consumer.pointer(second)
    source_address = subject.producer.pointer(source)
    if addresses[0] is None or addresses[1] is None or source_address is None:
        return None
    is_view = lies_within(addresses[0], source_address, source, subject.spec)
    return Pair(first_ns, second_ns, is_view, addresses[0] == addresses[1], moved)


def _once(call: Callable[[], Any], wait: Callable[[Any], Any]) -> tuple[int, Any]:
    begin = time.perf_counter_ns()
    result = call()
    wait(result)
    return time.perf_counter_ns() - begin, result
