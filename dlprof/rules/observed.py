"""What the instrument of a rule saw of a case, in lines: how sure a finding is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dlprof.analysis.case_view import seen
from dlprof.analysis.quantity import plain_time, size_text
from dlprof.protocol.messages import DIAGNOSIS
from dlprof.session.evidence import Evidence, TraceEvent
from dlprof.session.model import Result
from dlprof.text.clean import clean

MOST = 12
MOST_CALLS = 3
LONGEST = 300
NOT_TOLD = {"create", "created_shape", "code", "processes", "points", "by_streams", "lost"}
"""Evidence that a reproducer shows, that the reason says, or that is too long for a line."""


def observations(result: Result, instrument: str) -> list[str]:
    """A line for each process that looked, with its verdict and the evidence for it."""
    looks = [
        f"{word}: {facts(evidence, result.untimed)}"
        for word, evidence in seen(getattr(result, instrument, None))
    ]
    more = [f"and {len(looks) - MOST:,} more processes"] if len(looks) > MOST else []
    if len(looks) > 1:
        looks = [f"process {at} of {len(looks)}: {one}" for at, one in enumerate(looks, 1)]
    elif instrument in DIAGNOSIS:
        looks = [f"{one} (seen once, at the first shape of the path)" for one in looks]
    elif len(result.rounds) > 1:
        looks = [f"the same in {len(result.rounds)} processes: {one}" for one in looks]
    return [*looks[:MOST], *more]


def facts(evidence: Evidence, untimed: bool = False) -> str:
    """Each value of an evidence with its name and unit, in one line; without times ``untimed``."""
    found = evidence.model_dump(exclude_none=True, exclude=NOT_TOLD)
    return clean(" ".join(", ".join(_facts(found, untimed)).split()), LONGEST)


def _facts(found: dict[str, Any], untimed: bool, before: str = "") -> Iterator[str]:
    for key, value in found.items():
        if untimed and key.endswith("_ns"):
            continue
        name = f"{before}{key.removesuffix('_ns').removesuffix('_bytes').replace('_', ' ')}"
        if isinstance(value, dict):
            yield from _facts(value, untimed, f"{name} ")
        else:
            yield f"{name} {_text(key, value)}"


def _text(key: str, value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"({', '.join(_text(key, part) for part in value)})"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float) and key.endswith("_ns"):
        return plain_time(value)
    if isinstance(value, int | float) and key.endswith("_bytes"):
        return size_text(int(value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)


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
