"""From a result to its row: what can be read in it, as text fit to be shown."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from typing import Any

from dlprof.analysis.alignment import Look, depends, looks_of, memory_of, owners_of
from dlprof.analysis.case_view import mapping, number, seen, waits
from dlprof.analysis.changed import CHANGES, lost
from dlprof.analysis.quantity import plain_time
from dlprof.analysis.slower import is_scattered
from dlprof.plan.axes import shape_text
from dlprof.probes.base import DTYPES, Protocol
from dlprof.reports.measures import peak_arrays
from dlprof.reports.row import A_COPY, A_VIEW, REFUSED, Row, diagnosed
from dlprof.session.collector import paused
from dlprof.session.evidence import Changed
from dlprof.session.model import (
    CaseRecord,
    ProcessSamples,
    Result,
    TimeMeasure,
    Verdict,
)
from dlprof.text.clean import clean, first_line

LONGEST_NAME = 60

MOST_BYTES = 1 << 63

SIDES = 2

ALL = 0.95
"""From this share of a queue on, a call waits for all of it."""


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
        device_ns=result.device_time.warm.median_ns
        if result.device_time and result.device_time.warm
        else None,
        device_resolution_ns=(result.device_time.resolution_ns if result.device_time else None)
        or 0.0,
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
        unwritten=result.early_write is None,
        process_medians_ns=_process_medians(result),
        host_ns=None if result.host_time is None else result.host_time.median_ns,
        depends=_depends(result),
        alignments=_alignments(result),
        page_faults=_page_faults(result),
        first_ns=number(result.first_in_process_ns),
        placement=result.placement,
        step=result.step,
        disturbed=_is_disturbed(_timed(result)),
        scattered=_is_scattered(_timed(result)),
        kept_ns=_kept(result),
        kept_bytes=_kept_bytes(result),
        path=clean(case.path, LONGEST_NAME),
        form=clean(case.form) if case.shape else "",
        protocol=clean(case.protocol, LONGEST_NAME),
        create_ns=result.create_ns,
        peak_arrays=peak_arrays(result),
        look=_look(result),
        unchecked=_unchecked(result),
    )


def _look(result: Result) -> Look:
    case, memory = result.case, memory_of(result.case.layout)
    source = (result.environment, case.producer, memory, case.device)
    way = (*source, case.consumer, case.path, case.dtype)
    return Look(way, source, looks_of(result), owners_of(result), depends(result))


def _unchecked(result: Result) -> str:
    found = result.values
    if found is None:
        return _failed(result, "values") or "nothing looked at them"
    if found.verdict != "unknown":
        return ""
    reason = found.evidence.get("reason")
    return first_line(reason) if isinstance(reason, str) else "no reason was given"


def _failed(result: Result, instrument: str) -> str:
    """Why an instrument failed, from the notes; empty where it did not."""
    notes = (note.partition(": ") for note in result.notes)
    return next((first_line(reason) for name, _, reason in notes if name == instrument), "")


def rows_of(results: Iterable[Result]) -> list[Row]:
    """The rows of many results."""
    with paused():
        return diagnosed([row_of(result) for result in results])


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


def _unseen(result: Result) -> bool:
    seen = {"ownership": result.ownership, "values": result.values}
    failed = {note.partition(":")[0] for note in result.notes}
    return all(
        name in failed if found is None else found.verdict == "unknown"
        for name, found in seen.items()
    )


def _unlooked(result: Result) -> str:
    if result.lifetime is None:
        if result.ordering is None and result.early_write is None and result.peak_memory is None:
            return "nothing looked for races or lost memory"
        return "whether it outlives its source could not be seen"
    for verdict, question in (
        (result.lifetime, "whether it outlives its source"),
        (result.ordering, "whether it waits for queued work"),
        (result.early_write if _is_copy(result) else None, "whether a write tears the copy"),
    ):
        if verdict is not None and verdict.verdict == "unknown" and not _is_moot(verdict):
            reason = verdict.evidence.get("reason")
            why = f": {first_line(reason)}" if isinstance(reason, str) else ""
            return f"{question} is not known{why}"
    return ""


def _is_moot(verdict: Verdict[Any]) -> bool:
    """Whether nobody can do what would do harm."""
    return verdict.evidence.get("moot") is True


def _is_copy(result: Result) -> bool:
    return result.ownership is not None and result.ownership.verdict == "copy"


def slim(measure: TimeMeasure | None) -> TimeMeasure | None:
    """The measure without its samples."""
    return measure.model_copy(update={"processes": []}) if measure is not None else None


def _size_bytes(result: Result) -> int:
    size = math.prod(result.case.shape) * DTYPES.get(result.case.dtype, 0)
    return size if 0 <= size < MOST_BYTES else 0


def _timed(result: Result) -> TimeMeasure | None:
    """The ready time, from where its samples are."""
    measure = result.ready_time
    return result.host_time if measure is not None and measure.same_as is not None else measure


def _is_disturbed(measure: TimeMeasure | None) -> bool:
    return measure is not None and measure.is_disturbed


def _is_scattered(measure: TimeMeasure | None) -> bool:
    return measure is not None and is_scattered(measure)


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
    measure = _timed(result)
    return measure.processes if measure is not None else []


def _loaded(result: Result) -> str:
    if result.ordering is None or result.ordering.verdict == "synchronous":
        return ""
    word = result.ordering.verdict
    if not waits(result.ordering):
        return {"stream-ordered": "ordered"}.get(word, clean(word, LONGEST_NAME))
    race = f"{word}, " if word == "unordered" else ""
    return f"{race}waits{_waited(mapping(result.ordering.evidence.get('loaded')))}"


def _waited(loaded: Mapping[str, Any]) -> str:
    host_ns, queued_ns = number(loaded.get("host_ns")), number(loaded.get("queued_ns"))
    if host_ns is None:
        return ""
    return f" {plain_time(host_ns) if queued_ns is None else _of(host_ns, queued_ns)}"


def _of(host_ns: float, queued_ns: float) -> str:
    """``all 45 ms`` of the queue that the call was behind, or ``20 of 45 ms``."""
    call, queue = plain_time(host_ns), plain_time(queued_ns)
    if host_ns >= ALL * queued_ns:
        return f"all {queue}"
    amount, _, unit = call.partition(" ")
    return f"{amount if queue.endswith(f' {unit}') else call} of {queue}"


def _kept(result: Result) -> tuple[float, float] | None:
    if result.fresh_source is None or result.fresh_source.verdict != "kept":
        return None
    first, second = (
        number(result.fresh_source.evidence.get(name)) for name in ("first_ns", "second_ns")
    )
    return None if first is None or second is None else (first, second)


def _kept_bytes(result: Result) -> float | None:
    """The size of the arrays that were looked at, where it is not that of the case."""
    found = result.fresh_source
    size = None if found is None else number(found.evidence.get("size_bytes"))
    return None if size == _size_bytes(result) else size


def _owner(result: Result) -> str:
    if result.ownership is None:
        return "?" if result.status == "ok" else "-"
    word = {"unknown": "?"}.get(result.ownership.verdict, result.ownership.verdict)
    return clean(word, LONGEST_NAME)


def _alignments(result: Result) -> tuple[int, ...]:
    found = (size for _, evidence in seen(result.ownership) for size in evidence.alignments)
    return tuple(sorted({int(size) for size in found if size}))


_WORDS = {"view": A_VIEW, "copy": A_COPY, "refused": REFUSED}


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
    changed = result.values.evidence.changed or Changed()
    return tuple(_change(kind, changed) for kind in changed.kinds) or ("values",)


def _change(kind: str, changed: Changed) -> str:
    if kind in CHANGES:
        return lost(kind, changed)
    if kind == "values" and changed.values and changed.values.different is not None:
        return f"{changed.values.different} of {changed.values.of} values"
    if kind == "shape" and changed.shape:
        return f"{shape_text(changed.shape[0])} to {shape_text(changed.shape[1])}"
    if kind == "dtype" and changed.dtype:
        return clean(f"{changed.dtype[0]} to {changed.dtype[1]}")
    return clean(kind)
