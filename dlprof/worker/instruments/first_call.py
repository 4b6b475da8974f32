"""First call: what does the first conversion of a process cost, before any warm-up?

The answer: ``ns`` until the values are there, ``cases_before`` (cases that the worker served
before), and ``peak_bytes`` (memory needed at once) for a large array on the host.

A conversion that takes seconds is timed once, and its result serves all other instruments. The
clock, a loop and a warm-up are nothing beside it, and the sample of another process says more than
a second sample of this one. The time does not include the release of the result.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from typing import Any

from dlprof.worker import timer
from dlprof.worker.instruments import peak_memory
from dlprof.worker.subject import Subject

VERY_LONG_NS = 20_000_000_000
"""From here on the first call of a process is as good as any other."""


@dataclass
class OneCall:
    """One conversion of ``subject``, and its result until it is dropped."""

    subject: Subject
    host: timer.Timing
    ready: timer.Timing
    result: Any

    @property
    def ready_ns(self) -> float:
        return self.ready.samples_ns[0]

    def host_time(self) -> dict[str, Any]:
        return asdict(self.host)

    def ready_time(self) -> dict[str, Any] | None:
        return {**asdict(self.ready), "idle_wait_ns": 0.0} if self.subject.wait else None

    def converted(self) -> Subject:
        """The subject, whose conversion gives this result."""
        return replace(self.subject, convert=lambda: self.result)


def make_call(subject: Subject) -> OneCall:
    """One conversion, timed. Raises what the framework raises."""
    wait = subject.waiter()
    with timer.collector_off():
        were_others_there = timer.watch_others()
        before = timer.counted()
        begin = time.perf_counter_ns()
        result = subject.convert()
        returned = time.perf_counter_ns()
        wait(result)
        ready = time.perf_counter_ns()
        now, foreign = timer.counted(), were_others_there()
    host = timer.Taken(returned - begin, *(a - b for a, b in zip(now, before, strict=True)))
    whole = replace(host, elapsed_ns=ready - begin)
    return OneCall(
        subject,
        timer.timing_of([host], 1, foreign=foreign),
        timer.timing_of([whole], 1, foreign=foreign),
        result,
    )


def serves(first: OneCall) -> OneCall | None:
    """The call that is the sample of a long conversion; None if the conversion is short.

    The first call of a process also does what is done once, for seconds at most. It is the sample
    only if it takes much longer than that.
    """
    if first.ready_ns >= VERY_LONG_NS:
        return first
    if first.ready_ns < timer.LONG_NS:
        return None
    first.result = None
    second = make_call(first.subject)
    return second if second.ready_ns >= timer.LONG_NS else None


def measure(subject: Subject, cases_before: int) -> tuple[dict[str, Any], OneCall]:
    before = peak_memory.watch(subject)
    call = make_call(subject)
    found = {"ns": call.ready_ns, "cases_before": cases_before}
    peak = {} if before is None else {"peak_bytes": peak_memory.risen_bytes(before)}
    return found | peak, call
