"""First call: what does the first conversion of a process cost, before any warm-up?

The answer: ``ns`` until the values are there, ``cases_before`` (cases that the worker served
before), and ``peak_bytes`` (memory needed at once) for a large array on the host. The time does
not include the release of the result.
"""

from __future__ import annotations

import time
from typing import Any

from dlprof.worker import timer
from dlprof.worker.instruments import peak_memory
from dlprof.worker.subject import Subject


def measure(subject: Subject, cases_before: int) -> tuple[dict[str, Any], Any]:
    """Return the answer and the result. Raises what the framework raises."""
    before = peak_memory.watch(subject)
    wait = subject.waiter()
    with timer.collector_off():
        begin = time.perf_counter_ns()
        result = subject.convert()
        wait(result)
        found = {"ns": time.perf_counter_ns() - begin, "cases_before": cases_before}
    if before is not None:
        found["peak_bytes"] = peak_memory.risen_bytes(before)
    return found, result
