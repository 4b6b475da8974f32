"""What instruments saw of a case, in lines: how sure a finding is."""

from __future__ import annotations

from dlprof.analysis.case_view import seen
from dlprof.analysis.quantity import plain_time, size_text
from dlprof.session.evidence import Ownership, TraceEvent
from dlprof.session.model import Result

MOST = 12
MOST_CALLS = 3
ONCE = "seen once, in a process of its own, at the first shape of each path"


def ownership(result: Result) -> list[str]:
    """What every process saw, and what was tried of memory that begins elsewhere."""
    looks = [_look(word, evidence) for word, evidence in seen(result.ownership)]
    if len(looks) == 1:
        looks = [f"in {len(result.rounds) or 1} fresh processes: {looks[0]}"]
    else:
        looks = [f"process {at} of {len(looks)}: {one}" for at, one in enumerate(looks, 1)]
    places = result.alignment.evidence.places if result.alignment else ()
    tried = [
        f"{look.verdict} of a source at a multiple of {look.alignment_bytes:.0f} bytes"
        for _, look in places
        if look.alignment_bytes and look.verdict
    ]
    return [*looks, *([f"tried once more: {', '.join(tried)}"] if tried else [])]


def _look(word: str, evidence: Ownership) -> str:
    shows = {True: "shows", False: "does not show"}
    facts = [
        f"a write to the {side} {shows[is_seen]} in the {other}"
        for side, other, is_seen in (
            ("source", "result", evidence.source_write_shows),
            ("result", "source", evidence.result_write_shows),
        )
        if is_seen is not None
    ]
    if evidence.same_address is not None:
        facts.append(f"at {'the same' if evidence.same_address else 'another'} address")
    if evidence.alignments:
        sizes = ", ".join(f"{size:.0f}" for size in evidence.alignments)
        facts.append(f"the source began at a multiple of {sizes} bytes")
    return f"a {word}: {'; '.join(facts)}" if facts else f"a {word}"


def trace(result: Result) -> str:
    """``The trace saw: cudaMemcpyAsync copied 64 MiB (device to host) in 12 ms.``: calls that
    waited or copied, the longest first. Empty where there are none.
    """
    events = (result.trace.evidence.events if result.trace is not None else None) or ()
    ranked = sorted(events, key=lambda event: -(event.duration_ns or 0.0))
    found = [text for event in ranked if (text := _call(event))]
    return f"The trace saw: {', '.join(found[:MOST_CALLS])}." if found else ""


def _call(event: TraceEvent) -> str:
    did = ["waited"] if event.waited else []
    if event.bytes and event.direction:
        did.append(f"copied {size_text(int(event.bytes))} ({event.direction})")
    took = f" in {plain_time(event.duration_ns)}" if event.duration_ns else ""
    return f"{event.name or 'a call'} {' and '.join(did)}{took}" if did else ""
