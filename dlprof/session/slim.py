"""A result without what takes most of its memory: what rules and reports read stays."""

from __future__ import annotations

import statistics
from typing import Any

from dlprof.session.evidence import HandshakeEvent
from dlprof.session.model import Placement, ProcessSamples, Result, TimeMeasure, Verdict
from dlprof.session.step_record import ShapeChange, Step, Versus


def slim(result: Result) -> Result:
    """The result without points and capsules, and with the median of each process instead of its
    samples: what rules need, in little memory.
    """
    lighter: dict[str, Any] = {
        name: _medians_only(measure)
        for name in ("host_time", "ready_time")
        if (measure := getattr(result, name)) is not None
    }
    if result.ordering is not None:
        evidence = result.ordering.evidence.model_copy(update={"points": None, "by_streams": None})
        lighter["ordering"] = result.ordering.model_copy(update={"evidence": evidence})
    lighter["handshake"] = [
        HandshakeEvent(call=event.call, outcome=event.outcome, ns=event.ns)
        for event in result.handshake
    ]
    if result.placement is not None:
        lighter["placement"] = without_samples(result.placement)
    for name in ("phases", "device_time", "copy_cost", "output", "recipe", "step"):
        lighter[name] = None
    return result.model_copy(update=lighter)


TEXTS = ("create", "code")
"""What evidence says in source text, from which reproducers are made."""


def without_texts(result: Result) -> Result:
    """The result without source text: no script can be made of it."""
    verdicts = {
        name: type(part).model_validate(_untold(part.model_dump()))
        for name in type(result).model_fields
        if isinstance(part := getattr(result, name), Verdict)
    }
    return result.model_copy(update={**verdicts, "recipe": None})


def _untold(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _untold(part) for name, part in value.items() if name not in TEXTS}
    return [_untold(part) for part in value] if isinstance(value, list | tuple) else value


def _median_only(process: ProcessSamples) -> ProcessSamples:
    median_ns = statistics.median(process.samples_ns) if process.samples_ns else None
    return process.model_copy(update={"samples_ns": [] if median_ns is None else [median_ns]})


def _medians_only(measure: TimeMeasure) -> TimeMeasure:
    return measure.model_copy(
        update={"processes": [_median_only(process) for process in measure.processes]}
    )


def step_without_samples(step: Step) -> Step:
    """The step with the median of each process instead of its samples."""
    parts = {"versus": step.versus, "shape_change": step.shape_change}
    return step.model_copy(
        update={
            name: part and part.model_copy(update=_lighter(part)) for name, part in parts.items()
        }
    )


def _lighter(part: Versus | ShapeChange) -> dict[str, TimeMeasure]:
    measures = {name: getattr(part, name) for name in type(part).model_fields}
    return {
        name: _medians_only(measure)
        for name, measure in measures.items()
        if isinstance(measure, TimeMeasure)
    }


def without_samples(placement: Placement) -> Placement:
    """The placement with the median of each process instead of its samples."""
    times = {
        name: _medians_only(measure)
        for name in ("in_loop", "hoisted", "implicit")
        if (measure := getattr(placement, name)) is not None
    }
    return placement.model_copy(update=times)
