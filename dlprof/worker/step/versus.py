"""Versus: what does a strategy save against an output that is allocated at each call?

Both are sampled in turn in one process, so that what slows the machine slows both: alone, and in
a pipeline whose consumer reads every value of an output before the next step starts. What a
strategy does while the device works (allocate the next buffer) shows there, if it shows at all.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from dlprof.worker import timer
from dlprof.worker.step.subject import Step

LEAST_BUDGET_NS = 100_000_000
"""For each loop: a share is a difference, and few samples may all be disturbed."""
LONG_NS = 500_000_000
"""Of steps that take longer, one sample each says enough beside other processes."""


def measure(step: Step, budget_ns: int) -> dict[str, Any]:
    """Times in ns per step: ``step``, ``fresh``, and ``reading`` and ``fresh_reading`` with the
    output read. Of ``fresh`` itself ``reading`` alone.
    """
    loops = {"reading": step.loop(step.reading)}
    if not step.is_fresh:
        fresh = step.fresh
        # Each behind one of the other strategy: what that leaves in the caches is fair to both.
        loops = {
            "step": step.loop(step.turn),
            "fresh": fresh.loop(fresh.turn),
            **loops,
            "fresh_reading": fresh.loop(fresh.reading),
        }
    first = {name: loop(1) for name, loop in loops.items()}  # warm, and how long
    if max(first.values()) > LONG_NS:
        once = {name: timer.Timing(1, [float(loop(1))]) for name, loop in loops.items()}
        return {"times": {name: asdict(timing) for name, timing in once.items()}}
    budget_ns = max(budget_ns, LEAST_BUDGET_NS)
    timings = timer.sample_in_turn(loops, budget_ns, timer.loop_cost_ns())
    return {"times": {name: asdict(timing) for name, timing in timings.items()}}
