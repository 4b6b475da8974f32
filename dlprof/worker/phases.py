"""Phases: how does the time divide into export, import and release?

The clock is read between the phases of single conversions, and the clock's own cost is taken
off; medians over many conversions. A phase shorter than ``resolution_ns`` cannot be told from
nothing. For a protocol whose export is the array itself, the handing over happens inside the
import, and the export phase is empty. In a user's own statement that is in one piece, export and
import cannot be told apart, and only the release is known.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from dlprof.probes.base import written
from dlprof.worker import timer
from dlprof.worker.backlog import backlog_of
from dlprof.worker.subject import Subject

MOST = 1000
LEAST = 5


def measure(subject: Subject, host_ns: float, budget_ns: int) -> dict[str, Any]:
    """Median ns of each phase."""
    once, backlog = _compile(subject), backlog_of(subject)
    laps = []
    with timer.collector_off():
        once()
        waited = backlog.drain()
        count = int(max(LEAST, min(MOST, budget_ns / max(host_ns + waited, 1))))
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


def _compile(subject: Subject) -> Any:
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
