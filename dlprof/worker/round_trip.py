"""Round trip: what do hundreds of trips there and back cost in a row, and where does the time go?

``x`` goes to the other framework and comes back, and what came back goes again, as in a loop of an
application that uses both. Only the last is waited for. Whether the trips grow dearer on the way
is told by the first and the last ten of them. Behind queued work of known length the first trip
shows who waits for it: then that time is the work's, not the conversion's.

It cannot tell what waits where the producer's calls run their work themselves.
"""

from __future__ import annotations

import itertools
import statistics
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from dlprof.probes.base import written
from dlprof.worker import ordering, timer
from dlprof.worker.load import default_sides, load_of
from dlprof.worker.subject import Subject
from dlprof.worker.words import words

if TYPE_CHECKING:
    from collections.abc import Callable

    from dlprof.worker.cuda import Gpu

ENDS = 10
"""So many trips at either end are compared."""
QUEUE_NS = 50_000_000
"""Length of the queue that the loaded trips begin behind, at least."""
MOST_QUEUE_NS = 500_000_000
REPEATS = 3
STALE = 0.5
"""A trip that begins after this share of its queue is over tells nothing."""
LONGER = 2
"""The queue is to be so many times as long as the trips are without it."""


@dataclass(frozen=True)
class Trips:
    """``run(x, n)`` makes n trips from ``x`` and reads the clock before the first, after each half,
    and when the last array is there. ``total_ns(x, n)`` is the time of all, with no clock between.
    """

    run: Callable[[Any, int], list[int]]
    total_ns: Callable[[Any, int], int]


def measure(
    there: Subject, back: Subject, iterations: int, budget_ns: int, gpu: Gpu | None = None
) -> dict[str, Any]:
    """Times in ns per trip, one process; ``back`` is a subject of the way back."""
    trips, restarted = _working(there, back)
    with timer.collector_off():
        totals = _totals(trips, there.source, iterations, budget_ns)
        parts = _parts(trips.run(there.source, iterations), timer.clock_cost_ns())
    idle = timer.Timing(iterations, [total / iterations for total in totals])
    found = {"idle": asdict(idle), "parts": parts, "restarted": restarted}
    loaded, why_not = _loaded(there, trips, iterations, min(totals), gpu)
    if loaded is not None:
        return {**found, "loaded_from": "there", "loaded": loaded, "not_loaded": None}
    # The other framework may have a queue.
    trips = _compile(back, there, restarted is None)
    loaded, why_too = _loaded(back, trips, iterations, min(totals), gpu)
    why_not = f"{why_not}; {why_too}" if loaded is None else None
    return {**found, "loaded_from": "back", "loaded": loaded, "not_loaded": why_not}


def _working(there: Subject, back: Subject) -> tuple[Trips, str | None]:
    """The trips, and why each must begin with the same array, if it must.

    What came back may be read-only, and refused by the way there.
    """
    chained = _compile(there, back, chained=True)
    try:
        # Two, since the first begins with another array. They also compile what is compiled once.
        chained.total_ns(there.source, 2)
    except Exception as refusal:  # noqa: BLE001 - any framework, any error: it is the answer
        alone = _compile(there, back, chained=False)
        alone.total_ns(there.source, 2)
        return alone, words(refusal)
    return chained, None


def _compile(there: Subject, back: Subject, chained: bool) -> Trips:
    dtype, shape = there.spec.dtype, there.spec.shape
    go = written(there.import_.code, written(there.export.code, "_x", dtype, shape), dtype, shape)
    come = written(back.import_.code, written(back.export.code, "_y", dtype, shape), dtype, shape)
    namespace = {**back.namespace, **there.namespace, "_clock": time.perf_counter_ns}
    wait = back.wait.format(x="_z") or "pass"
    again = "_x = _z" if chained else "pass"
    scope: dict[str, Any] = {}
    text = (
        "def run(_x, _n):\n"
        "    _times = [_clock()]\n"
        "    for _ in range(_n):\n"
        f"        _y = {go}\n"
        "        _times.append(_clock())\n"
        f"        _z = {come}\n"
        "        _times.append(_clock())\n"
        f"        {again}\n"
        f"    {wait}\n"
        "    _times.append(_clock())\n"
        "    return _times\n"
        "def total(_x, _n):\n"
        "    _begin = _clock()\n"
        "    for _ in range(_n):\n"
        f"        _y = {go}\n"
        f"        _z = {come}\n"
        f"        {again}\n"
        f"    {wait}\n"
        "    return _clock() - _begin\n"
    )
    exec(compile(text, "<round trip>", "exec"), namespace, scope)  # noqa: S102 - the probes' own text
    return Trips(scope["run"], scope["total"])


