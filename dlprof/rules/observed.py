"""What the instrument of a rule saw of a case, in lines: how sure a finding is."""

from __future__ import annotations

from typing import Any

from dlprof.analysis.case_view import seen
from dlprof.analysis.ending import DIAGNOSIS
from dlprof.analysis.quantity import plain_time, size_text
from dlprof.session.evidence import Evidence, TraceEvent
from dlprof.session.model import Result

MOST = 12
MOST_CALLS = 3
LONGEST = 200
SOURCE_TEXT = ("create", "created_shape", "code", "processes", "points", "by_streams")
"""Evidence that a reproducer shows, or that is too long for a line."""


def observations(result: Result, instrument: str) -> list[str]:
    """A line for each process that looked, with its verdict and the evidence for it."""
    looks = [_line(word, evidence) for word, evidence in seen(getattr(result, instrument, None))]
    more = [f"and {len(looks) - MOST:,} more processes"] if len(looks) > MOST else []
    if len(looks) > 1:
        looks = [f"process {at} of {len(looks)}: {one}" for at, one in enumerate(looks, 1)]
    elif instrument in DIAGNOSIS:
        looks = [f"{one} (seen once, at the first shape of the path)" for one in looks]
    elif len(result.rounds) > 1:
        looks = [f"the same in {len(result.rounds)} processes: {one}" for one in looks]
    return [*looks[:MOST], *more]


def _line(word: str, evidence: Evidence) -> str:
    found = evidence.model_dump(exclude_none=True, exclude=set(SOURCE_TEXT))
    facts = (f"{name.replace('_', ' ')} {_text(value)}" for name, value in found.items())
    return f"{word}: {', '.join(facts)}"[:LONGEST]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return f"({', '.join(f'{key} {_text(part)}' for key, part in value.items())})"
    if isinstance(value, list | tuple):
        return f"({', '.join(map(_text, value))})"
    return str(value)


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
