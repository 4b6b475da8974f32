"""The measures of a result as plain numbers and words: what every table shows, listed once.

What a session says of them is anybody's: a number that is none is missing, never an error.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dlprof.probes.base import DTYPES
from dlprof.session.evidence import DeviceTime, Series
from dlprof.session.model import Placement, Result, TimeMeasure, Verdict

LARGEST = 1e300
"""What is larger is not a number that anybody measured."""


@dataclass(frozen=True)
class Found:
    """What was found of one measure; None for what is not known."""

    value: float | None = None
    ci95: tuple[float, float] | None = None
    verdict: str | None = None
    reason: str | None = None
    processes: int | None = None
    modes: int | None = None

    @property
    def is_missing(self) -> bool:
        return self.value is None and self.verdict is None


MISSING = Found()


@dataclass(frozen=True)
class Measure:
    """One measure: its name and unit, the instrument that answers it, and where it stands.

    ``unit`` is empty for a measure that is a verdict alone.
    """

    name: str
    unit: str
    instrument: str
    find: Callable[[Result], Found]

    def of(self, result: Result) -> Found:
        """What was found, with the reason where nothing was."""
        found = self.find(result)
        if not found.is_missing:
            return found
        return Found(reason=found.reason or _why_missing(result, self.instrument))


def number(thing: Any) -> float | None:
    """``thing`` if it is a finite number."""
    if isinstance(thing, bool) or not isinstance(thing, (int, float)):
        return None
    # Not math.isfinite: an integer of JSON may have more digits than a float can hold.
    return float(thing) if -LARGEST <= thing <= LARGEST else None


def _why_missing(result: Result, instrument: str) -> str | None:
    notes = (note for note in result.notes if note.startswith(f"{instrument}: "))
    return next((note.partition(": ")[2] for note in notes), result.reason)


def _time(name: str) -> Callable[[Result], Found]:
    def find(result: Result) -> Found:
        measure: TimeMeasure | None = getattr(result, name)
        if measure is None:
            return MISSING
        return Found(
            value=measure.median_ns,
            ci95=measure.ci95_ns,
            processes=len(_sampled(result, measure).processes) or None,
            modes=len(measure.modes) or None,
        )

    return find


def _least(name: str) -> Callable[[Result], Found]:
    def find(result: Result) -> Found:
        measure: TimeMeasure | None = getattr(result, name)
        return MISSING if measure is None else Found(measure.min_ns)

    return find


def _sampled(result: Result, measure: TimeMeasure) -> TimeMeasure:
    """The measure that has the samples: a ready time may repeat the host time."""
    repeats = measure.same_as == "host_time" and result.host_time is not None
    return result.host_time if repeats and result.host_time is not None else measure


def _page_faults(result: Result) -> Found:
    processes = result.host_time.processes if result.host_time else []
    faults = [one.page_faults_per_call for one in processes]
    known = [fault for fault in faults if fault is not None]
    return Found(statistics.median(known)) if known else MISSING


def _attribute(part: str, name: str) -> Callable[[Result], Found]:
    return lambda result: Found(number(getattr(getattr(result, part), name, None)))


def _of_copying(name: str) -> Callable[[Result], Found]:
    """A speed of copying: none of a result that is no copy, or not in every process."""

    def find(result: Result) -> Found:
        owner = None if result.ownership is None else result.ownership.verdict
        if result.copy_cost is None or owner == "copy":
            return _attribute("copy_cost", name)(result)
        return Found(reason=NO_COPY.get(owner, "it is not known whether it is a copy"))

    return find


NO_COPY: dict[str | None, str] = {
    "view": "a view copies nothing",
    "varies": "it is not a copy in every process",
}


def _first_call(result: Result) -> Found:
    before = result.first_call_cases_before
    if before and result.first_call_ns is not None:
        return Found(reason=f"{before} other cases came before in its process; see --first-calls")
    return Found(number(result.first_call_ns))


def _device_time(temperature: str) -> Callable[[Result], Found]:
    def find(result: Result) -> Found:
        found = result.device_time or DeviceTime()
        series: Series | None = getattr(found, temperature)
        return Found(series.median_ns if series else None, reason=found.reason)

    return find


def _verdict(name: str, evidence: tuple[str, ...] = ()) -> Callable[[Result], Found]:
    """The verdict of an instrument, with the number at ``evidence`` if that is given."""

    def find(result: Result) -> Found:
        found: Verdict[Any] | None = getattr(result, name)
        if found is None:
            return MISSING
        value: Any = found.evidence.model_dump()
        for key in evidence:
            value = value.get(key) if isinstance(value, dict) else None
        return Found(
            value=number(value) if evidence else None,
            verdict=found.verdict,
            reason=_text(found.evidence.get("reason")),
        )

    return find


def _evidence(name: str, *keys: str) -> Callable[[Result], Found]:
    """The number alone."""
    whole = _verdict(name, keys)

    def find(result: Result) -> Found:
        found = whole(result)
        return Found(found.value, reason=found.reason)

    return find


def _step(*names: str) -> Callable[[Result], Found]:
    """A number of a step of inference."""

    def find(result: Result) -> Found:
        found: Any = result.step
        for name in names:
            found = getattr(found, name, None)
        return Found(number(found))

    return find


MOST_BYTES = 1 << 63
"""More no memory holds, nor a float with its digits."""


def peak_arrays(result: Result) -> float | None:
    """Memory at the peak beside the source, in arrays of its size.

    At the case's own size where that was seen, else at the diagnosis's.
    """
    size = math.prod(result.case.shape) * DTYPES.get(result.case.dtype, 0)
    seen = number(result.first_call_peak_bytes)
    if seen is not None and 0 < size <= MOST_BYTES:
        return seen / size
    return number(result.peak_memory.evidence.get("arrays")) if result.peak_memory else None


def _peak_memory(result: Result) -> Found:
    found = _verdict("peak_memory")(result)
    return Found(peak_arrays(result), verdict=found.verdict, reason=found.reason)


def _loop(field: str, name: str) -> Callable[[Result], Found]:
    """Time per iteration of the loop with the conversion at ``name``."""

    def find(result: Result) -> Found:
        placement = result.placement
        measure: TimeMeasure | None = getattr(placement, field, None)
        if placement is None or measure is None:
            return Found(reason=refusal(placement, name))
        return Found(
            measure.median_ns,
            measure.ci95_ns,
            processes=len(measure.processes) or None,
            modes=len(measure.modes) or None,
        )

    return find


def _reuse(result: Result) -> Found:
    found = result.step.reuse if result.step else None
    if found is None:
        return MISSING
    return Found(verdict=found.verdict, reason=_text(found.evidence.get("reason")))


def refusal(placement: Placement | None, name: str) -> str | None:
    """Why a placement has no time; the plainest operation was tried last and says it best."""
    refused = placement.refused if placement is not None else {}
    words = [text for key, text in refused.items() if key == name or key.endswith(f", {name}")]
    return words[-1] if words else None


def _loop_share(result: Result) -> Found:
    share = result.placement.share if result.placement is not None else None
    return MISSING if share is None else Found(share.median, share.ci95)


def _break_even(result: Result) -> Found:
    placement = result.placement
    if placement is None or placement.break_even_iterations is not None:
        return Found(number(placement.break_even_iterations if placement else None))
    both = placement.in_loop is not None and placement.hoisted is not None
    return Found(reason="the loops cannot be told apart" if both else None)


def _text(thing: Any) -> str | None:
    return thing if isinstance(thing, str) else None


NS = "ns"
MEASURES = (
    Measure("host_time", NS, "host_time", _time("host_time")),
    Measure("host_time_min", NS, "host_time", _least("host_time")),
    Measure("ready_time", NS, "ready_time", _time("ready_time")),
    Measure("ready_time_min", NS, "ready_time", _least("ready_time")),
    Measure("first_call", NS, "first_call", _first_call),
    Measure("export", NS, "phases", _attribute("phases", "export_ns")),
    Measure("import", NS, "phases", _attribute("phases", "import_ns")),
    Measure("release", NS, "phases", _attribute("phases", "release_ns")),
    Measure("device_time_warm", NS, "device_time", _device_time("warm")),
    Measure("device_time_cold", NS, "device_time", _device_time("cold")),
    Measure("loaded_call", NS, "ordering", _evidence("ordering", "loaded", "host_ns")),
    Measure("loaded_queue", NS, "ordering", _evidence("ordering", "loaded", "queued_ns")),
    Measure("fresh_first", NS, "fresh_source", _evidence("fresh_source", "first_ns")),
    Measure("fresh_second", NS, "fresh_source", _evidence("fresh_source", "second_ns")),
    Measure("page_faults", "1/call", "host_time", _page_faults),
    Measure("bandwidth", "GB/s", "copy_cost", _of_copying("gb_per_s")),
    Measure("memcpy_bandwidth", "GB/s", "copy_cost", _attribute("copy_cost", "memcpy_gb_per_s")),
    Measure("share_of_memcpy", "1", "copy_cost", _of_copying("share_of_memcpy")),
    Measure("peak_memory", "arrays", "peak_memory", _peak_memory),
    Measure("ownership", "", "ownership", _verdict("ownership")),
    Measure("ordering", "", "ordering", _verdict("ordering")),
    Measure("alignment", "", "alignment", _verdict("alignment")),
    Measure("values", "", "values", _verdict("values")),
    Measure("fresh_source", "", "fresh_source", _verdict("fresh_source")),
    Measure("lifetime", "", "lifetime", _verdict("lifetime")),
    Measure("early_write", "", "early_write", _verdict("early_write")),
    Measure("trace", "", "trace", _verdict("trace")),
    Measure("step_saved", "1", "versus", _step("versus", "saved", "median")),
    Measure("step_reading", NS, "versus", _step("versus", "reading", "median_ns")),
    Measure("step_shape_change", NS, "shape_change", _step("shape_change", "cost_ns")),
    Measure("step_allocations", "1/call", "allocations", _step("allocations", "per_call")),
    Measure("step_reuse", "", "reuse", _reuse),
    Measure("in_loop", NS, "placement", _loop("in_loop", "in-loop")),
    Measure("hoisted", NS, "placement", _loop("hoisted", "hoisted")),
    Measure("implicit", NS, "placement", _loop("implicit", "implicit")),
    Measure("loop_share", "1", "placement", _loop_share),
    Measure("break_even", "iterations", "placement", _break_even),
)
"""In the order of the tables. A name never changes its meaning; new ones come at the end."""
