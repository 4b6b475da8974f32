"""What the instrument of a rule saw of a case, in lines: how sure a finding is."""

from __future__ import annotations

from dlprof.analysis.case_view import seen
from dlprof.analysis.quantity import plain_time, size_text
from dlprof.protocol.messages import DIAGNOSIS
from dlprof.rules.evidence_text import facts
from dlprof.session.evidence import TraceEvent
from dlprof.session.model import Result

WORDS = {
    "early_write": {
        "unsafe": "a write right after the call changed a copy",
        "safe": "a write right after the call changed no copy",
    },
    "refusal": {
        "unknown": "refused",
        "clean": "refused, and nothing stays behind",
        "retained": "refused, and something stays behind",
        "broken": "refused, and then another array does not convert",
    },
}
"""Verdicts that say little by themselves, by instrument."""
MOST = 12
MOST_CALLS = 3


def observations(result: Result, instrument: str) -> list[str]:
    """A line for each process that looked, with its verdict and the evidence for it."""
    looks = [
        f"{WORDS.get(instrument, {}).get(word, word)}: {facts(evidence, result.untimed)}"
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
    # How long a wait took is how much was queued for the trace.
    took = f" in {plain_time(event.duration_ns)}" if event.duration_ns and not event.waited else ""
    return f"{event.name or 'a call'} {' and '.join(did)}{took}" if did else ""
