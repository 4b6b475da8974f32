"""Step: what does one call of a model cost, and does its output keep its memory?

A strategy says how the output's memory is made. A failure of one part costs that part alone. Times
are in ns per step.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from dlprof.device import gpu_state
from dlprof.device.cuda import open_gpu
from dlprof.inference.base import FRESH, Steps
from dlprof.probes.base import ArraySpec, Import, Unsupported
from dlprof.protocol.messages import unknown, verdict
from dlprof.worker import memory, timer
from dlprof.worker.channel import Reply
from dlprof.worker.instruments import times
from dlprof.worker.loading import WorkerState, find_way, read_spec
from dlprof.worker.refusal import FaultyProbe
from dlprof.worker.source_text import execute

OTHER_SEED = 1
DROP = "del y"


@dataclass(frozen=True)
class Step:
    """A strategy with its buffers made, for the input ``x`` of ``namespace``.

    ``namespace`` also holds the model, and ``output``: the first output for ``x``.
    """

    steps: Steps
    strategy: Import
    spec: ArraySpec
    namespace: dict[str, Any] = field(repr=False)

    @property
    def code(self) -> str:
        return self.strategy.code.format(x="x")

    @property
    def turn(self) -> str:
        """One step, its output waited for and dropped."""
        return "\n".join(line for line in (self.code, self.wait, DROP) if line)

    @property
    def reading(self) -> str:
        """One step, every value of its output read, and the output dropped."""
        return "\n".join((self.code, self.steps.read(self.strategy.name), DROP))

    @property
    def wait(self) -> str:
        """Source text that returns when ``y`` is there; empty if the call itself waits."""
        return self.steps.wait(self.spec.device).format(x="y")

    def run(self, x: Any = None) -> Any:
        """Run one step on ``x``, or on the input; return the output when it is there."""
        names = self.namespace
        original = names["x"]
        try:
            names["x"] = original if x is None else x
            execute(self.code, names, "step")
            execute(self.wait, names, "step")
            return names.pop("y")
        finally:
            names["x"] = original

    def another_input(self, seed: int = 0) -> Any:
        """Make an input of the same shape; ``seed`` gives other values."""
        names = dict(self.namespace)
        execute(self.steps.create(self.spec, seed), names, "step")
        return names["x"]

    def loop(self, statement: str) -> timer.Loop:
        """Compile a timed loop over ``statement`` in the names of the namespace."""
        return timer.compile_loop(make_global(statement), self.namespace)

    def reshaped(self, shape: tuple[int, ...]) -> Step:
        """Return the same step for an input of another shape, with its own buffers."""
        step = replace(self, spec=replace(self.spec, shape=shape), namespace=dict(self.namespace))
        step.namespace["x"] = step.another_input()
        step.make_buffers()
        return step

    @property
    def fresh(self) -> Step:
        """Return the same step with a new output for each call."""
        strategy = find_way(self.steps, self.steps.imports, FRESH)
        return replace(self, strategy=strategy, namespace=dict(self.namespace))

    def make_buffers(self) -> None:
        """Set ``output``, which shows what a buffer must look like, and make the buffers.

        Raises :class:`Unsupported` for an output that is no single tensor.
        """
        self.namespace["output"] = self.fresh.run()
        self.steps.check_output(self.namespace["output"])
        execute(self.strategy.setup, self.namespace, "step")


def prepare(
    steps: Steps, strategy: Import, spec: ArraySpec, announce: Callable[[str], None]
) -> Step:
    """Make the input and load the model.

    Raises :class:`Unsupported` for a model without one input and one output, and what the
    framework raises.
    """
    if spec.layout != "C":
        raise Unsupported(f"a step takes a contiguous input, and not one of layout {spec.layout}")
    namespace: dict[str, Any] = {}
    execute(steps.setup, namespace, "step")
    announce("create")
    steps.check_strategy(strategy.name, spec.device)
    steps.ready(spec.device)
    execute(steps.create(spec), namespace, "step")
    execute(steps.load(spec), namespace, "step")
    steps.check(namespace)
    return Step(steps, strategy, spec, namespace)


def make_global(statement: str) -> str:
    """Return ``statement`` for the body of a function, with all its names global.

    A step may set names for the next one, such as the next buffer.
    """
    names = {
        node.id
        for node in ast.walk(ast.parse(statement))
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    }
    return f"global {', '.join(sorted(names))}\n{statement}" if names else statement


def measure(state: WorkerState, request: dict[str, Any], reply: Reply) -> tuple[str, str | None]:
    spec = read_spec(request)
    reply.stage("import")
    steps = state.probe(*request["consumer"])
    if not isinstance(steps, Steps):
        raise FaultyProbe(f"{steps.name} runs no models")
    strategy = find_way(steps, steps.imports, request["import"])
    memory.check_room(spec)
    step = prepare(steps, strategy, spec, reply.stage)
    reply.stage("first step")
    step.make_buffers()
    step.run()
    state.cases_before += 1
    budget: int = request["budget_ns"]
    instruments: dict[str, Callable[[], Any]] = {
        "host_time": partial(host_time, step, budget),
        "ready_time": partial(ready_time, step, budget),
        "versus": partial(versus, step, budget),
        "values": partial(step_values, step),
        "reuse": partial(reuse, step),
        "shape_change": partial(shape_change, step, budget),
        "allocations": partial(allocations, step),
    }

    def run() -> None:
        for name, instrument in instruments.items():
            reply.take(name, instrument)

    trouble = gpu_state.watch(run, None if spec.device == "cpu" else open_gpu())
    if trouble:
        return "invalid", trouble
    if "host_time" in reply.failures:
        return "unsupported", reply.failures["host_time"]
    return "ok", None


def step_values(step: Step) -> dict[str, Any]:
    """Whether the strategy gives what the model gave at first, except for rounding."""
    import numpy as np

    first, now = (step.steps.to_numpy(array) for array in (step.namespace["output"], step.run()))
    if first.shape != now.shape or first.dtype != now.dtype:
        changed: dict[str, Any] = {"shape": [list(first.shape), list(now.shape)]}
        return verdict("wrong", {"changed": changed})
    near = np.isclose(first, now, rtol=1e-3, atol=1e-5, equal_nan=first.dtype.kind in "fc")
    if near.all():
        return verdict("ok", {})
    count = {"different": int(near.size - near.sum()), "of": int(near.size)}
    return verdict("wrong", {"changed": {"values": count}})


def host_time(step: Step, budget_ns: int) -> dict[str, Any]:
    """Time steps until the call returns, in ns."""
    loop = step.loop(f"{step.code}\n{DROP}")
    return asdict(timer.sample(loop, budget_ns, timer.loop_cost_ns(), timer.LONG_NS))


def ready_time(step: Step, budget_ns: int) -> dict[str, Any] | None:
    """Time steps until the output is there, in ns; None if it is when the call returns."""
    if not step.wait:
        return None
    step.namespace["y"] = step.run()
    idle = times.idle_wait(step.loop(step.wait), budget_ns)
    del step.namespace["y"]
    return times.until_ready(step.loop(step.turn), idle, budget_ns)


def versus(step: Step, budget_ns: int) -> dict[str, Any]:
    """Compare a strategy with an output that is allocated at each call.

    Both run alone (``step``, ``fresh``). The strategy also runs in a pipeline whose consumer reads
    every value before the next step starts (``reading``); ``fresh`` has that time alone.
    """
    loops = {"reading": step.loop(step.reading)}
    if step.strategy.name != FRESH:
        fresh = step.fresh
        # Each behind a loop of the other strategy: both then find caches of the other.
        loops = {
            "step": step.loop(step.turn),
            "fresh": fresh.loop(fresh.turn),
            **loops,
        }
    return {"times": _in_turn(loops, budget_ns)}


def _in_turn(loops: dict[str, timer.Loop], budget_ns: int) -> dict[str, Any]:
    for loop in loops.values():
        loop(1)  # warm
    timings = timer.sample_in_turn(loops, budget_ns, timer.loop_cost_ns())
    return {name: asdict(timing) for name, timing in timings.items()}


CALLS = 4


def reuse(step: Step) -> dict[str, Any]:
    """Whether an output changes when :data:`CALLS` more calls are made, on another input."""
    other_input = step.another_input(seed=OTHER_SEED)
    read = step.steps.to_numpy
    first_output = step.run()
    values = read(first_output).tobytes()
    for call in range(1, CALLS + 1):
        output = step.run(other_input)
        if call == 1 and read(output).tobytes() == values:
            return unknown("the model gives the same output for another input")
        if read(first_output).tobytes() != values:
            return verdict("overwritten", {"after_calls": call})
    return verdict("kept", {})


def shape_change(step: Step, budget_ns: int) -> dict[str, Any]:
    """Time calls whose input has another shape than the call before.

    One loop changes the shape at each call and rebuilds the buffers, as a program must
    (``changing``, two steps). Two others stay at either shape (``steady``, ``other``).
    """
    rows, *columns = step.spec.shape or (0,)
    if not rows:
        raise Unsupported("an input without rows has no other shape")
    shape = (rows // 2 if rows > 1 else 2, *columns)
    reshaped = step.reshaped(shape)
    loops = {
        "steady": step.loop(step.turn),
        "other": reshaped.loop(reshaped.turn),
        "changing": changing(step, reshaped),
    }
    return {"shape": list(shape), "times": _in_turn(loops, budget_ns)}


def changing(step: Step, reshaped: Step) -> timer.Loop:
    """Compile a loop of two steps: at the other shape, and back, with buffers rebuilt."""
    names = dict(step.namespace)  # the step stays as it is
    names["_inputs"] = names["x"], names["output"]
    names["_others"] = reshaped.namespace["x"], reshaped.namespace["output"]
    changes = [
        "\n".join(filter(None, (f"x, output = {inputs}", step.strategy.setup, step.turn)))
        for inputs in ("_others", "_inputs")
    ]
    return replace(step, namespace=names).loop("\n".join(changes))


COUNTED_CALLS = 8


def allocations(step: Step) -> dict[str, Any]:
    """Count allocations of one step, and whether its output gets new memory.

    The framework's own allocator counts. Then outputs are kept: an output that is allocated at
    every call has as many addresses as calls, a persistent buffer has one.
    """

    def outputs() -> list[Any]:
        return [step.run() for _ in range(COUNTED_CALLS)]

    found: dict[str, Any] = {"kept": COUNTED_CALLS}
    with suppress(Unsupported):  # the framework does not count
        found["per_call"] = step.steps.count(step.spec.device, outputs) / COUNTED_CALLS
    arrays = outputs()
    addresses = {step.steps.pointer(array) for array in arrays}
    return found | {"buffers": None if None in addresses else len(addresses)}
