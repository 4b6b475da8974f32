"""Round trip: what do hundreds of trips there and back cost in a row, and where does the time go?

``x`` goes to the other framework and comes back, and what came back goes again, as in a loop of an
application that uses both. Only the last array is waited for. Other runs, in turn with these, wait
for the result of each half: so a call that returns early pays for its own work. Behind queued work
the first trip shows who waits for it.

Each way is a view or a copy. Proof: source and result are both alive, so one address is one memory,
and two addresses that do not reach into each other are two. The same path may copy in some trips
only: what goes again may begin elsewhere in memory.

Times are in ns per trip. Why nothing can be queued, or a trip must begin anew, is in the answer.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, NamedTuple

from dlprof.device.cuda import Gpu
from dlprof.probes.base import ArraySpec, Probe, written
from dlprof.probes.capsule import alignment
from dlprof.protocol.messages import words
from dlprof.worker import memory, timer
from dlprof.worker.channel import Answer
from dlprof.worker.loading import WorkerState, path_of, spec_of
from dlprof.worker.queued_work import (
    LENGTHS_NS,
    QUEUEING_SHARE,
    RUNS_IT,
    QueuedWork,
    calibrate,
    default_sides,
    queue_of,
)
from dlprof.worker.refusal import Refusal, attempt
from dlprof.worker.source_text import compile_call, define
from dlprof.worker.subject import Subject, gpu_of

ENDS = 10
"""So many trips at either end are compared."""
QUEUE_NS = 50_000_000
"""Least length of the queue before the loaded trips."""
MOST_QUEUE_NS = 500_000_000
LONGER = 2
"""The queue is this many times as long as the trips are without it."""
REPEATS = 3
STALE = 0.5
"""A trip that begins after this share of its queue is over tells nothing."""
MOST_ALIGNMENTS = 8


def measure_case(
    state: WorkerState, request: dict[str, Any], answer: Answer
) -> tuple[str, str | None]:
    """Measure a path there and a path back, on one array; a status and a reason.

    If one way does not work, the last stage is its name: ``there`` or ``back``.
    """
    spec = spec_of(request)
    path = path_of(state, request, answer)
    path_back = path_of(state, request["back"], answer)
    answer.stage("create")
    memory.check_room(spec)
    there = path.subject(spec)
    back = path_back.subject(ArraySpec(spec.shape, spec.dtype, "C", there.result_device))
    go_once(there, back, answer.stage)
    answer.stage("round trip")
    gpu, _ = gpu_of(there)
    found = measure(there, back, request["iterations"], request["budget_ns"], gpu)
    answer.part("round_trip", found)
    return "ok", None


def go_once(there: Subject, back: Subject, stage: Callable[[str], None]) -> None:
    """One trip. ``stage`` gets the way that comes next, so that a refusal can be placed."""
    stage("there")
    middle = there.convert()
    there.wait_for(middle)
    stage("back")
    back.wait_for(compile_call(back.code, back.namespace, "x")(middle))


def measure(
    there: Subject, back: Subject, iterations: int, budget_ns: int, gpu: Gpu | None = None
) -> dict[str, Any]:
    trips, restarted = _working(there, back)
    with timer.collector_off():
        found, shortest_ns = _sampled(trips, there, back, iterations, budget_ns)
    reasons = []
    for end, ways in (("there", (there, back)), ("back", (back, there))):
        # If no work can be queued on the first framework, the other one may have a queue.
        begun = trips if end == "there" else compile_trips(*ways, restarted is None)
        loaded, why_not = _loaded(ways[0], begun, iterations, shortest_ns, gpu)
        if loaded is not None:
            break
        reasons.append(why_not)
    not_loaded = None if loaded is not None else "; ".join(map(str, reasons))
    return {
        **found,
        "restarted": restarted,
        "loaded_from": end,
        "loaded": loaded,
        "not_loaded": not_loaded,
    }


def _working(there: Subject, back: Subject) -> tuple[Trips, str | None]:
    """The trips, and why each must begin with the same array, if it must.

    What came back may be read-only, so that it cannot go again.
    """
    chained = compile_trips(there, back, chained=True)
    # Two, since the first begins with another array. They also compile what is compiled once.
    refused = attempt(lambda: chained.run(there.source, 2))
    if not isinstance(refused, Refusal):
        return chained, None
    reason = words(refused.error)
    del refused  # its traceback holds arrays
    alone = compile_trips(there, back, chained=False)
    alone.run(there.source, 2)
    return alone, reason


def _sampled(
    trips: Trips, there: Subject, back: Subject, iterations: int, budget_ns: int
) -> tuple[dict[str, Any], int]:
    """Runs with and without a clock, in turn; and the ns of the shortest one without."""
    source = there.source
    in_a_row, by_halves = Looks(there, back), Looks(there, back)
    waits_ns = trips.idle_waits_ns(source, budget_ns)
    were_others_there = timer.watch_others()
    taken: list[timer.Taken] = []
    runs = []
    count = 1
    while len(taken) < count:
        last: list[Any] = []

        def run(last: list[Any] = last) -> int:
            total_ns, _, last[:] = trips.run(source, iterations)
            return total_ns

        taken.append(timer.take(run))
        in_a_row.look(*last)
        last.clear()
        runs.append(trips.halves(source, iterations, by_halves.look))
        elapsed_ns = taken[0].elapsed_ns
        if len(taken) == 1 and elapsed_ns < timer.LONG_NS:
            fitting = budget_ns // max(elapsed_ns, 1)
            count = max(timer.MIN_SAMPLES, min(timer.MAX_SAMPLES, fitting))
    clock_ns = timer.clock_cost_ns()
    each = [parts(run, clock_ns, waits_ns) for run in runs]
    found = {
        "idle": asdict(timer.timing_of(taken, iterations, foreign=were_others_there())),
        "parts": {name: statistics.median(one[name] for one in each) for name in each[0]},
        "in_a_row": in_a_row.as_dict(),
        "by_halves": by_halves.as_dict(),
    }
    return found, min(one.elapsed_ns for one in taken)


def parts(
    marks: Sequence[Marks], clock_ns: float, waits_ns: tuple[float, float]
) -> dict[str, float]:
    """Mean ns of the parts of a trip, and the median of the trips at either end."""
    there = [one.there_ready - one.begin - 2 * clock_ns - waits_ns[0] for one in marks]
    back = [one.back_ready - one.there_ready - 2 * clock_ns - waits_ns[1] for one in marks]
    release = [one.released - one.looked - clock_ns for one in marks]
    whole = [sum(steps) for steps in zip(there, back, release, strict=True)]
    found = {
        "there_ns": statistics.mean(there),
        "back_ns": statistics.mean(back),
        "release_ns": statistics.mean(release),
        "there_call_ns": statistics.mean(m.there_called - m.begin - clock_ns for m in marks),
        "back_call_ns": statistics.mean(m.back_called - m.there_ready - clock_ns for m in marks),
        "first_ns": statistics.median(whole[:ENDS]),
        "last_ns": statistics.median(whole[-ENDS:]),
    }
    return {name: max(ns, 0.0) for name, ns in found.items()}


# Behind queued work


def _loaded(
    there: Subject, trips: Trips, iterations: int, idle_ns: int, gpu: Gpu | None
) -> tuple[dict[str, float] | None, str | None]:
    """The same trips behind queued work; or why none can be queued."""
    text = there.producer.enqueue(there.spec)
    if text is None:
        device = there.spec.device
        return None, f"{there.producer.name} finishes its work on {device} before it returns"
    queue = queue_of(there, text, gpu, default_sides(there))
    found = attempt(partial(_behind_queues, queue, trips, iterations, idle_ns))
    if isinstance(found, Refusal):
        return None, f"trips from {there.producer.name}: {words(found.error)}"
    return found


def _behind_queues(
    queue: QueuedWork, trips: Trips, iterations: int, idle_ns: int
) -> tuple[dict[str, float] | None, str | None]:
    queue.finish(queue.enqueue(1))
    unit_ns, queueing = calibrate(queue, LENGTHS_NS[0])
    if queueing > QUEUEING_SHARE:
        return None, RUNS_IT
    wanted = min(max(QUEUE_NS, LONGER * idle_ns), MOST_QUEUE_NS)
    work = max(1, round(wanted / unit_ns))
    return middle([_behind(queue, trips, iterations, work) for _ in range(REPEATS)])


def middle(runs: list[dict[str, float]]) -> tuple[dict[str, float] | None, str | None]:
    """The run with the median first trip, of those that began behind most of their queue."""
    behind = [run for run in runs if run["queueing_ns"] < STALE * run["queued_ns"]]
    if not behind:
        return None, "the queue was empty before the first trip began"
    ordered = sorted(behind, key=lambda run: run["there_ns"] + run["back_ns"])
    return ordered[len(ordered) // 2], None


def _behind(queue: QueuedWork, trips: Trips, iterations: int, work: int) -> dict[str, float]:
    """Length of such a queue, then the first trip behind one and all the others."""
    begin = time.perf_counter_ns()
    queue.finish(queue.enqueue(work))
    queued = time.perf_counter_ns() - begin
    begin = time.perf_counter_ns()
    array = queue.enqueue(work)
    first = time.perf_counter_ns()
    total_ns, times, _ = trips.run(array, iterations)
    queue.finish(array)
    there, back, others = times
    return {
        "queued_ns": float(queued),
        "queueing_ns": float(first - begin),
        "there_ns": float(there),
        "back_ns": float(back),
        "others_ns": float(others),
        "wait_ns": float(total_ns - there - back - others),
    }


# The loops


class Marks(NamedTuple):
    """The clock of one trip in ns; ``released`` is after the arrays of the trip before are gone."""

    begin: int
    there_called: int
    there_ready: int
    back_called: int
    back_ready: int
    looked: int
    released: int


@dataclass(frozen=True)
class Trips:
    """Compiled loops over a way there and a way back. They give the array that begins, the one
    that it becomes, and the one that comes back.
    """

    run: Callable[[Any, int], tuple[int, tuple[int, int, int], tuple[Any, Any, Any]]]
    """``run(x, n)``: the ns of n trips; of the first one's halves, and of the others without the
    last wait; and the last trip's arrays.
    """
    halves: Callable[[Any, int, Callable[[Any, Any, Any], None]], list[Marks]]
    """``halves(x, n, look)``: each half waited for; ``look(x, y, z)`` is called untimed."""
    idle_waits_ns: Callable[[Any, int], tuple[float, float]]
    """``idle_waits_ns(x, budget_ns)``: costs of a wait for a finished result, there and back."""


# In ``halves`` the arrays of a trip replace those of the trip before only after the last clock of
# the way back. Else the release of the old arrays, which may take longer than a view, would count.
_LOOPS = """\
def run(_x, _n):
    _begin = _clock()
    _y = {go}
    _there = _clock()
    _z = {come}
    _back = _clock()
    for _ in range(_n - 1):
        {again}
        _y = {go}
        _z = {come}
    _last = _clock()
    {wait}
    _end = _clock()
    return _end - _begin, (_there - _begin, _back - _there, _last - _back), (_x, _y, _z)


