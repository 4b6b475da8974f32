"""Times on the host: until the call returns, and until the values are there.

Each answer is a :class:`~dlprof.worker.timer.Timing` of one process, in ns per call.

- ``first_call``: ``ns`` of the first conversion of the process, until the values are there;
  ``cases_before`` (cases that the worker served before). The release of the result is not included.
- ``host_time``: until the call returns.
- ``ready_time``: until the result's values are there, without the cost of a wait for a finished
  result. No answer if the consumer has nothing to wait for.
"""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from typing import Any

from dlprof.probes.generic import Generic
from dlprof.worker import timer
from dlprof.worker.subject import Subject
from dlprof.worker.turns import Turns

MOST_BYTES = 256 << 20
"""Results in flight at once hold no more than this."""


def first_call(subject: Subject, cases_before: int) -> tuple[dict[str, Any], Any]:
    """Return the answer and the result. Raises what the framework raises."""
    wait = subject.waiter()
    with timer.collector_off():
        begin = time.perf_counter_ns()
        result = subject.convert()
        wait(result)
        found = {"ns": time.perf_counter_ns() - begin, "cases_before": cases_before}
    return found, result


def make_backlog(subject: Subject) -> timer.Backlog:
    """Make the wait for work that a conversion leaves behind.

    JAX, for one, copies host memory in other threads after the call has returned. In a loop that
    does not wait, such copies pile up, hold memory, and slow the next measurement.
    """
    if not subject.wait:
        return timer.NO_BACKLOG
    wait = subject.waiter()

    def drain() -> int:
        # Queued last, so taken up last: little else is left when it is done.
        result = subject.convert()
        begin = time.perf_counter_ns()
        wait(result)
        return time.perf_counter_ns() - begin

    return timer.Backlog(drain, max(1, MOST_BYTES // max(subject.spec.size_bytes, 1)))


def host_time(subject: Subject, budget_ns: int, turns: Turns | None = None) -> dict[str, Any]:
    """Time until the call returns. The backlog is drained between the samples."""
    loop = timer.compile_loop(subject.code, subject.namespace)
    # In turns as well: a slow stretch here would stay in every sample of a short call.
    cost = timer.loop_cost_ns(turns and replace(turns, name="loop cost"))
    series = turns and replace(turns, name="host time")
    backlog = make_backlog(subject)
    return asdict(timer.sample(loop, budget_ns, cost, timer.LONG_NS, backlog, turns=series))


IDLE_SAMPLE_NS = timer.MIN_SAMPLE_NS // 4
"""The idle wait is a small part of the ready time: the clock is under 0.1 % of it."""


def ready_time(
    subject: Subject, budget_ns: int, turns: Turns | None = None
) -> dict[str, Any] | None:
    """Time until the result's values are there: the consumer's wait stands in the loop."""
    if isinstance(subject.consumer, Generic) and not subject.wait:
        subject.consumer.check_ready(subject.convert())
    if not subject.wait:
        return None
    wait = subject.wait.format(x="_result")
    namespace = subject.namespace
    loop = timer.compile_loop(f"_result = {subject.code}\n{wait}\ndel _result", namespace)
    namespace["_result"] = subject.convert()
    subject.wait_for(namespace["_result"])
    try:
        idle = idle_wait(timer.compile_loop(wait, namespace), budget_ns, turns)
    finally:
        del namespace["_result"]  # a large result might not fit next to the loop's
    return until_ready(loop, idle, budget_ns, turns)


def idle_wait(loop: timer.Loop, budget_ns: int, turns: Turns | None = None) -> timer.Timing:
    """Time a wait for a finished result."""
    series = turns and replace(turns, name="idle wait")
    return timer.sample(loop, budget_ns // 4, least_ns=IDLE_SAMPLE_NS, turns=series)


def until_ready(
    loop: timer.Loop, idle: timer.Timing, budget_ns: int, turns: Turns | None = None
) -> dict[str, Any]:
    """Time a loop that waits for each result, without the idle wait."""
    series = turns and replace(turns, name="ready time")
    return asdict(timer.sample(loop, budget_ns, idle.median_ns, timer.LONG_NS, turns=series))
