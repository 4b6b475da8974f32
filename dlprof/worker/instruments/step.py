"""Step: what does one call of a model cost, and what becomes of its output's memory?

``host_time`` and ``ready_time`` are of one step in a loop; the other instruments have a function
each. They are asked in this order, and a failure of one costs that one alone.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from dlprof.device import gpu_state
from dlprof.device.cuda import open_gpu
from dlprof.inference.base import Steps
from dlprof.probes.base import ArraySpec, Import, Unsupported
from dlprof.protocol.messages import unknown, words
from dlprof.worker import memory, timer
from dlprof.worker.contract import FaultyProbe
from dlprof.worker.memory import malloc_meter
from dlprof.worker.step import DROP, Step, prepare

if TYPE_CHECKING:
    from dlprof.worker.channel import Answer
    from dlprof.worker.loading import WorkerState


WITH_VERDICT = ("values", "reuse")


def measure(state: WorkerState, request: dict[str, Any], answer: Answer) -> tuple[str, str | None]:
    """Measure one step; a status and a reason."""
    spec = ArraySpec(
        tuple(request["shape"]), request["dtype"], request["layout"], request["device"]
    )
    answer.stage("import")
    steps, strategy = _found(state, request)
    memory.check_room(spec)
    step = prepare(steps, strategy, spec, answer.stage)
    answer.stage("first step")
    step.first_output()
    step.build()
    step.run()
    state.cases_before += 1
    gpu = None if step.spec.device == "cpu" else open_gpu()
    trouble = gpu_state.watch(lambda: _run(step, request, answer), gpu)
    if trouble:
        return "invalid", trouble
    if "host_time" in answer.refusals:
        return "unsupported", answer.refusals["host_time"]
    return "ok", None


def _found(state: WorkerState, request: dict[str, Any]) -> tuple[Steps, Import]:
    steps = state.probe(*request["consumer"])
    if not isinstance(steps, Steps):
        raise FaultyProbe(f"{steps.name} runs no models")
    for strategy in steps.imports:
        if strategy.name == request["import"]:
            return steps, strategy
    raise FaultyProbe(f"{steps.name} has no strategy named {request['import']}")


def _run(step: Step, request: dict[str, Any], answer: Answer) -> None:
    budget: int = request["budget_ns"]
    instruments: dict[str, Callable[[], Any]] = {
        "host_time": lambda: host_time(step, budget),
        "ready_time": lambda: ready_time(step, budget),
        "versus": lambda: versus(step, budget),
        "values": lambda: step_values(step),
        "reuse": lambda: reuse(step),
        "shape_change": lambda: shape_change(step, budget),
        "allocations": lambda: allocations(step),
    }
    for name, instrument in instruments.items():
        if name in request["instruments"]:
            _take(name, instrument, answer)


def _take(name: str, instrument: Callable[[], Any], answer: Answer) -> None:
    answer.stage(name)
    try:
        found = instrument()
    except Exception as refusal:  # noqa: BLE001 - any framework, any error: it is the answer
        known = isinstance(refusal, (Unsupported, memory.TooLarge))
        reason = str(refusal) if known else words(refusal)
        if name in WITH_VERDICT:
            answer.part(name, unknown(reason))
        else:
            answer.failed(name, reason)
    else:
        if found is not None:
            answer.part(name, found)


def step_values(step: Step) -> dict[str, Any]:
    """Whether the strategy gives what the model gave at first, but for rounding."""
    import numpy as np

    first, now = (step.steps.to_numpy(one) for one in (step.namespace["output"], step.run()))
    if first.shape != now.shape or first.dtype != now.dtype:
        changed: dict[str, Any] = {"shape": [list(first.shape), list(now.shape)]}
        return {"verdict": "wrong", "evidence": {"changed": changed}}
    near = np.isclose(first, now, rtol=1e-3, atol=1e-5, equal_nan=first.dtype.kind in "fc")
    if near.all():
        return {"verdict": "ok", "evidence": {}}
    count = {"different": int(near.size - near.sum()), "of": int(near.size)}
    return {"verdict": "wrong", "evidence": {"changed": {"values": count}}}


def host_time(step: Step, budget_ns: int) -> dict[str, Any]:
    """Times in ns per step until the call returns, one process."""
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


LEAST_BUDGET_NS = 100_000_000
"""For each loop: a share is a difference, and few samples may all be disturbed."""
LONG_STEP_NS = 500_000_000
"""Of steps that take longer, one sample each says enough beside other processes."""


def versus(step: Step, budget_ns: int) -> dict[str, Any]:
    """What does a strategy save against an output that is allocated at each call?

    Both are sampled in turn in one process: alone, and in a pipeline whose consumer reads every
    value of an output before the next step starts. What a strategy does while the device works
    (allocate the next buffer) shows there, if it shows at all. Times in ns per step: ``step``,
    ``fresh``, ``reading`` and ``fresh_reading``. Of ``fresh`` itself ``reading`` alone.
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
    if max(first.values()) > LONG_STEP_NS:
        once = {name: timer.Timing(1, [float(loop(1))]) for name, loop in loops.items()}
        return {"times": {name: asdict(timing) for name, timing in once.items()}}
    budget_ns = max(budget_ns, LEAST_BUDGET_NS)
    timings = timer.sample_in_turn(loops, budget_ns, timer.loop_cost_ns())
    return {"times": {name: asdict(timing) for name, timing in timings.items()}}


