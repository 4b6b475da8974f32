"""Times on the host: until the call returns, until the values are there, and by phases.

The statement is looped until a sample lasts 1 ms, the collector is off, the empty loop's cost is
taken off, and the result is dropped in the loop, as in user code.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import asdict, replace
from typing import Any

from dlprof.probes.base import written
from dlprof.worker import timer
from dlprof.worker.foreign import Foreign
from dlprof.worker.subject import Subject
from dlprof.worker.turns import Turns, series_of

MOST_BYTES = 256 << 20
"""So many bytes of results may be in flight at once."""


def backlog_of(subject: Subject) -> timer.Backlog:
    """How to wait for what a conversion leaves behind that returns before its work is done.

    JAX's copies of host memory, for one, are made by other threads after the call has returned. In
    a loop that does not wait they pile up, hold memory, and slow whatever is measured next.
    """
    if not subject.wait:
        return timer.NO_BACKLOG
    wait = subject.waiter()

    def drain() -> int:
        # Queued last and taken up last: at most what other threads are just finishing is left then.
        result = subject.convert()
        begin = time.perf_counter_ns()
        wait(result)
        return time.perf_counter_ns() - begin

    return timer.Backlog(drain, max(1, MOST_BYTES // max(subject.spec.size_bytes, 1)))


def host_time(subject: Subject, budget_ns: int, turns: Turns | None = None) -> dict[str, Any]:
    """Times in ns until the call returns, one process.

    What is left behind is waited for between the samples, so that a sample is that of calls with
    no other work before them, and no more is in flight than :data:`MOST_BYTES`.
    """
    loop = timer.compile_loop(subject.code, subject.namespace)
    # In turns as well: of a short call it is a part, and a slow stretch would stay in every sample.
    cost = timer.loop_cost_ns(series_of(turns, "loop cost"))
    series = series_of(turns, "host time")
    backlog = backlog_of(subject)
    return asdict(timer.sample(loop, budget_ns, cost, timer.LONG_NS, backlog, turns=series))


IDLE_SAMPLE_NS = timer.MIN_SAMPLE_NS // 4
"""The wait is a small part of what it is taken off from: the clock is under 0.1 % of so short a
sample."""

NOTABLE = 0.05
"""A wait that is a smaller part of the time may be wrong by half."""


def ready_time(
    subject: Subject, budget_ns: int, turns: Turns | None = None
) -> dict[str, Any] | None:
    """Times in ns until the result's values are there, one process.

    An import that returns early must not look fast, so the consumer's wait stands in the loop. The
    cost of waiting for a result that is already there is taken off. None where the consumer has
    nothing to wait for: then the host time is the ready time.
    """
    if isinstance(subject.consumer, Foreign) and not subject.import_.returns_array:
        subject.consumer.check_ready(subject.convert())
    if not subject.wait:
        return None
    wait = subject.wait.format(x="_result")
    namespace = subject.namespace
    loop = timer.compile_loop(f"_result = {subject.code}\n{wait}\ndel _result", namespace)
    namespace["_result"] = subject.convert()
    subject.wait_for(namespace["_result"])  # else the wait below would not be an idle one
    idle_wait = timer.compile_loop(wait, namespace)
    try:
        idle = timer.sample(
            idle_wait,
            budget_ns // 4,
            least_ns=IDLE_SAMPLE_NS,
            turns=series_of(turns, "idle wait"),
        )
        del namespace["_result"]  # a large one more would not fit beside those of the loop
        series = series_of(turns, "ready time")
        timing = timer.sample(loop, budget_ns, idle.median_ns, timer.LONG_NS, turns=series)
    finally:
        namespace.pop("_result", None)
    if idle.is_disturbed and idle.median_ns > NOTABLE * timing.median_ns:
        # What is taken off is too much, and the samples of the loop know nothing of it.
        timing = replace(timing, disturbed=max(timing.disturbed or 0.0, idle.disturbed or 0.0))
    return {**asdict(timing), "idle_wait_ns": idle.median_ns}


MOST_LAPS = 1000
LEAST_LAPS = 5


def phases(subject: Subject, host_ns: float, budget_ns: int) -> dict[str, Any]:
    """Median ns of export, import and release.

    The clock is read between the phases of single conversions, and its own cost is taken off. A
    phase shorter than ``resolution_ns`` cannot be told from nothing. For a protocol whose export is
    the array itself, the handing over happens inside the import, and the export phase is empty. In
    a user's own statement that is in one piece, only the release is known.
    """
    once, backlog = _compile_phases(subject), backlog_of(subject)
    laps = []
    with timer.collector_off():
        once()
        waited = backlog.drain()
        count = int(max(LEAST_LAPS, min(MOST_LAPS, budget_ns / max(host_ns + waited, 1))))
        for _ in range(count):
            laps.append(once())
            backlog.drain()
    cost = timer.clock_cost_ns()
    names = ("export_ns", "import_ns", "release_ns")
    medians: dict[str, float | None] = {
        name: statistics.median(times) - cost
        for name, times in zip(names, zip(*laps, strict=True), strict=True)
    }
    if subject.is_one_array and subject.export.code == "{x}":
        medians |= {"export_ns": None, "import_ns": None}
    return {**medians, "count": count, "resolution_ns": cost}


def _compile_phases(subject: Subject) -> Any:
    spec = subject.spec
    export = written(subject.export.code, "x", spec.dtype, spec.shape)
    import_ = written(subject.import_.code, "_handed", spec.dtype, spec.shape)
    text = (
        "def once(_clock=_clock):\n"
        "    _begin = _clock()\n"
        f"    _handed = {export}\n"
        "    _exported = _clock()\n"
        f"    _result = {import_}\n"
        # In user code the handed-over object is a temporary that dies when the import returns.
        "    del _handed\n"
        "    _imported = _clock()\n"
        "    del _result\n"
        "    _released = _clock()\n"
        "    return _exported - _begin, _imported - _exported, _released - _imported\n"
    )
    namespace = subject.namespace
    namespace["_clock"] = time.perf_counter_ns
    scope: dict[str, Any] = {}
    exec(compile(text, "<dlprof phases>", "exec"), namespace, scope)  # noqa: S102 - the probes' own text
    return scope["once"]
