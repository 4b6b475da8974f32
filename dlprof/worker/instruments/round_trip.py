"""Round trip: what do hundreds of trips there and back cost in a row, and where does the time go?

``x`` goes to the other framework and comes back, and what came back goes again, as in a loop of an
application that uses both. Only the last is waited for. Where the time goes is told by other
runs, in turn with those: they wait for the result of each half, so that a call that returns early
is charged for its own work, and look whether each way was a view or a copy. Of the runs without a
clock the last trip is looked at. Whether the trips grow dearer on the way is told by the first and
the last ten of a run. Behind queued work of known length the first trip shows who waits for it:
then that time is the work's, not the conversion's.

It cannot tell what waits where the producer's calls run their work themselves.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from dlprof.worker import others, timer
from dlprof.worker.instruments import ordering
from dlprof.worker.load import default_sides, load_of
from dlprof.worker.subject import Subject, compile_call
from dlprof.worker.trip_loop import Marks, Trips, compile_trips
from dlprof.worker.trip_owner import Owners
from dlprof.worker.words import words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dlprof.device.cuda import Gpu

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


def go_once(there: Subject, back: Subject, stage: Callable[[str], None]) -> None:
    """One trip; ``stage`` is told which way comes next, so that who refuses is known.

    Raises what the framework raises.
    """
    stage("there")
    middle = there.convert()
    there.wait_for(middle)
    stage("back")
    back.wait_for(compile_call(back.code, back.namespace, "x")(middle))


def measure(
    there: Subject, back: Subject, iterations: int, budget_ns: int, gpu: Gpu | None = None
) -> dict[str, Any]:
    """Times in ns per trip, one process; ``back`` is a subject of the way back."""
    trips, restarted = _working(there, back)
    with timer.collector_off():
        found, shortest = _sampled(trips, there, back, iterations, budget_ns)
    found["restarted"] = restarted
    loaded, why_not = _loaded(there, trips, iterations, shortest, gpu)
    if loaded is not None:
        return {**found, "loaded_from": "there", "loaded": loaded, "not_loaded": None}
    # The other framework may have a queue.
    trips = compile_trips(back, there, restarted is None)
    loaded, why_too = _loaded(back, trips, iterations, shortest, gpu)
    why_not = f"{why_not}; {why_too}" if loaded is None else None
    return {**found, "loaded_from": "back", "loaded": loaded, "not_loaded": why_not}


def _working(there: Subject, back: Subject) -> tuple[Trips, str | None]:
    """The trips, and why each must begin with the same array, if it must.

    What came back may be read-only, and refused by the way there.
    """
    chained = compile_trips(there, back, chained=True)
    try:
        # Two, since the first begins with another array. They also compile what is compiled once.
        chained.total(there.source, 2)
    except Exception as refusal:  # noqa: BLE001 - any framework, any error: it is the answer
        alone = compile_trips(there, back, chained=False)
        alone.total(there.source, 2)
        return alone, words(refusal)
    return chained, None


def _sampled(
    trips: Trips, there: Subject, back: Subject, iterations: int, budget_ns: int
) -> tuple[dict[str, Any], int]:
    """Runs with and without a clock, in turn; and the shortest of those without."""
    source = there.source
    in_a_row, by_halves = Owners(there, back), Owners(there, back)
    waits_ns = trips.idle_waits_ns(source, budget_ns)
    were_others_there = others.watch()
    taken: list[timer.Taken] = []
    runs = []

    def turn() -> None:
        last: list[Any] = []

        def run() -> int:
            total_ns, last[:] = trips.total(source, iterations)
            return total_ns

        taken.append(timer.take(run))
        in_a_row.look(*last)
        last.clear()
        runs.append(trips.halves(source, iterations, by_halves.look))

    turn()
    first_ns = taken[0].elapsed_ns
    if first_ns < timer.LONG_NS:
        count = max(timer.MIN_SAMPLES, min(timer.MAX_SAMPLES, budget_ns // max(first_ns, 1)))
        for _ in range(1, count):
            turn()
    clock_ns = timer.clock_cost_ns()
    found = {
        "idle": asdict(timer.timing_of(taken, iterations, foreign=were_others_there())),
        "parts": middle_of([parts(run, clock_ns, waits_ns) for run in runs]),
        "in_a_row": in_a_row.as_dict(),
        "by_halves": by_halves.as_dict(),
    }
    return found, min(one.elapsed_ns for one in taken)


def parts(
    marks: Sequence[Marks], clock_ns: float, waits_ns: tuple[float, float]
) -> dict[str, float]:
    """Mean ns of each half of a trip until its result is ready and until its call returns, of the
    release of what the trip before made, and of a trip at either end (median).
    """
    go, come = waits_ns
    there = [one.there_ready - one.begin - 2 * clock_ns - go for one in marks]
    back = [one.back_ready - one.there_ready - 2 * clock_ns - come for one in marks]
    release = [one.released - one.looked - clock_ns for one in marks]
    whole = [sum(steps) for steps in zip(there, back, release, strict=True)]
    calls = [one.there_called - one.begin - clock_ns for one in marks]
    calls_back = [one.back_called - one.there_ready - clock_ns for one in marks]
    found = {
        "there_ns": statistics.mean(there),
        "back_ns": statistics.mean(back),
        "release_ns": statistics.mean(release),
        "there_call_ns": statistics.mean(calls),
        "back_call_ns": statistics.mean(calls_back),
        "first_ns": statistics.median(whole[:ENDS]),
        "last_ns": statistics.median(whole[-ENDS:]),
    }
    return {name: max(ns, 0.0) for name, ns in found.items()}


def middle_of(runs: Sequence[dict[str, float]]) -> dict[str, float]:
    """The median of the runs, for each part."""
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


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
        return None, f"trips from {there.producer.name}: {words(refusal)}"


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