def _totals(trips: Trips, source: Any, iterations: int, budget_ns: int) -> list[int]:
    first = trips.total_ns(source, iterations)
    count = max(timer.MIN_SAMPLES, min(timer.MAX_SAMPLES, budget_ns // max(first, 1)))
    if first >= timer.LONG_NS:
        return [first]
    return [trips.total_ns(source, iterations) for _ in range(count)]


def _parts(times: list[int], clock_ns: float) -> dict[str, float]:
    """Mean ns of each half of a trip, of a trip at either end (median), and the wait at the end."""
    steps = [later - earlier - clock_ns for earlier, later in itertools.pairwise(times)]
    there, back, wait = steps[:-1:2], steps[1:-1:2], steps[-1]
    whole = [go + come for go, come in zip(there, back, strict=True)]
    return {
        "there_ns": max(statistics.mean(there), 0.0),
        "back_ns": max(statistics.mean(back), 0.0),
        "wait_ns": max(wait, 0.0),
        "first_ns": max(statistics.median(whole[:ENDS]), 0.0),
        "last_ns": max(statistics.median(whole[-ENDS:]), 0.0),
    }


def _loaded(
    there: Subject, trips: Trips, iterations: int, idle_ns: int, gpu: Gpu | None
) -> tuple[dict[str, float] | None, str | None]:
    """The same trips behind queued work; or why none can be queued."""
    text = there.producer.enqueue(there.spec)
    if text is None:
        device = there.spec.device
        return None, f"{there.producer.name} finishes its work on {device} before it returns"
    load = load_of(there, text, gpu, default_sides(there))
    try:
        load.finish(load.enqueue(1))
        unit_ns, queueing = ordering.calibrate(load, ordering.LENGTHS_NS[0])
        if queueing > ordering.QUEUEING_SHARE:
            return None, "the queue cannot be loaded: the call that queues work runs it"
        wanted = min(max(QUEUE_NS, LONGER * idle_ns), MOST_QUEUE_NS)
        work = max(1, round(wanted / unit_ns))
        return middle([_behind(load, trips, iterations, work) for _ in range(REPEATS)])
    except Exception as refusal:  # noqa: BLE001 - any framework, any error: it is the answer
        return None, words(refusal)


def middle(runs: list[dict[str, float]]) -> tuple[dict[str, float] | None, str | None]:
    """The run with the median first trip, of those that began behind most of their queue."""
    behind = [run for run in runs if run["queueing_ns"] < STALE * run["queued_ns"]]
    if not behind:
        return None, "the queue was empty before the first trip began"
    ordered = sorted(behind, key=lambda run: run["there_ns"] + run["back_ns"])
    return ordered[len(ordered) // 2], None


def _behind(load: Any, trips: Trips, iterations: int, work: int) -> dict[str, float]:
    """Length of such a queue, then the first trip behind one and all the others."""
    begin = time.perf_counter_ns()
    load.finish(load.enqueue(work))
    queued = time.perf_counter_ns() - begin
    begin = time.perf_counter_ns()
    array = load.enqueue(work)
    times = trips.run(array, iterations)
    load.finish(array)
    return {
        "queued_ns": float(queued),
        "queueing_ns": float(times[0] - begin),
        "there_ns": float(times[1] - times[0]),
        "back_ns": float(times[2] - times[1]),
        "others_ns": float(times[-2] - times[2]),
        "wait_ns": float(times[-1] - times[-2]),
    }
