"""Allocations: how often does one step allocate, and does its output get memory of its own?

The framework's own allocator is asked, where it counts. And outputs of several calls are kept, and
their addresses counted: as many as calls for an output that is allocated at every call, one for
a persistent buffer. What malloc has handed out meanwhile is noted too, on the host.
"""

from __future__ import annotations

import gc
from typing import Any

from dlprof.probes.base import Unsupported
from dlprof.worker import memory
from dlprof.worker.memory import malloc_meter
from dlprof.worker.step.subject import Step

CALLS = 8


def measure(step: Step) -> dict[str, Any]:
    """``per_call`` and ``bytes_per_call`` with ``how`` they were counted, or ``reason``;
    ``buffers`` of ``kept`` outputs, and ``kept_bytes`` of malloc for each.
    """
    found: dict[str, Any] = {}
    try:
        counted = step.steps.count(step.spec.device, lambda: _repeat(step))
    except Unsupported as reason:
        found["reason"] = str(reason)
    else:
        found |= {
            "per_call": counted.calls / CALLS,
            "bytes_per_call": counted.size_bytes / CALLS,
            "how": counted.how,
        }
    return found | _kept(step)


def _repeat(step: Step) -> None:
    for _ in range(CALLS):
        step.run()


def _kept(step: Step) -> dict[str, Any]:
    output = step.namespace["output"]
    if step.spec.device == "cpu":
        memory.check_more(CALLS * step.steps.to_numpy(output).nbytes)
    meter = malloc_meter() if step.spec.device == "cpu" else None
    gc.collect()
    before = meter() if meter else 0
    kept = [step.run() for _ in range(CALLS)]
    grown = meter() - before if meter else None
    addresses = {step.steps.pointer(one) for one in kept}
    return {
        "kept": CALLS,
        "buffers": None if None in addresses else len(addresses),
        "kept_bytes": None if grown is None else max(grown, 0) / CALLS,
    }
