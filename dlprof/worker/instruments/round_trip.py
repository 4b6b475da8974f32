"""Round trip: what do hundreds of trips there and back cost in a row, and where does the time go?

``x`` goes to the other framework and comes back, and what came back goes again, as in a loop of an
application that uses both. Only the last array is waited for. Other runs, in turn with these, wait
for the result of each half: so a call that returns early pays for its own work. Behind queued work
the first trip shows who waits for it.

Each way is a view or a copy. Proof: source and result are both alive, so one address is one memory,
and two addresses that do not reach into each other are two. The same path may copy in some trips
only: what goes again may begin elsewhere in memory.

The answer: ``idle`` (a timing as in :mod:`~dlprof.worker.instruments.times`, ns per trip);
``parts`` (ns per trip: ``there_ns``, ``back_ns``, ``release_ns``, ``there_call_ns``,
``back_call_ns``, and ``first_ns`` and ``last_ns`` of the trips at either end); ``in_a_row`` and
``by_halves`` (for ``there`` and ``back``: ``views``, ``copies``, ``unknown``, and the
alignments); ``restarted`` (why each trip begins with the same array); ``loaded`` (ns behind queued
work of ``loaded_from``) or ``not_loaded`` (why).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from dlprof.probes.base import WHOLE_LAYOUTS, ArraySpec, Probe, written
from dlprof.probes.capsule import alignment
from dlprof.protocol.messages import words
from dlprof.worker import timer
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
from dlprof.worker.subject import Subject

if TYPE_CHECKING:
    from dlprof.device.cuda import Gpu

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
    """The answer for runs of ``iterations`` trips."""
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

    What came back may be read-only, so that it cannot go again.
    """
    chained = compile_trips(there, back, chained=True)
    # Two, since the first begins with another array. They also compile what is compiled once.
    refused = attempt(lambda: chained.total(there.source, 2))
    if not isinstance(refused, Refusal):
        return chained, None
    reason = words(refused.error)
    del refused  # its traceback holds arrays
    alone = compile_trips(there, back, chained=False)
    alone.total(there.source, 2)
    return alone, reason


def _sampled(
    trips: Trips, there: Subject, back: Subject, iterations: int, budget_ns: int
) -> tuple[dict[str, Any], int]:
    """Runs with and without a clock, in turn; and the ns of the shortest one without."""
    source = there.source
    in_a_row, by_halves = Owners(there, back), Owners(there, back)
    waits_ns = trips.idle_waits_ns(source, budget_ns)
    were_others_there = timer.watch_others()
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
    """Mean ns of the parts of a trip, and the median of the trips at either end."""
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
    times = trips.run(array, iterations)
    queue.finish(array)
    return {
        "queued_ns": float(queued),
        "queueing_ns": float(times[0] - begin),
        "there_ns": float(times[1] - times[0]),
        "back_ns": float(times[2] - times[1]),
        "others_ns": float(times[-2] - times[2]),
        "wait_ns": float(times[-1] - times[-2]),
    }


# The loops


class Arrays(NamedTuple):
    """What one trip held: the array that went, what it became, and what came back."""

    x: Any
    y: Any
    z: Any


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
    """Compiled loops over a way there and a way back."""

    run: Callable[[Any, int], list[int]]
    """``run(x, n)``: the clock before the first of n trips, after each half, and at the end."""
    total: Callable[[Any, int], tuple[int, Arrays]]
    """``total(x, n)``: the ns of all trips, with no clock between, and the last trip's arrays."""
    halves: Callable[[Any, int, Callable[[Any, Any, Any], None]], list[Marks]]
    """``halves(x, n, look)``: each half waited for; ``look(x, y, z)`` is called untimed."""
    idle_waits_ns: Callable[[Any, int], tuple[float, float]]
    """``idle_waits_ns(x, budget_ns)``: costs of a wait for a finished result, there and back."""


