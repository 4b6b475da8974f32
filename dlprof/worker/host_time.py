"""Host time: how long does the caller's thread spend in the conversion?

The statement is looped until a sample lasts 1 ms, the collector is off, the empty loop's cost is
taken off, and the result is dropped in the loop, as in user code. It cannot tell when the result
is ready: that is :mod:`dlprof.worker.ready_time`.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from dlprof.worker import timer
from dlprof.worker.subject import Subject


def measure(subject: Subject, budget_ns: int) -> dict[str, Any]:
    """Times in ns per call, one process."""
    loop = timer.compile_loop(subject.code, subject.namespace)
    return asdict(timer.sample(loop, budget_ns, timer.loop_cost_ns(), timer.LONG_NS))
