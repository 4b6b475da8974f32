"""Backlog: what a conversion leaves behind that returns before its work is done.

JAX's copies of host memory, for one, are made by other threads after the call has returned. In a
loop that does not wait they pile up, hold memory, and slow whatever is measured next.
"""

from __future__ import annotations

import time

from dlprof.worker import timer
from dlprof.worker.subject import Subject, compile_call

MOST_BYTES = 256 << 20
"""So many bytes of results may be in flight at once."""


def backlog_of(subject: Subject) -> timer.Backlog:
    """How to wait for it; nothing where the consumer's calls are done when they return."""
    if not subject.wait:
        return timer.NO_BACKLOG
    wait = compile_call(subject.wait.format(x="_result"), subject.namespace, "_result")

    def drain() -> int:
        # Queued last and taken up last: at most what other threads are just finishing is left then.
        result = subject.convert()
        begin = time.perf_counter_ns()
        wait(result)
        return time.perf_counter_ns() - begin

    return timer.Backlog(drain, max(1, MOST_BYTES // max(subject.spec.size_bytes, 1)))
