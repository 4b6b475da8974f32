"""Times over the processes of a case: medians of medians, intervals, modes, and shares."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dlprof.runner import stats
from dlprof.runner.session import (
    Mode,
    Placement,
    ProcessSamples,
    ShapeChange,
    Share,
    Step,
    TimeMeasure,
    Versus,
)

Parts = Sequence[tuple[int, dict[str, Any]]]
"""Round and parts of each answer, or round and one part."""
Agree = Callable[[Sequence[dict[str, Any]]], dict[str, Any] | None]

PLACEMENTS = {"in-loop": "in_loop", "hoisted": "hoisted", "implicit": "implicit"}
LEAST_ITERATIONS = 2
"""In a single iteration there is nothing to save."""
DEVICE_SERIES = ("warm", "cold")
VERSUS = ("step", "fresh", "reading", "fresh_reading")
LOOPS = ("steady", "other", "changing")


def merge_time(parts: Parts, name: str) -> TimeMeasure | None:
    """The time called ``name`` of several rounds; None if no process took it."""
    processes = [
        ProcessSamples(
            round=round_,
            loops=part[name]["loops"],
            samples_ns=[round(sample, 2) for sample in part[name]["samples_ns"]],
            page_faults_per_call=part[name].get("page_faults_per_call"),
            disturbed=part[name].get("disturbed"),
        )
        for round_, part in parts
        if name in part
    ]
    if not processes:
        return None
    medians = [statistics.median(process.samples_ns) for process in processes]
    found = stats.estimate(medians, [process.page_faults_per_call for process in processes])
    return TimeMeasure(
        median_ns=found.median_ns,
        ci95_ns=found.ci95_ns,
        min_ns=min(min(process.samples_ns) for process in processes),
        processes=processes,
        modes=[_mode(mode, processes, medians) for mode in found.modes]
        if len(found.modes) > 1
        else [],
    )


def _mode(
    mode: tuple[int, ...], processes: Sequence[ProcessSamples], medians: Sequence[float]
) -> Mode:
    faults = [processes[index].page_faults_per_call for index in mode]
    counted = [fault for fault in faults if fault is not None]
    return Mode(
        median_ns=statistics.median(medians[index] for index in mode),
        rounds=[processes[index].round for index in mode],
        page_faults_per_call=statistics.median(counted) if counted else None,
    )


def merge_device_time(parts: Parts) -> dict[str, Any] | None:
    """One device time of several rounds; the newest answer if no process could tell it.

    ``warm`` and ``cold`` have the median of the process medians, their 95 % interval and the
    samples by round. ``reason`` says why some processes could not tell it.
    """
    found = [(round_, part["device_time"]) for round_, part in parts if "device_time" in part]
    if not found:
        return None
    known = [(round_, one) for round_, one in found if one["verdict"] == "ok"]
    if not known:
        return dict(found[-1][1])
    reasons = [one["reason"] for _, one in found if one["verdict"] != "ok"]
    series = {name: _device_series(known, name) for name in DEVICE_SERIES}
    return {**known[-1][1], "reason": reasons[-1] if reasons else None, **series}


def _device_series(known: Parts, name: str) -> dict[str, Any]:
    medians = [statistics.median(one[name]["samples_ns"]) for _, one in known]
    return {
        "median_ns": statistics.median(medians),
        "ci95_ns": stats.student_interval(medians),
        "processes": [
            {"round": round_, "samples_ns": one[name]["samples_ns"]} for round_, one in known
        ],
    }


def merge_placement(parts: Parts, convert: TimeMeasure | None) -> Placement | None:
    """A conversion's place in a loop; ``convert`` is the time of the conversion alone."""
    found = [(round_, part["placement"]) for round_, part in parts if "placement" in part]
    if not found:
        return None
    times = [(round_, one["times"]) for round_, one in found]
    measures = {field: merge_time(times, name) for name, field in PLACEMENTS.items()}
    loops = (
        (_median_ns(one["hoisted"]), _median_ns(one["in-loop"]))
        for _, one in times
        if "hoisted" in one and "in-loop" in one
    )
    share = saved_share(loops)
    return Placement(
        use=found[-1][1]["use"],
        **measures,
        share=share,
        break_even_iterations=break_even(convert, measures["in_loop"], measures["hoisted"], share),
        refused={name: words for _, one in found for name, words in one["refused"].items()},
    )


