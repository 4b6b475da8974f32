"""Shape change: what does it cost when the input of the next call has another shape?

One loop changes the shape at each call, and rebuilds the buffers for it, as a program must. Two
others stay at either shape. The three are sampled in turn in one process; the difference is the
change. It cannot tell for a model that takes one shape only, and for steps that take long.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from dlprof.probes.base import Unsupported
from dlprof.worker import memory, timer
from dlprof.worker.step.subject import Step

ARRAYS = 8
"""Inputs, outputs and buffers of both shapes."""
LONGEST_NS = 500_000_000
LEAST_BUDGET_NS = 100_000_000
"""A cost that is a difference shows disturbed samples more than a time does."""


def measure(step: Step, budget_ns: int) -> dict[str, Any]:
    """Times in ns per step: ``steady`` at this shape, ``other``, and ``changing``, two steps.

    Raises :class:`Unsupported` where there is no other shape, and what the framework raises.
    """
    shape = other_shape(step.spec.shape)
    if step.spec.device == "cpu":
        memory.check_more(ARRAYS * step.spec.size_bytes)
    other = step.of_shape(shape)
    loops = {
        "steady": step.loop(step.turn),
        "other": other.loop(other.turn),
        "changing": changing(step, other),
    }
    for loop in loops.values():
        if loop(1) > LONGEST_NS and loop(1) > LONGEST_NS:
            raise Unsupported("a step takes too long to be repeated often enough")
    budget_ns = max(budget_ns, LEAST_BUDGET_NS)
    timings = timer.sample_in_turn(loops, budget_ns, timer.loop_cost_ns())
    return {
        "shape": list(shape),
        "times": {name: asdict(timing) for name, timing in timings.items()},
    }


def other_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Half the rows; two where there is one. Raises :class:`Unsupported` where there are none."""
    if not shape or not shape[0]:
        raise Unsupported("an input without rows has no other shape")
    return (shape[0] // 2 if shape[0] > 1 else 2, *shape[1:])


def changing(step: Step, other: Step) -> timer.Loop:
    """A loop of two steps: at the other shape, and back at the first; buffers rebuilt for each."""
    names = dict(step.namespace)  # whatever happens in the loop, the step stays as it is
    names["_inputs"] = names["x"], names["output"]
    names["_others"] = other.namespace["x"], other.namespace["output"]
    step = replace(step, namespace=names)
    return step.loop("\n".join((_changed(step, "_others"), _changed(step, "_inputs"))))


def _changed(step: Step, names: str) -> str:
    return "\n".join(filter(None, (f"x, output = {names}", step.setup, step.turn)))