CALLS = 4


def reuse(step: Step) -> dict[str, Any]:
    """Does an output change when the next call is made?

    An output is kept, and the model is called again and again on another input, which gives other
    values. ``overwritten`` says after how many calls the kept output had other values, ``kept``
    that it had not after :data:`CALLS` calls. It is ``unknown`` where the model gives the same
    output for the other input: then nothing could be seen.
    """
    other = step.another_input()
    look = step.steps.to_numpy
    kept = step.run()
    values = look(kept).tobytes()
    address = step.steps.pointer(kept)
    evidence: dict[str, Any] = {"calls": CALLS}
    for call in range(1, CALLS + 1):
        output = step.run(other)
        if call == 1:
            evidence["same_address"] = step.steps.pointer(output) == address
            if look(output).tobytes() == values:
                return unknown("the model gives the same output for another input")
        if look(kept).tobytes() != values:
            return {"verdict": "overwritten", "evidence": {**evidence, "after_calls": call}}
    return {"verdict": "kept", "evidence": evidence}


ARRAYS = 8
"""Inputs, outputs and buffers of both shapes."""


def shape_change(step: Step, budget_ns: int) -> dict[str, Any]:
    """What does it cost when the input of the next call has another shape?

    One loop changes the shape at each call, and rebuilds the buffers for it, as a program must.
    Two others stay at either shape. Times in ns per step: ``steady`` at this shape, ``other``, and
    ``changing``, two steps.

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
        if loop(1) > LONG_STEP_NS and loop(1) > LONG_STEP_NS:
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


COUNTED_CALLS = 8


def allocations(step: Step) -> dict[str, Any]:
    """How often does one step allocate, and does its output get memory of its own?

    ``per_call`` and ``bytes_per_call`` are what the framework's own allocator counts, with
    ``how``, or ``reason``. ``buffers`` are the addresses of ``kept`` outputs: as many as calls for
    an output that is allocated at every call, one for a persistent buffer. ``kept_bytes`` are what
    malloc has handed out for each.
    """
    found: dict[str, Any] = {}
    try:
        counted = step.steps.count(step.spec.device, lambda: _outputs(step))
    except Unsupported as reason:
        found["reason"] = str(reason)
    else:
        found |= {
            "per_call": counted.calls / COUNTED_CALLS,
            "bytes_per_call": counted.size_bytes / COUNTED_CALLS,
            "how": counted.how,
        }
    return found | _kept_outputs(step)


def _outputs(step: Step) -> list[Any]:
    return [step.run() for _ in range(COUNTED_CALLS)]


def _kept_outputs(step: Step) -> dict[str, Any]:
    output = step.namespace["output"]
    if step.spec.device == "cpu":
        memory.check_more(COUNTED_CALLS * step.steps.to_numpy(output).nbytes)
    meter = malloc_meter() if step.spec.device == "cpu" else None
    gc.collect()
    before = meter() if meter else 0
    kept = _outputs(step)
    grown = meter() - before if meter else None
    addresses = {step.steps.pointer(one) for one in kept}
    return {
        "kept": COUNTED_CALLS,
        "buffers": None if None in addresses else len(addresses),
        "kept_bytes": None if grown is None else max(grown, 0) / COUNTED_CALLS,
    }
