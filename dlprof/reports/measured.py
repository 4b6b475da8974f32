"""All that was measured of each path, in words: what no table and no problem tells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dlprof.analysis.quantity import plain_time, significant, size_text
from dlprof.reports.document import Facts, Section
from dlprof.reports.paths import Array
from dlprof.rules.evidence_text import facts
from dlprof.session.evidence import HandshakeEvent
from dlprof.session.measured import ProcessSamples, TimeMeasure
from dlprof.session.model import Result
from dlprof.text.clean import clean, counted

INSTRUMENTS = {
    "ownership": "view or copy",
    "values": "values",
    "alignment": "address of x",
    "fresh_source": "second conversion",
    "ordering": "queued work",
    "lifetime": "lifetime",
    "early_write": "late reads",
    "peak_memory": "peak memory",
    "settings": "settings",
    "refusal": "refusal",
    "trace": "calls of the driver",
}
"""The evidence of a result, and what each is called."""
MOST_ARRAYS = 4
MOST_PROCESSES = 12


def sections(arrays: Sequence[Array]) -> Iterator[Section]:
    """What all paths of an array share, and the rest of each; the JSON has those of all arrays."""
    for array in arrays[:MOST_ARRAYS]:
        told = {path.code: tuple(_facts(path.case.result)) for path in array.paths}
        told = {code: found for code, found in told.items() if found}
        shared = set.intersection(*map(set, told.values())) if len(told) > 1 else set()
        common = [one for one in next(iter(told.values()), ()) if one in shared]
        blocks = [Facts((("path", "all"), *dict.fromkeys(common)))] if common else []
        blocks += [
            Facts((("path", code), *(one for one in found if one not in shared)))
            for code, found in told.items()
            if not shared.issuperset(found)
        ]
        if blocks:
            where = f": {array.pair_text} {array.text}" if len(arrays) > 1 else ""
            yield Section(f"Everything measured{where}", tuple(blocks))


def _facts(result: Result) -> Iterator[tuple[str, str]]:
    if not result.untimed:
        yield from _times(result)
    for name, question in INSTRUMENTS.items():
        verdict: Any = getattr(result, name)
        if verdict is not None:
            told = facts(verdict.evidence, result.untimed)
            yield question, f"{verdict.verdict}{told and f': {told}'}"
    for event in result.handshake:
        yield "handshake", _event(event, result.untimed)
    if result.output:
        yield "output", clean(result.output)


def _times(result: Result) -> Iterator[tuple[str, str]]:
    for name, measure in (("ready", result.ready_time), ("call", result.host_time)):
        if measure is not None:
            yield name, _measure(measure)
    first = {
        "first call": result.first_call_ns,
        "making x": result.create_ns,
    }
    yield from ((name, plain_time(value)) for name, value in first.items() if value is not None)
    if result.first_call_peak_bytes is not None:
        yield "memory of the first call", size_text(result.first_call_peak_bytes)
    if result.phases is not None:
        parts = {
            "export": result.phases.export_ns,
            "import": result.phases.import_ns,
            "release": result.phases.release_ns,
        }
        told = [f"{name} {plain_time(ns)}" for name, ns in parts.items() if ns is not None]
        yield "parts", ", ".join(told)


def _measure(measure: TimeMeasure) -> str:
    """``171 µs (38 samples of 4 calls, 0.2 page faults a call), 174 µs (…); least 150 µs``."""
    if measure.same_as:
        return f"the same as {measure.same_as.removesuffix('_time').replace('host', 'call')}"
    least = f"least {plain_time(measure.min_ns, 3)}"
    medians = measure.medians_by_round
    processes = [
        f"{plain_time(medians[one.round], 3)} ({_samples(one)})"
        for one in measure.processes[:MOST_PROCESSES]
        if one.round in medians
    ]
    more = len(measure.processes) - MOST_PROCESSES
    left = f" and {more:,} more" if more > 0 else ""
    if not processes:
        return f"{plain_time(measure.median_ns, 3)}; {least}"
    return f"{', '.join(processes)}{left}; {least}"


def _samples(found: ProcessSamples) -> str:
    samples, calls = len(found.samples_ns), found.loops
    told = [f"{counted(samples, 'sample')} of {counted(calls, 'call')}"]
    if found.page_faults_per_call:
        told.append(f"{significant(found.page_faults_per_call, 2)} page faults a call")
    if found.disturbed:
        told.append(f"{significant(100 * found.disturbed, 2)} % disturbed")
    return ", ".join(told)


def _event(event: HandshakeEvent, untimed: bool) -> str:
    """``__dlpack__(stream=None): returned in 8.3 µs, a capsule dltensor, flags none``."""
    arguments = ", ".join(f"{name}={value}" for name, value in (event.arguments or {}).items())
    told = f"{event.call or 'a call'}({arguments}) {event.outcome or ''}".rstrip()
    if event.ns is not None and not untimed:
        told += f" in {plain_time(event.ns)}"
    capsule = ", ".join(f"{name} {value}" for name, value in (event.capsule or {}).items())
    return "; ".join(filter(None, (told, event.answer, capsule)))