def break_even(
    convert: TimeMeasure | None,
    in_loop: TimeMeasure | None,
    hoisted: TimeMeasure | None,
    share: Share | None,
) -> int | None:
    """The number of iterations from which on converting before the loop takes less time.

    None if the two loops cannot be told apart: the interval of the conversion's ``share`` reaches
    down to nothing, there is none, or it is so wide that the share is no number.
    """
    if convert is None or in_loop is None or hoisted is None:
        return None
    if share is None or share.ci95 is None or not share.is_known or share.ci95[0] <= 0:
        return None
    saved_ns = in_loop.median_ns - hoisted.median_ns
    if saved_ns <= 0:
        return None
    return max(LEAST_ITERATIONS, math.floor(convert.median_ns / saved_ns) + 1)


def saved_share(times_ns: Iterable[tuple[float, float]]) -> Share | None:
    """The part of the second time that the first one saves: each process compares its own two."""
    ratios = [less / whole for less, whole in times_ns if whole > 0]
    if not ratios:
        return None
    interval = stats.student_interval(ratios)
    return Share(
        median=1 - statistics.median(ratios),
        ci95=None if interval is None else (1 - interval[1], 1 - interval[0]),
    )


def merge_step(parts: Parts, agree: Agree) -> Step | None:
    """A step of inference; ``agree`` makes one verdict of several."""
    step = {
        "versus": _versus(parts),
        "shape_change": _shape_change(parts),
        "allocations": next(
            (part["allocations"] for _, part in parts if "allocations" in part), None
        ),
        "reuse": agree([part["reuse"] for _, part in parts if "reuse" in part]),
    }
    return Step.model_validate(step) if any(step.values()) else None


def _versus(parts: Parts) -> Versus | None:
    times = [(round_, part["versus"]["times"]) for round_, part in parts if "versus" in part]
    if not times:
        return None
    return Versus(
        **{name: merge_time(times, name) for name in VERSUS},
        saved=_saved(times, "step", "fresh"),
        saved_reading=_saved(times, "reading", "fresh_reading"),
    )


def _saved(times: Parts, name: str, fresh: str) -> Share | None:
    return saved_share(
        (undisturbed_ns(one[name]), undisturbed_ns(one[fresh]))
        for _, one in times
        if name in one and fresh in one
    )


def _shape_change(parts: Parts) -> ShapeChange | None:
    found = [(round_, part["shape_change"]) for round_, part in parts if "shape_change" in part]
    if not found:
        return None
    times = [(round_, one["times"]) for round_, one in found]
    measures = {name: merge_time(times, name) for name in LOOPS}
    costs = [_change_ns(one) for _, one in times]
    return ShapeChange.model_validate(
        {
            "shape": found[0][1]["shape"],
            **measures,
            "cost_ns": statistics.median(costs),
            "cost_ci95_ns": stats.mean_interval(costs),
        }
    )


def _change_ns(times: dict[str, Any]) -> float:
    """What a change of shape adds to a step, in one process. One turn of the loop has two."""
    steady, other, changing = (undisturbed_ns(times[name]) for name in LOOPS)
    return (changing - steady - other) / 2


def undisturbed_ns(timing: dict[str, Any]) -> float:
    """The lower quartile of one process's samples, for comparisons within the process.

    Other programs only ever add time, and on a busy machine to more than half of few samples.
    A strategy needs its own time at every step, and so in every sample.
    """
    samples = [round(sample, 2) for sample in timing["samples_ns"]]  # as the session holds them
    if len(samples) == 1:
        return float(samples[0])
    return float(statistics.quantiles(samples, n=4, method="inclusive")[0])


def _median_ns(timing: dict[str, Any]) -> float:
    return float(statistics.median(timing["samples_ns"]))
