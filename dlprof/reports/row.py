"""What a report shows of one result; small, so that ten thousand fit into memory."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dlprof.axes import shape_text
from dlprof.clean import clean, first_line
from dlprof.collector import paused
from dlprof.errors import Unmeasured
from dlprof.probes.base import DTYPES, Protocol
from dlprof.quantity import plain_time
from dlprof.reports.measures import peak_arrays
from dlprof.rules import known
from dlprof.session import (
    CaseRecord,
    FindingRecord,
    Placement,
    ProcessSamples,
    Result,
    TimeMeasure,
)
from dlprof.slim import step_without_samples, without_samples
from dlprof.step_record import Step

LONGEST_NAME = 60
MOST_BYTES = 1 << 63
SIDES = 2


@dataclass(frozen=True)
class Row:
    """One line of a table. ``cost_ns`` sorts it: infinite for what was not measured."""

    pair: str
    code: str
    shape: str
    dtype: str
    layout: str
    device: str
    size_bytes: int
    ready: TimeMeasure | None
    device_ns: float | None
    device_resolution_ns: float
    gb_per_s: float | None
    share_of_memcpy: float | None
    owner: str
    changed: tuple[str, ...]
    promise: str | None
    status: str
    reason: str | None
    notes: tuple[str, ...]
    setup: str = ""
    frameworks: str = ""
    """``pair`` without the environment."""
    environment: str = ""
    """The name of the interpreter, where there are several; ``pair`` then has it too."""
    loaded: str = ""
    """Whether the call waits behind queued work, and how long; empty where nothing was queued."""
    process_medians_ns: tuple[float, ...] = ()
    suspect: bool = False
    """Whether a finding says that the path is wrong or unsafe."""
    faults: tuple[str, ...] = ()
    """The rules that say so; with a question mark one that says it of another copy of the pair."""
    unseen: bool = False
    """Whether nothing of the result could be looked at: neither its memory nor its values."""
    unlooked: str = ""
    """What keeps the path from being called safe: that something was not looked at."""
    depends: str = ""
    """How view or copy depends on where the source begins, in words; empty where it does not."""
    alignments: tuple[int, ...] = ()
    """At multiples of which bytes the sources began that were looked at."""
    page_faults: float | None = None
    """Per call, median of the processes."""
    host_ns: float | None = None
    first_ns: float | None = None
    """The first call, where it was the first conversion of its process."""
    placement: Placement | None = None
    path: str = ""
    form: str = ""
    """The code without the shape that may stand in it: the same for every array of a dtype."""
    protocol: str = ""
    create_ns: float | None = None
    peak_arrays: float | None = None
    """Peak of memory beyond the source, in arrays of its size."""
    step: Step | None = None
    """Of a step of inference, without samples."""
    kept_ns: tuple[float, float] | None = None
    """First and second conversion of a new array, where the framework keeps what it made."""

    @property
    def cost_ns(self) -> float:
        return self.ready.median_ns if self.ready is not None else math.inf

    @property
    def is_step(self) -> bool:
        """Whether it is a step of inference, and no conversion."""
        return self.protocol == Protocol.STEP

    @property
    def strategy(self) -> str:
        """What a step does with its output's memory."""
        return self.path.partition("->")[2]

    @property
    def why_not(self) -> str | None:
        """Why there is no ready time."""
        if self.reason is None and self.host_ns is not None and self.notes:
            return f"host time {plain_time(self.host_ns)}; {self.notes[0]}"
        return self.reason

    @property
    def safe(self) -> bool:
        """Measured to the end, seen to be right, as documented, and no finding calls it unsafe."""
        whole = self.status == "ok" and self.ready is not None and not self.changed
        if self.suspect or self.unseen:
            return False
        return whole and not self.promise_broken

    @property
    def promise_broken(self) -> bool:
        """Documented to copy and a view, or documented as a view and a copy."""
        return {self.promise, self.owner} == {"copy", "view"}

    @property
    def array(self) -> tuple[str, str, str, str, str]:
        """What was converted: rows of the same array can be compared."""
        return self.pair, self.shape, self.dtype, self.layout, self.device