def halves(_x, _n, _look):
    _marks = []
    _y = _z = None
    for _ in range(_n):
        _begin = _clock()
        _b = {go}
        _gone = _clock()
        {wait_there}
        _there = _clock()
        _c = {come_apart}
        _come = _clock()
        {wait_back}
        _back = _clock()
        _look(_x, _b, _c)
        _looked = _clock()
        _y = _b
        _z = _c
        {again}
        del _b, _c
        _marks.append(_Marks(_begin, _gone, _there, _come, _back, _looked, _clock()))
    return _marks
"""


def compile_trips(there: Subject, back: Subject, chained: bool) -> Trips:
    """The loops; what comes back goes again if ``chained``."""
    dtype, shape = there.spec.dtype, there.spec.shape

    def text(way: Subject, name: str) -> str:
        return written(way.import_.code, written(way.export.code, name, dtype, shape), dtype, shape)

    texts = {
        "go": text(there, "_x"),
        "come": text(back, "_y"),
        "come_apart": text(back, "_b"),
        "wait": back.wait.format(x="_z") or "pass",
        "wait_there": there.wait.format(x="_b") or "pass",
        "wait_back": back.wait.format(x="_c") or "pass",
        "again": "_x = _z" if chained else "pass",
    }
    clock = time.perf_counter_ns
    namespace = {**back.namespace, **there.namespace, "_clock": clock, "_Marks": Marks}
    loops = define(_LOOPS.format(**texts), namespace, "round trip")

    def idle_waits_ns(source: Any, budget_ns: int) -> tuple[float, float]:
        _, y, z = loops["run"](source, 1)[2]
        names = {**namespace, "_y": y, "_z": z}
        waits = (there.wait.format(x="_y"), back.wait.format(x="_z"))
        go, come = (_idle_ns(wait, names, budget_ns // 8) if wait else 0.0 for wait in waits)
        return go, come

    return Trips(loops["run"], loops["halves"], idle_waits_ns)


def _idle_ns(wait: str, namespace: dict[str, Any], budget_ns: int) -> float:
    """The cost of a wait for a finished result: the first call of the loop waits for it."""
    return max(timer.sample(timer.compile_loop(wait, namespace), budget_ns).median_ns, 0.0)


# View or copy


class Looks:
    """How often each way was a view or a copy, and the alignments of its sources."""

    def __init__(self, there: Subject, back: Subject) -> None:
        self._ends = (
            (there.producer, there.spec), (there.consumer, back.spec), (back.consumer, back.spec)
        )  # fmt: skip
        self._counts = [{"views": 0, "copies": 0, "unknown": 0} for _ in range(2)]
        self._alignments: list[dict[str, set[int]]] = [defaultdict(set), defaultdict(set)]

    def look(self, *arrays: Any) -> None:
        """One trip, whose three arrays are alive and ready."""
        pairs = zip(self._ends, arrays, strict=True)
        places = [_place(*end, array) for end, array in pairs]
        for way, (source, result) in enumerate(itertools.pairwise(places)):
            kind = kind_of(source, result)
            self._counts[way][kind] += 1
            if source is not None and source.address and kind != "unknown":
                name = "view_alignments" if kind == "views" else "copy_alignments"
                self._alignments[way][name].add(alignment(source.address))

    def as_dict(self) -> dict[str, Any]:
        found = {}
        for way, name in enumerate(("there", "back")):
            known = {
                what: sorted(of)[:MOST_ALIGNMENTS] for what, of in self._alignments[way].items()
            }
            none: dict[str, list[int]] = {"view_alignments": [], "copy_alignments": []}
            found[name] = {**self._counts[way], **none, **known}
        return found


def _place(probe: Probe, spec: ArraySpec, array: Any) -> memory.Place | None:
    place = attempt(lambda: memory.place_of(probe, array, spec))
    if isinstance(place, Refusal) or not place.address or not spec.elements:
        return None
    return place


def kind_of(source: memory.Place | None, result: memory.Place | None) -> str:
    """``views``, ``copies`` or ``unknown``."""
    if source is None or result is None or source.is_near(result):
        return "unknown"
    return "views" if source.begins_with(result) else "copies"
