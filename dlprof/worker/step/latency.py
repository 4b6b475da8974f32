"""Latency: how long does one step take, from the call until the output is there?

The statement stands in the loop of :mod:`dlprof.worker.timer`, and the output is dropped in the
loop. ``host_time`` is until the call returns, ``ready_time`` until the output is there, without
the cost of waiting for one that is there already.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from dlprof.worker import timer
from dlprof.worker.step.subject import DROP, Step


def host_time(step: Step, budget_ns: int) -> dict[str, Any]:
    """Times in ns per step, one process."""
    loop = step.loop(f"{step.code}\n{DROP}")
    return asdict(timer.sample(loop, budget_ns, timer.loop_cost_ns(), timer.LONG_NS))


def ready_time(step: Step, budget_ns: int) -> dict[str, Any] | None:
    """Times in ns per step; None where the output is there when the call returns."""
    if not step.wait:
        return None
    step.namespace["y"] = step.run()
    idle_ns = timer.sample(step.loop(step.wait), budget_ns // 4).median_ns
    del step.namespace["y"]
    loop = step.loop(step.turn)
    timing = timer.sample(loop, budget_ns, idle_ns, timer.LONG_NS)
    return {**asdict(timing), "idle_wait_ns": idle_ns}
