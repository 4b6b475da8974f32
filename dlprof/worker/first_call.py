"""First call: what does the first conversion of a process cost, before any warm-up?

The worker says how many other cases it had served before: only after none of them is a first call
free of their warm-up.
"""

from __future__ import annotations

import time
from typing import Any

from dlprof.worker import peak_memory
from dlprof.worker.subject import Subject, compile_call


def measure(subject: Subject, cases_before: int) -> dict[str, Any]:
    """Time of one conversion in ns, the wait for its result included.

    ``peak_bytes`` is the memory that was needed at once meanwhile, for a large array on the host.
    """
    wait = compile_call(subject.wait.format(x="_result") or "None", subject.namespace, "_result")
    before = peak_memory.watch(subject)
    begin = time.perf_counter_ns()
    result = subject.convert()
    wait(result)
    found = {"ns": time.perf_counter_ns() - begin, "cases_before": cases_before}
    return found | ({} if before is None else {"peak_bytes": peak_memory.watched(subject, before)})