# In ``halves`` the arrays of a trip replace those of the trip before only after the last clock of
# the way back. Else the release of the old arrays, which may take longer than a view, would count.
_LOOPS = """\
def run(_x, _n):
    _times = [_clock()]
    for _ in range(_n):
        _y = {go}
        _times.append(_clock())
        _z = {come}
        _times.append(_clock())
        {again}
    {wait}
    _times.append(_clock())
    return _times


def total(_x, _n):
    _z = _x
    _begin = _clock()
    for _ in range(_n):
        {again}
        _y = {go}
        _z = {come}
    {wait}
    return _clock() - _begin, _Arrays(_x, _y, _z)


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
    namespace = {
        **back.namespace,
        **there.namespace,
        "_clock": time.perf_counter_ns,
        "_Arrays": Arrays,
        "_Marks": Marks,
    }
    loops = define(_LOOPS.format(**texts), namespace, "round trip")

    def idle_waits_ns(source: Any, budget_ns: int) -> tuple[float, float]:
        held = loops["total"](source, 1)[1]._asdict()
        names = {**namespace, **{f"_{name}": array for name, array in held.items()}}
        waits = (there.wait.format(x="_y"), back.wait.format(x="_z"))
        go, come = (_idle_ns(wait, names, budget_ns // 8) if wait else 0.0 for wait in waits)
        return go, come

    return Trips(loops["run"], loops["total"], loops["halves"], idle_waits_ns)


def _idle_ns(wait: str, namespace: dict[str, Any], budget_ns: int) -> float:
    """The cost of a wait for a finished result: the first call of the loop waits for it."""
    return max(timer.sample(timer.compile_loop(wait, namespace), budget_ns).median_ns, 0.0)


# View or copy

MOST_ALIGNMENTS = 8


@dataclass
class Seen:
    """How often one way was a view or a copy, and the alignments of its sources."""

    views: int = 0
    copies: int = 0
    unknown: int = 0
    view_alignments: set[int] = field(default_factory=set)
    copy_alignments: set[int] = field(default_factory=set)

    def add(self, kind: str, address: int | None) -> None:
        if kind == "unknown" or address is None:
            self.unknown += 1
        elif kind == "view":
            self.views += 1
            self.view_alignments.add(alignment(address))
        else:
            self.copies += 1
            self.copy_alignments.add(alignment(address))

    def as_dict(self) -> dict[str, Any]:
        return {
            name: sorted(value)[:MOST_ALIGNMENTS] if isinstance(value, set) else value
            for name, value in vars(self).items()
        }


class Owners:
    """What was seen of both ways of trips that ``there`` begins and ``back`` ends."""

    def __init__(self, there: Subject, back: Subject) -> None:
        self._there, self._back = there, back
        self.there, self.back = Seen(), Seen()

    def look(self, x: Any, y: Any, z: Any) -> None:
        """One trip, whose three arrays are alive and ready."""
        there, back = self._there, self._back
        begin = _Memory(there.producer, x, there.spec)
        middle = _Memory(there.consumer, y, back.spec)
        end = _Memory(back.consumer, z, back.spec)
        self.there.add(kind_of(begin, middle), begin.address)
        self.back.add(kind_of(middle, end), middle.address)

    def as_dict(self) -> dict[str, Any]:
        return {"there": self.there.as_dict(), "back": self.back.as_dict()}


class _Memory:
    """Where an array is."""

    def __init__(self, probe: Probe, array: Any, spec: ArraySpec) -> None:
        self.address: int | None = None
        self.device = ""
        place = attempt(lambda: (probe.pointer(array), probe.device(array)))
        if spec.elements and not isinstance(place, Refusal):
            self.address, self.device = place
        # The widest layout, every second element, spans twice the array's bytes.
        self.reach = spec.size_bytes * (1 if spec.layout in WHOLE_LAYOUTS else 2)


def kind_of(source: _Memory, result: _Memory) -> str:
    """``view``, ``copy`` or ``unknown``."""
    if not source.address or not result.address:
        return "unknown"
    if source.device != result.device:
        return "copy"
    if source.address == result.address:
        return "view"
    apart = abs(source.address - result.address)
    return "unknown" if apart < max(source.reach, result.reach) else "copy"