def row_of(result: Result) -> Row:
    """The row of a result; whatever stands in the session, as text fit to be shown.

    Evidence has no fixed form (a session may come from another version, or from anybody): what
    cannot be read in it is left out.
    """
    case = result.case
    return Row(
        pair=_pair(result),
        frameworks=clean(_frameworks(case), LONGEST_NAME),
        environment=clean(result.environment or "", LONGEST_NAME),
        code=clean(_code(case)),
        shape=clean(shape_text(case.shape), LONGEST_NAME),
        dtype=clean(case.dtype, LONGEST_NAME),
        layout=clean(case.layout, LONGEST_NAME),
        device=clean(case.device, LONGEST_NAME),
        size_bytes=_size_bytes(result),
        ready=slim(result.ready_time),
        device_ns=_device_ns(result.device_time),
        device_resolution_ns=_number((result.device_time or {}).get("resolution_ns")) or 0.0,
        # A result that is a view in some processes has no speed of copying.
        gb_per_s=result.copy_cost.gb_per_s if result.copy_cost and _is_copy(result) else None,
        share_of_memcpy=result.copy_cost.share_of_memcpy
        if result.copy_cost and _is_copy(result)
        else None,
        owner=_owner(result),
        changed=_changed(result),
        promise=case.promise,
        status=result.status,
        reason=None if result.reason is None else first_line(result.reason),
        notes=tuple(first_line(note) for note in result.notes),
        setup=clean(" / ".join(case.setup.strip().splitlines())),
        loaded=_loaded(result),
        unseen=_unseen(result),
        unlooked=_unlooked(result),
        process_medians_ns=_process_medians(result),
        host_ns=None if result.host_time is None else result.host_time.median_ns,
        depends=_depends(result),
        alignments=_alignments(result),
        page_faults=_page_faults(result),
        first_ns=_number(result.first_in_process_ns),
        placement=without_samples(result.placement) if result.placement else None,
        step=step_without_samples(result.step) if result.step else None,
        kept_ns=_kept(result),
        path=clean(case.path, LONGEST_NAME),
        form=clean(case.code.replace(str(tuple(case.shape)), "{shape}")) if case.shape else "",
        protocol=clean(case.protocol, LONGEST_NAME),
        create_ns=result.create_ns,
        peak_arrays=peak_arrays(result),
    )


def rows_of(results: Iterable[Result]) -> list[Row]:
    """The rows of many results."""
    with paused():
        return [row_of(result) for result in results]


def _pair(result: Result) -> str:
    # What was measured in different environments must not be compared as one pair's paths.
    pair = _frameworks(result.case)
    where = f" in {result.environment}" if result.environment else ""
    return clean(pair, LONGEST_NAME) + clean(where, LONGEST_NAME)


def _frameworks(case: CaseRecord) -> str:
    if case.protocol == Protocol.STEP:
        return case.producer
    return f"{case.producer} → {case.consumer}"


def _code(case: CaseRecord) -> str:
    """The code; that of a step, of which much is alike, with the name of the strategy."""
    return f"{case.import_}: {case.code}" if case.protocol == Protocol.STEP else case.code


def suspected(rows: Sequence[Row], findings: Iterable[FindingRecord]) -> list[Row]:
    """The rows, told which of them an error was found of.

    ``rows`` are those of all results of the session, in its order. What was found of a path at
    one shape holds for all of them: the diagnosis looks at the first only.
    """
    findings = list(findings)
    guilty: dict[tuple[str, ...], dict[str, None]] = {}
    for finding in findings:
        for index in finding.results if finding.severity == "error" else ():
            if 0 <= index < len(rows):
                guilty.setdefault(_way(rows[index]), {})[clean(finding.rule, LONGEST_RULE)] = None
    racing: set[tuple[str, ...]] = {
        (rows[index].pair, rows[index].device)
        for finding in findings
        if finding.rule == RACE
        for index in finding.results
        if 0 <= index < len(rows)
    }
    found = []
    for row in rows:
        faults = tuple(guilty.get(_way(row), ()))
        if RACE not in faults and _of_a_racing_pair(row, racing):
            faults = (*faults, f"{RACE}?")
        found.append(replace(row, suspect=True, faults=faults) if faults else row)
    return found


RACE = "DLP020"
LONGEST_RULE = 12


def _of_a_racing_pair(row: Row, racing: set[tuple[str, ...]]) -> bool:
    """Whether it may copy, and a copy of its pair was seen torn: whole ones prove nothing then."""
    return row.owner != "view" and (row.pair, row.device) in racing


def _way(row: Row) -> tuple[str, ...]:
    return row.pair, row.form or row.code, row.dtype, row.layout, row.device


def _unseen(result: Result) -> bool:
    seen = {"ownership": result.ownership, "values": result.values}
    failed = {note.partition(":")[0] for note in result.notes}
    return all(
        name in failed if found is None else found.verdict == "unknown"
        for name, found in seen.items()
    )


def _unlooked(result: Result) -> str:
    if result.lifetime is not None:
        return ""
    if result.ordering is None and result.early_write is None and result.peak_memory is None:
        return "nothing looked for races or lost memory"
    return "whether it outlives its source could not be seen"


def _is_copy(result: Result) -> bool:
    return result.ownership is not None and result.ownership.verdict == "copy"


