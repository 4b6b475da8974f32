"""Serve one step: load the model, run its instruments, send each answer as it comes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dlprof.device import gpu_state
from dlprof.inference.base import Steps
from dlprof.probes.base import ArraySpec, Import, Unsupported
from dlprof.worker import memory
from dlprof.worker.declared import FaultyProbe
from dlprof.worker.step import allocations, latency, reuse, shape_change, versus
from dlprof.worker.step.subject import Step, prepare
from dlprof.worker.words import words

if TYPE_CHECKING:
    from dlprof.worker.channel import Answer
    from dlprof.worker.state import WorkerState

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
    return _watched(step, lambda: _run(step, request, answer), answer)


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
        "host_time": lambda: latency.host_time(step, budget),
        "ready_time": lambda: latency.ready_time(step, budget),
        "versus": lambda: versus.measure(step, budget),
        "values": lambda: values(step),
        "reuse": lambda: reuse.measure(step),
        "shape_change": lambda: shape_change.measure(step, budget),
        "allocations": lambda: allocations.measure(step),
    }
    for name, instrument in instruments.items():
        if name in request["instruments"]:
            _take(name, instrument, answer)


def _take(name: str, instrument: Callable[[], Any], answer: Answer) -> None:
    """Run one instrument; a failure of one costs that one alone."""
    answer.stage(name)
    try:
        found = instrument()
    except (Unsupported, memory.TooLarge) as reason:
        _refused(name, str(reason), answer)
    except Exception as refusal:  # noqa: BLE001 - any framework, any error: it is the answer
        _refused(name, words(refusal), answer)
    else:
        if found is not None:
            answer.part(name, found)


def _refused(name: str, reason: str, answer: Answer) -> None:
    if name in WITH_VERDICT:
        answer.part(name, {"verdict": "unknown", "evidence": {"reason": reason}})
    else:
        answer.failed(name, reason)


def values(step: Step) -> dict[str, Any]:
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


def _watched(step: Step, run: Callable[[], None], answer: Answer) -> tuple[str, str | None]:
    """``invalid`` where the GPU was throttled or used by somebody else meanwhile."""
    if step.spec.device == "cpu":
        run()
    else:
        from dlprof.device.cuda import open_gpu

        gpu, before = open_gpu(), gpu_state.read()
        run()
        trouble = gpu_state.trouble(before, gpu_state.read(), gpu.properties.uuid)
        if trouble:
            return "invalid", trouble
    if "host_time" in answer.refusals:
        return "unsupported", answer.refusals["host_time"]
    return "ok", None
