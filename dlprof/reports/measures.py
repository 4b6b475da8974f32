"""The measures of a result as numbers and words: what every table shows, listed once."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import Any

from dlprof.probes.base import DTYPES
from dlprof.session.model import Result, Share, TimeMeasure, Verdict


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
    """A measure, its unit, and where it stands in a result. A verdict alone has no unit."""

    name: str
    unit: str
    place: str
    has_interval: bool = False
    """Whether it is a median of processes, with an interval."""

    def of(self, result: Result) -> Found:
        """What was found, with the reason where nothing was."""
        found, reason = _at(result, self.place)
        if self.name in ONLY and not ONLY[self.name](result):
            found = None
        if self.name == "peak_memory":
            return _peak_memory(result)
        if self.name == "page_faults" and found is not None:
            faults = [one.page_faults_per_call for one in found.processes]
            known = [fault for fault in faults if fault is not None]
            found = statistics.median(known) if known else None
        if isinstance(found, Verdict):
            return Found(verdict=found.verdict, reason=found.evidence.reason)
        if isinstance(found, Share):
            return Found(found.median, found.ci95)
        if isinstance(found, TimeMeasure):
            host = result.host_time
            repeats = found.same_as == "host_time" and host is not None
            sampled = host.processes if repeats and host is not None else found.processes
            ci95, modes = found.ci95_ns, len(found.modes) or None
            return Found(found.median_ns, ci95, processes=len(sampled) or None, modes=modes)
        if found is None:
            instrument = self.place.partition(".")[0]
            notes = (note.partition(": ") for note in result.notes)
            failed = (why for name, _, why in notes if name == instrument)
            return Found(reason=reason or next(failed, result.reason))
        return Found(found)


def _at(part: Any, place: str) -> tuple[Any, str | None]:
    """What stands at a dotted place, and the reason that stands on the way."""
    reason = None
    for name in place.split("."):
        part = None if part is None else getattr(part, name)
        reason = getattr(part, "reason", None) or reason
    return part, reason


def _peak_memory(result: Result) -> Found:
    """At the case's own size where that was seen, else at the diagnosis's."""
    peak = result.peak_memory
    size = math.prod(result.case.shape) * DTYPES.get(result.case.dtype, 0)
    arrays = peak.evidence.arrays if peak else None
    if result.first_call_peak_bytes is not None and size > 0:
        arrays = result.first_call_peak_bytes / size
    word, reason = (peak.verdict, peak.evidence.reason) if peak else (None, result.reason)
    return Found(arrays, verdict=word, reason=reason)


def _is_copy(result: Result) -> bool:
    return result.ownership is not None and result.ownership.verdict == "copy"


ONLY = {
    "first_call": lambda result: not result.first_call_cases_before,
    "bandwidth": _is_copy,
    "share_of_memcpy": _is_copy,
}
"""Of which results a measure means what its name says."""
NS, PER_CALL, GB_PER_S, SHARE = "ns", "1/call", "GB/s", "1"
MEASURES = (
    Measure("host_time", NS, "host_time", has_interval=True),
    Measure("host_time_min", NS, "host_time.min_ns"),
    Measure("ready_time", NS, "ready_time", has_interval=True),
    Measure("ready_time_min", NS, "ready_time.min_ns"),
    Measure("first_call", NS, "first_call_ns"),
    Measure("export", NS, "phases.export_ns"),
    Measure("import", NS, "phases.import_ns"),
    Measure("release", NS, "phases.release_ns"),
    Measure("device_time_warm", NS, "device_time.warm.median_ns"),
    Measure("device_time_cold", NS, "device_time.cold.median_ns"),
    Measure("loaded_call", NS, "ordering.evidence.loaded.host_ns"),
    Measure("loaded_queue", NS, "ordering.evidence.loaded.queued_ns"),
    Measure("fresh_first", NS, "fresh_source.evidence.first_ns"),
    Measure("fresh_second", NS, "fresh_source.evidence.second_ns"),
    Measure("page_faults", PER_CALL, "host_time"),
    Measure("bandwidth", GB_PER_S, "copy_cost.gb_per_s"),
    Measure("memcpy_bandwidth", GB_PER_S, "copy_cost.memcpy_gb_per_s"),
    Measure("share_of_memcpy", SHARE, "copy_cost.share_of_memcpy"),
    Measure("peak_memory", "arrays", "peak_memory"),
    Measure("ownership", "", "ownership"),
    Measure("ordering", "", "ordering"),
    Measure("alignment", "", "alignment"),
    Measure("values", "", "values"),
    Measure("fresh_source", "", "fresh_source"),
    Measure("lifetime", "", "lifetime"),
    Measure("early_write", "", "early_write"),
    Measure("trace", "", "trace"),
    Measure("step_saved", SHARE, "step.versus.saved.median"),
    Measure("step_reading", NS, "step.versus.reading.median_ns"),
    Measure("step_shape_change", NS, "step.shape_change.cost_ns"),
    Measure("step_allocations", PER_CALL, "step.allocations.per_call"),
    Measure("step_reuse", "", "step.reuse"),
    Measure("in_loop", NS, "placement.in_loop", has_interval=True),
    Measure("hoisted", NS, "placement.hoisted", has_interval=True),
    Measure("implicit", NS, "placement.implicit", has_interval=True),
    Measure("loop_share", SHARE, "placement.share", has_interval=True),
    Measure("break_even", "iterations", "placement.break_even_iterations"),
)
"""In the order of the tables. A name never changes its meaning; new ones come at the end."""
