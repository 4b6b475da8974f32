"""The evidence of an instrument as text with units."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dlprof.judge.case_view import all_looks
from dlprof.protocol.messages import DIAGNOSIS
from dlprof.runner.evidence import Evidence, TraceEvent
from dlprof.runner.quantity import plain_time, size_text
from dlprof.runner.session import Result
from dlprof.text.clean import clean

LONGEST = 1200
NOT_SHOWN = {
    *("create", "created_shape", "code", "plain_create"),
    *("by_streams", "lost", "events", "moot", "error", "other_device", "strides"),
}
"""Evidence for reproducers, evidence that repeats the reason, and long lists."""


def facts(evidence: Evidence, untimed: bool = False) -> str:
    """Format all values of an evidence as ``name: value; …``, without times if ``untimed``."""
    values = evidence.model_dump(exclude_none=True, exclude=NOT_SHOWN)
    text = "; ".join(_facts(values, untimed))
    return clean(" ".join(text.split()), LONGEST)


def _facts(values: Mapping[str, Any], untimed: bool, prefix: str = "") -> Iterator[str]:
    for key, value in values.items():
        name = f"{prefix} {key.removesuffix('_ns').removesuffix('_bytes').replace('_', ' ')}"
        is_nothing_left = key.endswith("_per_conversion") and value == 0
        if is_nothing_left or (untimed and key.endswith("_ns")):
            continue
        if key == "reason":
            yield str(value)
        elif isinstance(value, bool):
            yield f"{name.strip()}: {'yes' if value else 'no'}"
        elif isinstance(value, dict):
            yield from _facts(value, untimed, name.strip())
        else:
            yield f"{name.strip()}: {_value(key, value)}"


def _value(key: str, value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_value(key, part) for part in value)
    if isinstance(value, dict):
        return ", ".join(f"{name} {_value(name, part)}" for name, part in value.items())
    if isinstance(value, int | float) and key.endswith("_ns"):
        return plain_time(value)
    if isinstance(value, int | float) and ("bytes_" in key or key.endswith("bytes")):
        return size_text(int(value))
    return f"{value:.3g}" if isinstance(value, float) else str(value)


MOST = 12
MOST_CALLS = 3


def observations(result: Result, instrument: str) -> list[str]:
    """Return a line for each process that looked, with its verdict and evidence."""
    name = instrument.replace("_", " ")
    looks = [
        f"{name} {word}: {facts(evidence, result.untimed)}".removesuffix(": ")
        for word, evidence in all_looks(getattr(result, instrument, None))
    ]
    if len(looks) > 1:
        looks = [f"process {index} of {len(looks)}: {look}" for index, look in enumerate(looks, 1)]
    elif instrument in DIAGNOSIS:
        looks = [f"{look} (seen once, at the first shape of the path)" for look in looks]
    elif len(result.rounds) > 1:
        looks = [f"the same in {len(result.rounds)} processes: {look}" for look in looks]
    return looks[:MOST]


def trace(result: Result) -> str:
    """Return ``The trace saw: cudaMemcpyAsync copied 64 MiB (device to host) in 12 ms.``

    It names the longest calls that waited or copied; empty if there are none.
    """
    events = (result.trace.evidence.events if result.trace is not None else None) or ()
    ranked = sorted(events, key=lambda event: -(event.duration_ns or 0.0))
    texts = [text for event in ranked if (text := _call(event))]
    return f"The trace saw: {', '.join(texts[:MOST_CALLS])}." if texts else ""


def _call(event: TraceEvent) -> str:
    effects = ["waited"] if event.waited else []
    if event.bytes and event.direction:
        effects.append(f"copied {size_text(int(event.bytes))} ({event.direction})")
    # A wait takes as long as the queue of the trace.
    took = f" in {plain_time(event.duration_ns)}" if event.duration_ns and not event.waited else ""
    return f"{event.name or 'a call'} {' and '.join(effects)}{took}" if effects else ""
