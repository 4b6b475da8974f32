"""What instruments saw of a case, process by process, in words: how sure a finding is."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from dlprof.analysis.case_view import CaseView, seen
from dlprof.analysis.quantity import plain_time, size_text
from dlprof.session.evidence import Ownership, TraceEvent
from dlprof.session.model import Result

MOST = 12
MOST_CALLS = 3
ONCE = "seen once, in a process of its own, at the first shape of each path"
SHOWS = {True: "shows", False: "does not show"}
ADDRESS = {True: "at the same address", False: "at another address"}


def first_lines(told: Sequence[str]) -> list[str]:
    """The lines as they may be shown, and how many more there are."""
    more = len(told) - MOST
    return [*told[:MOST], *([f"and {more:,} more processes"] if more > 0 else [])]


def side_by_side(result: Result, against: Result) -> list[str]:
    """The medians of each process that timed both: a load of the machine slows both alike."""
    these, those = (_medians_ns(one) for one in (result, against))
    both = [
        f"{plain_time(these[round_])} against {plain_time(those[round_])}"
        for round_ in sorted(these.keys() & those.keys())
    ]
    if len(both) <= 1:
        return []
    rest = f" and {len(both) - MOST:,} more" if len(both) > MOST else ""
    return [f"round by round, in fresh processes: {', '.join(both[:MOST])}{rest}"]


def _medians_ns(result: Result) -> dict[int, float]:
    """The median ready time of each process, by its round."""
    ready = CaseView(0, result).ready
    found = {
        one.round: statistics.median(one.samples_ns)
        for one in (ready.processes if ready is not None else ())
        if one.samples_ns
    }
    return {round_: ns for round_, ns in found.items() if ns > 0}


def _by_process(result: Result) -> list[tuple[str, float | None]]:
    """View or copy and the time of each process, where processes disagree; else nothing.

    A process looks at the array that it timed. None is a time that is not known; nothing is told
    where it is not known which look is which process's.
    """
    verdict = result.ownership
    looks = [word for word, _ in seen(verdict)]
    if verdict is None or verdict.verdict != "varies" or len(looks) != len(result.rounds):
        return []
    times = _medians_ns(result)
    return [(word, times.get(round_)) for word, round_ in zip(looks, result.rounds, strict=True)]


def ownership(result: Result) -> list[str]:
    """Every process looks; of processes that agree the session keeps what the first one saw."""
    verdict = result.ownership
    if verdict is None:
        return []
    told = [_look(word, evidence) for word, evidence in seen(verdict)]
    if verdict.verdict == "varies":
        took = [time for _, time in _by_process(result)] or [None] * len(told)
        return [
            f"process {place} of {len(told)}: {one}"
            + (f"; {plain_time(ns)} per call" if ns else "")
            for place, (one, ns) in enumerate(zip(told, took, strict=True), 1)
        ]
    count = len(result.rounds)
    if count <= 1:
        return [f"in one process: {one}" for one in told]
    in_all = _in_all(verdict.evidence)
    return [
        f"the same verdict in {count} fresh processes{in_all}; in the first: {one}" for one in told
    ]


def _in_all(evidence: Ownership) -> str:
    """Where the arrays of several processes began, where that was not the same."""
    *others, last = [f"{size:.0f}" for size in evidence.alignments if size] or [""]
    return f", of sources at multiples of {', '.join(others)} and {last} bytes" if others else ""


def _look(word: str, evidence: Ownership) -> str:
    facts = [*_writes(evidence.source_write_shows, evidence.result_write_shows)]
    if evidence.same_address is not None:
        facts.append(ADDRESS[evidence.same_address])
    if evidence.source_alignment_bytes:
        begins = evidence.source_alignment_bytes
        facts.append(f"the source began at a multiple of {begins:.0f} bytes")
    return f"a {word}: {'; '.join(facts)}" if facts else f"a {word}"


def _writes(of_source: bool | None, of_result: bool | None) -> Iterator[str]:
    if of_source is not None and of_source is of_result:
        yield f"a write to {'either' if of_source else 'neither'} shows in the other"
        return
    if of_source is not None:
        yield f"a write to the source {SHOWS[of_source]} in the result"
    if of_result is not None:
        yield f"a write to the result {SHOWS[of_result]} in the source"


def ownership_by_address(result: Result) -> list[str]:
    """What every process saw, and what was tried of memory that begins elsewhere."""
    found = result.alignment
    tried = [
        f"{look.verdict} of a source at a multiple of {look.alignment_bytes:.0f} bytes"
        for _, look in (found.evidence.places if found and found.verdict == "dependent" else ())
        if look.alignment_bytes and look.verdict
    ]
    more = [f"tried once more: {', '.join(tried)}"] if tried else []
    return [*ownership(result), *more]


def trace(result: Result) -> str:
    """`` The trace saw: cudaMemcpyAsync copied 64 MiB (device to host) in 12 ms.``: calls that
    waited or copied, the longest first. Empty where there are none.
    """
    events = (result.trace.evidence.events if result.trace is not None else None) or ()
    ranked = sorted(events, key=lambda event: -(event.duration_ns or 0.0))
    found = [text for event in ranked if (text := _call(event))]
    more = f" and {len(found) - MOST_CALLS} more" if len(found) > MOST_CALLS else ""
    return f" The trace saw: {', '.join(found[:MOST_CALLS])}{more}." if found else ""


def _call(event: TraceEvent) -> str:
    did = ["waited"] if event.waited else []
    if event.bytes and event.direction:
        did.append(f"copied {size_text(int(event.bytes))} ({event.direction})")
    took = f" in {plain_time(event.duration_ns)}" if event.duration_ns else ""
    return f"{event.name or 'a call'} {' and '.join(did)}{took}" if did else ""
