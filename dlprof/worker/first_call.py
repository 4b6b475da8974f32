"""First call: what does the first conversion of a process cost, before any warm-up?

The worker says how many other cases it had served before: only after none of them is a first call
free of their warm-up.
"""

from __future__ import annotations

from typing import Any

from dlprof.worker import one_call
from dlprof.worker.instruments import peak_memory
from dlprof.worker.one_call import OneCall
from dlprof.worker.subject import Subject


def measure(subject: Subject, cases_before: int) -> tuple[dict[str, Any], OneCall]:
    """Time of one conversion in ns, the wait for its result included; and the call with its result.

    ``peak_bytes`` is the memory that was needed at once meanwhile, for a large array on the host.
    """
    before = peak_memory.watch(subject)
    call = one_call.make(subject)
    found = {"ns": call.ready.samples_ns[0], "cases_before": cases_before}
    peak = {} if before is None else {"peak_bytes": peak_memory.watched(before)}
    return found | peak, call