def slim(measure: TimeMeasure | None) -> TimeMeasure | None:
    """The measure without its samples."""
    return measure.model_copy(update={"processes": []}) if measure is not None else None


def check_measured(rows: Sequence[Row]) -> None:
    """Raise :class:`Unmeasured` where no case has a time."""
    if not any(row.ready is not None or row.host_ns is not None for row in rows):
        raise Unmeasured(f"nothing could be measured: {_first_reason(rows)}")


def _first_reason(rows: Sequence[Row]) -> str:
    reasons = (row.reason or next(iter(row.notes), None) for row in rows)
    reason = next((reason for reason in reasons if reason), "no reason was given")
    return reason.strip().splitlines()[0]


def _size_bytes(result: Result) -> int:
    size = math.prod(result.case.shape) * DTYPES.get(result.case.dtype, 0)
    return size if 0 <= size < MOST_BYTES else 0


def _process_medians(result: Result) -> tuple[float, ...]:
    processes = _processes(result)
    return tuple(
        statistics.median(process.samples_ns) for process in processes if process.samples_ns
    )


def _page_faults(result: Result) -> float | None:
    faults = (process.page_faults_per_call for process in _processes(result))
    known = [fault for fault in faults if fault is not None]
    return statistics.median(known) if known else None


def _processes(result: Result) -> list[ProcessSamples]:
    """Those of the ready time."""
    measure = result.ready_time
    if measure is not None and measure.same_as is not None:
        measure = result.host_time
    return measure.processes if measure is not None else []


def _loaded(result: Result) -> str:
    if result.ordering is None or result.ordering.verdict == "synchronous":
        return ""
    words = {"host-sync": "waits", "device-sync": "waits", "stream-ordered": "ordered"}
    loaded = result.ordering.evidence.get("loaded")
    host_ns = _number(loaded.get("host_ns")) if isinstance(loaded, dict) else None
    word = clean(words.get(result.ordering.verdict, result.ordering.verdict), LONGEST_NAME)
    return word if host_ns is None or word != "waits" else f"waits {plain_time(host_ns)}"


def _kept(result: Result) -> tuple[float, float] | None:
    if result.fresh_source is None or result.fresh_source.verdict != "kept":
        return None
    first, second = (
        _number(result.fresh_source.evidence.get(name)) for name in ("first_ns", "second_ns")
    )
    return None if first is None or second is None else (first, second)


def _number(thing: Any) -> float | None:
    """``thing`` if it is a finite number: Python reads NaN from JSON, though JSON knows none."""
    if isinstance(thing, bool) or not isinstance(thing, (int, float)):
        return None
    return thing if math.isfinite(thing) else None


def _owner(result: Result) -> str:
    if result.ownership is None:
        return "-"
    word = {"unknown": "?"}.get(result.ownership.verdict, result.ownership.verdict)
    return clean(word, LONGEST_NAME)


def _alignments(result: Result) -> tuple[int, ...]:
    looks = known.seen(result.ownership)
    found = (known.number(evidence.get("source_alignment_bytes")) for _, evidence in looks)
    return tuple(sorted({int(size) for size in found if size}))


_WORDS = {"view": "a view", "copy": "a copy", "refused": "refused"}


def _depends(result: Result) -> str:
    found = result.alignment
    if found is None or found.verdict != "dependent":
        return ""
    words = [
        _WORDS.get(str(place.get("verdict"))) if isinstance(place, dict) else None
        for place in (found.evidence.get("aligned"), found.evidence.get("sliced"))
    ]
    if None in words:
        return "it depends on where the source begins"
    return f"{words[0]} of a source at a multiple of 64 bytes, {words[1]} one element further"


def _changed(result: Result) -> tuple[str, ...]:
    """What did not survive the conversion, in words."""
    if result.values is None or result.values.verdict != "wrong":
        return ()
    changed = result.values.evidence.get("changed")
    if not isinstance(changed, dict):
        return ("values",)
    return tuple(_change(what, detail) for what, detail in changed.items()) or ("values",)


def _change(what: str, detail: Any) -> str:
    if what == "values" and isinstance(detail, dict) and {"different", "of"} <= detail.keys():
        return clean(f"{detail['different']} of {detail['of']} values")
    if isinstance(detail, list) and len(detail) == SIDES:
        before, after = (_side(side) for side in detail)
        return clean(f"{before} to {after}")
    return clean(what)


def _side(side: Any) -> str:
    return shape_text(side) if isinstance(side, list) else str(side)


def _device_ns(found: dict[str, Any] | None) -> float | None:
    warm = (found or {}).get("warm")
    return _number(warm.get("median_ns")) if isinstance(warm, dict) else None
