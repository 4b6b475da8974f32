"""The measures of a result as numbers and words: what every table shows, listed once."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dlprof.probes.base import DTYPES
from dlprof.session.model import Placement, Result, TimeMeasure, Verdict


@dataclass(frozen=True)
class Found:
    """What was found of one measure; None for what is not known."""

    value: float | None = None
    ci95: tuple[float, float] | None = None
    verdict: str | None = None
    reason: str | None = None
    processes: int | None = None
    modes: int | None = None


@dataclass(frozen=True)
class Measure:
    """One measure: its name and unit, the instrument that answers it, and how it is found.

    ``unit`` is empty for a measure that is a verdict alone.
    """

    name: str
    unit: str
    instrument: str
    find: Callable[[Result], Found]
    has_interval: bool = False
    """Whether it is a median of processes, with an interval."""

    def of(self, result: Result) -> Found:
        """What was found, with the reason where nothing was."""
        found = self.find(result)
        if found.value is not None or found.verdict is not None:
            return found
        return Found(reason=found.reason or self._why_missing(result))

    def _why_missing(self, result: Result) -> str | None:
        notes = (note.partition(": ") for note in result.notes)
        failed = (reason for instrument, _, reason in notes if instrument == self.instrument)
        return next(failed, result.reason)


def peak_arrays(result: Result) -> float | None:
    """Memory at the peak beside the source, in arrays of its size.

    At the case's own size where that was seen, else at the diagnosis's.
    """
    size = math.prod(result.case.shape) * DTYPES.get(result.case.dtype, 0)
    if result.first_call_peak_bytes is not None and size > 0:
        return result.first_call_peak_bytes / size
    return result.peak_memory.evidence.arrays if result.peak_memory else None


def _at(path: str, of_copies: bool = False) -> Callable[[Result], Found]:
    """The number at a dotted path, and the reason that stands on the way.

    ``of_copies``: a view has none, and what is no copy in every process has none either.
    """

    def find(result: Result) -> Found:
        if of_copies and result.copy_cost and (why := _no_copy(result)):
            return Found(reason=why)
        part, reason = _walk(result, path)
        return Found(part, reason=reason)

    return find


def _no_copy(result: Result) -> str | None:
    owner = result.ownership.verdict if result.ownership else "unknown"
    reasons = {
        "copy": None,
        "view": "a view copies nothing",
        "varies": "it is not a copy in every process",
    }
    return reasons.get(owner, "it is not known whether it is a copy")


def _walk(part: Any, path: str) -> tuple[Any, str | None]:
    reason = None
    for name in path.split("."):
        part = None if part is None else getattr(part, name)
        reason = getattr(part, "reason", None) or reason
    return part, reason


def _verdict(path: str) -> Callable[[Result], Found]:
    def find(result: Result) -> Found:
        found: Verdict[Any] | None = _walk(result, path)[0]
        return Found(verdict=found.verdict, reason=found.evidence.reason) if found else Found()

    return find


def _peak_memory(result: Result) -> Found:
    found = _verdict("peak_memory")(result)
    return Found(peak_arrays(result), verdict=found.verdict, reason=found.reason)


def _time(measure: TimeMeasure | None, sampled: TimeMeasure | None = None) -> Found:
    """A time; ``sampled`` has its samples if that is another measure."""
    if measure is None:
        return Found()
    return Found(
        measure.median_ns,
        measure.ci95_ns,
        processes=len((sampled or measure).processes) or None,
        modes=len(measure.modes) or None,
    )


def _host_time(result: Result) -> Found:
    return _time(result.host_time)


def _ready_time(result: Result) -> Found:
    repeats = result.ready_time is not None and result.ready_time.same_as == "host_time"
    return _time(result.ready_time, result.host_time if repeats else None)


def _first_call(result: Result) -> Found:
    before = result.first_call_cases_before
    if before and result.first_call_ns is not None:
        return Found(reason=f"{before} other cases came before in its process; see --path")
    return Found(result.first_call_ns)


def _page_faults(result: Result) -> Found:
    processes = result.host_time.processes if result.host_time else []
    faults = [one.page_faults_per_call for one in processes]
    known = [fault for fault in faults if fault is not None]
    return Found(statistics.median(known)) if known else Found()


def _loop(name: str) -> Callable[[Result], Found]:
    """Time per iteration of the loop with the conversion at ``name``."""

    def find(result: Result) -> Found:
        placement = result.placement
        measure: TimeMeasure | None = getattr(placement, name.replace("-", "_"), None)
        return _time(measure) if measure else Found(reason=_refusal(placement, name))

    return find


def _refusal(placement: Placement | None, name: str) -> str | None:
    """Why a placement has no time; the plainest operation was tried last and says it best."""
    refused = placement.refused if placement is not None else {}
    words = [text for key, text in refused.items() if key == name or key.endswith(f", {name}")]
    return words[-1] if words else None


def _loop_share(result: Result) -> Found:
    share = result.placement.share if result.placement else None
    return Found(share.median, share.ci95) if share else Found()


def _break_even(result: Result) -> Found:
    placement = result.placement
    if placement is None or placement.break_even_iterations is not None:
        return _at("placement.break_even_iterations")(result)
    both = placement.in_loop is not None and placement.hoisted is not None
    return Found(reason="the loops cannot be told apart" if both else None)


NS, PER_CALL, GB_PER_S, SHARE = "ns", "1/call", "GB/s", "1"
COPY = "copy_cost"
MEASURES = (
    Measure("host_time", NS, "host_time", _host_time, has_interval=True),
    Measure("host_time_min", NS, "host_time", _at("host_time.min_ns")),
    Measure("ready_time", NS, "ready_time", _ready_time, has_interval=True),
    Measure("ready_time_min", NS, "ready_time", _at("ready_time.min_ns")),
    Measure("first_call", NS, "first_call", _first_call),
    Measure("export", NS, "phases", _at("phases.export_ns")),
    Measure("import", NS, "phases", _at("phases.import_ns")),
    Measure("release", NS, "phases", _at("phases.release_ns")),
    Measure("device_time_warm", NS, "device_time", _at("device_time.warm.median_ns")),
    Measure("device_time_cold", NS, "device_time", _at("device_time.cold.median_ns")),
    Measure("loaded_call", NS, "ordering", _at("ordering.evidence.loaded.host_ns")),
    Measure("loaded_queue", NS, "ordering", _at("ordering.evidence.loaded.queued_ns")),
    Measure("fresh_first", NS, "fresh_source", _at("fresh_source.evidence.first_ns")),
    Measure("fresh_second", NS, "fresh_source", _at("fresh_source.evidence.second_ns")),
    Measure("page_faults", PER_CALL, "host_time", _page_faults),
    Measure("bandwidth", GB_PER_S, COPY, _at("copy_cost.gb_per_s", of_copies=True)),
    Measure("memcpy_bandwidth", GB_PER_S, COPY, _at("copy_cost.memcpy_gb_per_s")),
    Measure("share_of_memcpy", SHARE, COPY, _at("copy_cost.share_of_memcpy", of_copies=True)),
    Measure("peak_memory", "arrays", "peak_memory", _peak_memory),
    Measure("ownership", "", "ownership", _verdict("ownership")),
    Measure("ordering", "", "ordering", _verdict("ordering")),
    Measure("alignment", "", "alignment", _verdict("alignment")),
    Measure("values", "", "values", _verdict("values")),
    Measure("fresh_source", "", "fresh_source", _verdict("fresh_source")),
    Measure("lifetime", "", "lifetime", _verdict("lifetime")),
    Measure("early_write", "", "early_write", _verdict("early_write")),
    Measure("trace", "", "trace", _verdict("trace")),
    Measure("step_saved", SHARE, "versus", _at("step.versus.saved.median")),
    Measure("step_reading", NS, "versus", _at("step.versus.reading.median_ns")),
    Measure("step_shape_change", NS, "shape_change", _at("step.shape_change.cost_ns")),
    Measure("step_allocations", PER_CALL, "allocations", _at("step.allocations.per_call")),
    Measure("step_reuse", "", "reuse", _verdict("step.reuse")),
    Measure("in_loop", NS, "placement", _loop("in-loop"), has_interval=True),
    Measure("hoisted", NS, "placement", _loop("hoisted"), has_interval=True),
    Measure("implicit", NS, "placement", _loop("implicit"), has_interval=True),
    Measure("loop_share", SHARE, "placement", _loop_share, has_interval=True),
    Measure("break_even", "iterations", "placement", _break_even),
)
"""In the order of the tables. A name never changes its meaning; new ones come at the end."""
