"""First call: what does the first conversion of a process cost, before any warm-up?

The worker says how many other cases it had served before: only after none of them is a first call
free of their warm-up.

A conversion that takes seconds is timed once, and its result serves everything else. The clock, a
loop and a warm-up are nothing beside it, and another process's sample says more than a second one
of this. The result is kept until values and ownership were looked at, so that such a case does not
take minutes: what it takes to give its memory back is not in the time, as it is in that of a loop.
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
    """A conversion of ``subject``, and its result as long as nobody drops it."""

    subject: Subject
    host: timer.Timing
    ready: timer.Timing
    result: Any

    @property
    def ready_ns(self) -> float:
        return self.ready.samples_ns[0]

    def host_time(self) -> dict[str, Any]:
        """Time in ns until the call returned."""
        return asdict(self.host)

    def ready_time(self) -> dict[str, Any] | None:
        """Time in ns until the values were there; None where the host time is the ready time."""
        return {**asdict(self.ready), "idle_wait_ns": 0.0} if self.subject.wait else None

    def converted(self) -> Subject:
        """The subject, whose conversion gives the result that is there."""
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
    """The call that is the sample of a long conversion; None if the conversion is not long.

    The first call of a process is the sample only where what is done once for all, seconds at
    most, is nothing beside it. Raises what the framework raises.
    """
    if first.ready_ns >= VERY_LONG_NS:
        return first
    if first.ready_ns < timer.LONG_NS:
        return None
    first.result = None
    second = make_call(first.subject)
    return second if second.ready_ns >= timer.LONG_NS else None


def measure(subject: Subject, cases_before: int) -> tuple[dict[str, Any], OneCall]:
    """Time of one conversion in ns, the wait for its result included; and the call with its result.

    ``peak_bytes`` is the memory that was needed at once meanwhile, for a large array on the host.
    """
    before = peak_memory.watch(subject)
    call = make_call(subject)
    found = {"ns": call.ready.samples_ns[0], "cases_before": cases_before}
    peak = {} if before is None else {"peak_bytes": peak_memory.risen_bytes(before)}
    return found | peak, call
