"""Host time: how long does the caller's thread spend in the conversion?

The statement is looped until a sample lasts 1 ms, the collector is off, the empty loop's cost is
taken off, and the result is dropped in the loop, as in user code. A conversion that returns before
its copy is made leaves that behind: it is waited for between the samples, so that a sample is that
of calls with no other work before them, and no more is in flight than
:data:`dlprof.worker.backlog.MOST_BYTES`. It cannot tell when the result is ready: that is
:mod:`dlprof.worker.ready_time`.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from dlprof.worker import timer
from dlprof.worker.backlog import backlog_of
from dlprof.worker.subject import Subject
from dlprof.worker.turns import Turns, series_of


def measure(subject: Subject, budget_ns: int, turns: Turns | None = None) -> dict[str, Any]:
    """Times in ns per call, one process."""
    loop = timer.compile_loop(subject.code, subject.namespace)
    # In turns as well: of a short call it is a part, and a slow stretch would stay in every sample.
    cost = timer.loop_cost_ns(series_of(turns, "loop cost"))
    series = series_of(turns, "host time")
    backlog = backlog_of(subject)
    return asdict(timer.sample(loop, budget_ns, cost, timer.LONG_NS, backlog, turns=series))
