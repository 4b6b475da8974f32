"""One call: a conversion that takes seconds is timed once, and its result serves everything else.

The clock, a loop and a warm-up are nothing beside it, and another process's sample says more than
a second one of this. The result is kept until values and ownership were looked at, so that such a
case does not take minutes.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from typing import Any

from dlprof.worker import timer
from dlprof.worker.subject import Subject


@dataclass
class OneCall:
    """A conversion of ``subject``, and its result as long as nobody drops it."""

    subject: Subject
    host: timer.Timing
    ready: timer.Timing
    result: Any

    def host_time(self) -> dict[str, Any]:
        """Time in ns until the call returned."""
        return asdict(self.host)

    def ready_time(self) -> dict[str, Any] | None:
        """Time in ns until the values were there; None where the host time is the ready time."""
        return {**asdict(self.ready), "idle_wait_ns": 0.0} if self.subject.wait else None

    def converted(self) -> Subject:
        """The subject, whose conversion gives the result that is there."""
        return replace(self.subject, convert=lambda: self.result)


def make(subject: Subject) -> OneCall | None:
    """One conversion; None if it is too short to be timed once. Raises what the framework raises.

    The caller knows already that the first one was long, which compiling may have been.
    """
    with timer.collector_off():
        faults = timer.page_faults()
        begin = time.perf_counter_ns()
        result = subject.convert()
        returned = time.perf_counter_ns()
        subject.wait_for(result)
        ready = time.perf_counter_ns()
        faults = timer.page_faults() - faults
    if ready - begin < timer.LONG_NS:
        return None
    host = timer.Timing(1, [float(returned - begin)], float(faults))
    return OneCall(subject, host, timer.Timing(1, [float(ready - begin)]), result)
