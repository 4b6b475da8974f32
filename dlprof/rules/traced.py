"""What the trace saw inside a conversion: calls that waited or copied, in words."""

from __future__ import annotations

from dlprof.analysis.quantity import plain_time, size_text
from dlprof.session.evidence import TraceEvent
from dlprof.session.model import Result
from dlprof.text.clean import clean

MOST_CALLS = 3
LONGEST_NAME = 60


def calls(result: Result) -> list[str]:
    """``cudaMemcpyAsync copied 64 MiB (device to host) in 12 ms``: each call that waited or copied,
    as often as it was made, the longest first. Empty without a trace.
    """
    events = (result.trace.evidence.events if result.trace is not None else None) or ()
    ranked = sorted(events, key=lambda event: -(event.duration_ns or 0.0))
    return [text for event in ranked if (text := _call(event))]


def seen(result: Result) -> str:
    """``; the trace saw …``: the first of :func:`calls`; empty where there are none."""
    found = calls(result)
    more = f" and {len(found) - MOST_CALLS} more" if len(found) > MOST_CALLS else ""
    return f"; the trace saw: {', '.join(found[:MOST_CALLS])}{more}" if found else ""


def _call(event: TraceEvent) -> str:
    size, took = event.bytes, event.duration_ns
    did = []
    if event.waited:
        did.append("waited")
    if size and event.direction:
        did.append(f"copied {size_text(int(size))} ({clean(event.direction, LONGEST_NAME)})")
    if not did:
        return ""
    name = clean(event.name or "a call", LONGEST_NAME)
    return f"{name} {' and '.join(did)}" + (f" in {plain_time(took)}" if took else "")
