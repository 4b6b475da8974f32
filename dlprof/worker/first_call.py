"""First call: what does the first conversion of a process cost, before any warm-up?

The worker says how many other cases it had served before: only after none of them is a first call
free of their warm-up.
"""

from __future__ import annotations

import time
from typing import Any

from dlprof.worker import peak_memory
from dlprof.worker.host_memory import resident_bytes
from dlprof.worker.subject import Subject, compile_call


def measure(subject: Subject, cases_before: int) -> dict[str, Any]:
    """Time of one conversion in ns, the wait for its result included.

    ``peak_bytes`` is how far the resident set rose meanwhile, for arrays on the host that are
    large enough to be seen in it.
    """
    wait = compile_call(subject.wait.format(x="_result") or "None", subject.namespace, "_result")
    before = _resident_before(subject)
    begin = time.perf_counter_ns()
    result = subject.convert()
    wait(result)
    found = {"ns": time.perf_counter_ns() - begin, "cases_before": cases_before}
    if before is not None:
        found["peak_bytes"] = max(peak_memory.high_water_bytes() - before, 0)
    return found


def _resident_before(subject: Subject) -> int | None:
    """The resident set as the conversion begins; None where its peak cannot or need not be seen."""
    on_host = subject.spec.device == "cpu" and subject.result_device == "cpu"
    if not on_host or subject.spec.size_bytes < peak_memory.SIZE_BYTES:
        return None
    try:
        peak_memory.give_back()
        peak_memory.reset_high_water()
        return resident_bytes()
    except OSError:
        return None
