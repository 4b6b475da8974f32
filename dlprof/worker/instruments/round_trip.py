"""Round trip: what do hundreds of trips there and back cost in a row, and where does the time go?

``x`` goes to the other framework and comes back, and what came back goes again, as in a loop of an
application that uses both. Only the last is waited for. Where the time goes is told by other runs,
in turn with those: they wait for the result of each half, so that a call that returns early is
charged for its own work, and look whether each way was a view or a copy. Of the runs without a
clock the last trip is looked at. The first and the last ten of a run tell whether the trips grow
dearer on the way. Behind queued work of known length the first trip shows who waits for it: then
that time is the work's, not the conversion's. It cannot tell what waits where the producer's calls
run their work themselves.

Proof of view or copy: source and result of a way are both alive when they are looked at, so that
one address is one memory, and two addresses in which the one array does not reach into the other
are two. Whether the same path copies may change from trip to trip: what goes again may begin
elsewhere in memory than the first array did. It cannot tell for an array without elements, where a
framework does not say where its array begins, or where two arrays overlap.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from dlprof.probes.base import WHOLE_LAYOUTS, ArraySpec, Probe, written
from dlprof.probes.capsule import alignment
from dlprof.protocol.messages import words
from dlprof.worker import timer
from dlprof.worker.load import (
    LENGTHS_NS,
    QUEUEING_SHARE,
    RUNS_IT,
    calibrate,
    default_sides,
    load_of,
)
from dlprof.worker.subject import Subject, compile_call

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
        unit_ns, queueing = calibrate(load, LENGTHS_NS[0])
        if queueing > QUEUEING_SHARE:
            return None, RUNS_IT
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
    """``run(x, n)`` makes n trips from ``x`` and reads the clock before the first, after each half,
    and when the last array is there. ``total(x, n)`` gives the ns of all, with no clock between,
    and the arrays of the last. ``halves(x, n, look)`` waits for the result of each half and calls
    ``look(x, y, z)`` in each trip, outside of what is timed. ``idle_waits_ns(x, budget_ns)`` is
    what waiting for a result that is there costs, there and back.
    """

    run: Callable[[Any, int], list[int]]
    total: Callable[[Any, int], tuple[int, Arrays]]
    halves: Callable[[Any, int, Callable[[Any, Any, Any], None]], list[Marks]]
    idle_waits_ns: Callable[[Any, int], tuple[float, float]]


def compile_trips(there: Subject, back: Subject, chained: bool) -> Trips:
    """Loops over the way there and the way back; what comes back goes again if ``chained``."""
    dtype, shape = there.spec.dtype, there.spec.shape
    texts = {
        "go": _text(there, "_x", dtype, shape),
        "come": _text(back, "_y", dtype, shape),
        "come_apart": _text(back, "_b", dtype, shape),
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
    scope: dict[str, Any] = {}
    text = _LOOPS.format(**texts)
    exec(compile(text, "<round trip>", "exec"), namespace, scope)  # noqa: S102 - the probes' own text

    def idle_waits_ns(source: Any, budget_ns: int) -> tuple[float, float]:
        held = scope["total"](source, 1)[1]._asdict()
        names = {**namespace, **{f"_{name}": array for name, array in held.items()}}
        waits = (there.wait.format(x="_y"), back.wait.format(x="_z"))
        go, come = (_idle_ns(wait, names, budget_ns // 8) if wait else 0.0 for wait in waits)
        return go, come

    return Trips(scope["run"], scope["total"], scope["halves"], idle_waits_ns)


def _text(way: Subject, name: str, dtype: str, shape: object) -> str:
    return written(way.import_.code, written(way.export.code, name, dtype, shape), dtype, shape)


def _idle_ns(wait: str, namespace: dict[str, Any], budget_ns: int) -> float:
    """What a wait costs for a result that is there: the first call of the loop waits for it."""
    return max(timer.sample(timer.compile_loop(wait, namespace), budget_ns).median_ns, 0.0)


# In ``halves`` what a trip made replaces what the one before made only after the last clock of its
# way back: else the release of the old arrays, which may take longer than a view, would be in it.
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


MOST_ALIGNMENTS = 8


@dataclass
class Seen:
    """How often one way was a view or a copy, and at multiples of which bytes its sources began."""

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
            "views": self.views,
            "copies": self.copies,
            "unknown": self.unknown,
            "view_alignments": sorted(self.view_alignments)[:MOST_ALIGNMENTS],
            "copy_alignments": sorted(self.copy_alignments)[:MOST_ALIGNMENTS],
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
        self.address, self.device = _place(probe, array) if spec.elements else (None, "")
        # The widest layout, every second element, spans twice the array's bytes.
        self.reach = spec.size_bytes * (1 if spec.layout in WHOLE_LAYOUTS else 2)


def _place(probe: Probe, array: Any) -> tuple[int | None, str]:
    try:
        return probe.pointer(array), probe.device(array)
    except Exception:  # noqa: BLE001 - any framework, any error: it costs the look, not the times
        return None, ""


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
