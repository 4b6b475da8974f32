"""Ready time: how long until the result's values are really there?

An import that returns early must not look fast, so the consumer's wait stands in the loop. The
cost of waiting for a result that is already there is measured in the same process and taken off.
Where the consumer has nothing to wait for (its ``wait`` text is empty), the result is complete
when the call returns and the host time is the ready time.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from dlprof.worker import timer
from dlprof.worker.foreign import Foreign
from dlprof.worker.subject import Subject
from dlprof.worker.turns import Turns, series_of

IDLE_SAMPLE_NS = timer.MIN_SAMPLE_NS // 4
"""The wait is a small part of what it is taken off from: the clock is under 0.1 % of so short a
sample."""

NOTABLE = 0.05
"""A wait that is a smaller part of the time may be wrong by half."""


def measure(subject: Subject, budget_ns: int, turns: Turns | None = None) -> dict[str, Any] | None:
    """Times in ns per call, one process; None where the host time is the ready time."""
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
