"""Steps of inference over the processes of a case, and back again."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

from dlprof.session import merge_time, stats
from dlprof.session.model import Share, TimeMeasure
from dlprof.session.step_record import ShapeChange, Step, Versus

Parts = Sequence[tuple[int, dict[str, Any]]]
Agree = Callable[[Sequence[dict[str, Any]]], dict[str, Any] | None]

VERSUS = ("step", "fresh", "reading", "fresh_reading")
LOOPS = ("steady", "other", "changing")


def merged(parts: Parts, agree: Agree) -> Step | None:
    """One answer from those of several rounds; ``agree`` makes one verdict of several."""
    step = {
        "versus": _versus(parts),
        "shape_change": _shape_change(parts),
        "allocations": next(
            (part["allocations"] for _, part in parts if "allocations" in part), None
        ),
        "reuse": agree([part["reuse"] for _, part in parts if "reuse" in part]),
    }
    return Step.model_validate(step) if any(step.values()) else None


def of_round(step: Step, round_: int) -> dict[str, Any]:
    """The parts of the process of ``round_``."""
    parts: dict[str, Any] = {}
    if step.versus is not None:
        times = _times(step.versus, VERSUS, round_)
        if times:
            parts["versus"] = {"times": times}
    if step.shape_change is not None:
        times = _times(step.shape_change, LOOPS, round_)
        if len(times) == len(LOOPS):
            parts["shape_change"] = {"shape": list(step.shape_change.shape), "times": times}
    return parts


def once(step: Step) -> dict[str, Any]:
    """What is held once for all processes."""
    found = {"allocations": step.allocations, "reuse": step.reuse}
    return {name: part.model_dump() for name, part in found.items() if part is not None}


def _times(part: Versus | ShapeChange, names: Sequence[str], round_: int) -> dict[str, Any]:
    found = {name: measure for name in names if (measure := getattr(part, name)) is not None}
    times = {name: _of_round(measure, round_) for name, measure in found.items()}
    return {name: time for name, time in times.items() if time}


def _of_round(measure: TimeMeasure, round_: int) -> dict[str, Any] | None:
    processes = [one for one in measure.processes if one.round == round_]
    return processes[0].model_dump(exclude={"round"}) if processes else None


def _versus(parts: Parts) -> Versus | None:
    times = [(round_, part["versus"]["times"]) for round_, part in parts if "versus" in part]
    if not times:
        return None
    return Versus(
        **{name: merge_time.merged(times, name) for name in VERSUS},
        saved=_saved(times, "step", "fresh"),
        saved_reading=_saved(times, "reading", "fresh_reading"),
    )


def _saved(times: Parts, name: str, fresh: str) -> Share | None:
    """What a strategy takes less than ``fresh``: each process compares its own two loops."""
    ratios = [
        undisturbed_ns(one[name]) / undisturbed_ns(one[fresh])
        for _, one in times
        if name in one and fresh in one and undisturbed_ns(one[fresh]) > 0
    ]
    if not ratios:
        return None
    interval = stats.student_interval(ratios)
    return Share(
        median=1 - statistics.median(ratios),
        ci95=None if interval is None else (1 - interval[1], 1 - interval[0]),
    )


def _shape_change(parts: Parts) -> ShapeChange | None:
    found = [(round_, part["shape_change"]) for round_, part in parts if "shape_change" in part]
    if not found:
        return None
    times = [(round_, one["times"]) for round_, one in found]
    measures = {name: merge_time.merged(times, name) for name in LOOPS}
    costs = [_cost_ns(one) for _, one in times]
    return ShapeChange.model_validate(
        {
            "shape": found[0][1]["shape"],
            **measures,
            "cost_ns": statistics.median(costs),
            "cost_ci95_ns": stats.mean_interval(costs),
        }
    )


def _cost_ns(times: dict[str, Any]) -> float:
    """What a change adds to a step, in one process: two changes are in one turn of that loop."""
    steady, other, changing = (undisturbed_ns(times[name]) for name in LOOPS)
    return (changing - steady - other) / 2


def undisturbed_ns(timing: dict[str, Any]) -> float:
    """The lower quartile of one process's samples, for what is compared within the process.

    Other programs only ever add time, and on a busy machine to more than half of few samples.
    What a strategy needs it needs at every step, and so in every sample.
    """
    samples = [round(sample, 2) for sample in timing["samples_ns"]]  # as the session holds them
    return float(
        samples[0]
        if len(samples) == 1
        else statistics.quantiles(samples, n=4, method="inclusive")[0]
    )
