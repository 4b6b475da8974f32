"""Evidence of any form as lines of text: the unit stands in the name, ``cost_ns``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dlprof.analysis.case_view import number
from dlprof.analysis.quantity import plain_time, significant, size_text
from dlprof.text.clean import clean

WORDS = {
    "cost_ns": "what it costs per call",
    "idle_ns": "the call with an empty queue",
    "loaded_ns": "the call behind queued work",
    "queued_ns": "length of the queued work",
    "wrong_values": "wrong values were read",
    "slope": "slope of the call's time over that of the queue",
    "streams": "on which streams",
    "waits": "what it waits for besides",
    "slow_ns": "the slow path, per call",
    "slow_fastest_mode_ns": "the slow path, per call in its fastest mode",
    "fast_ns": "the fastest path that gives the same, per call",
    "fast_slowest_mode_ns": "the fastest path that gives the same, per call in its slowest mode",
    "copy_ns": "the copy, per call",
    "copy_fastest_mode_ns": "the copy, per call in its fastest mode",
    "view_ns": "the view, per call",
    "view_slowest_mode_ns": "the view, per call in its slowest mode",
    "there_ns": "there, by the best path",
    "there_fastest_mode_ns": "there, by the best path in its fastest mode",
    "back_ns": "back, by the best path",
    "back_slowest_mode_ns": "back, by the best path in its slowest mode",
    "host_ns": "until the call returns",
    "ready_ns": "until the values are there",
    "documented": "the documentation says",
    "processes": "processes that looked",
    "broken": "processes in which it was not so",
    "peak_arrays": "memory at the peak, in arrays",
    "refused_ns": "time of the refused request",
    "size_bytes": "size at which it was seen",
    "bytes_per_conversion": "memory left by each conversion",
    "references_per_conversion": "references to the source left by each conversion",
    "objects_per_conversion": "blocks of Python's memory left by each conversion",
    "conversions": "conversions that were counted",
    "copy_alignment_bytes": "copies began at multiples of at most",
    "view_alignment_bytes": "views began at multiples of at least",
    "source_writable": "the source can be written",
    "result_writable": "the result can be written",
}
"""What the names in the evidence of a finding mean."""

MOST_ITEMS = 12
DEEPEST = 3
DIGITS = 3
"""Of plain numbers; times have as many as their interval is known to support."""
MOST_BYTES = 1 << 63


def lines(evidence: Mapping[str, Any]) -> list[tuple[str, str]]:
    """A name for people and a value with its unit, for each key."""
    return [
        (WORDS.get(str(key)) or name_text(str(key)), value_text(str(key), value))
        for key, value in evidence.items()
    ]


def name_text(key: str) -> str:
    """``slow_ns`` is ``slow``: the value says the unit."""
    word = clean(key, 60)
    for unit in ("_ns", "_bytes", *(("_s",) if _seconds(word) else ())):
        word = word.removesuffix(unit)
    return word.replace("_", " ")


def value_text(key: str, value: Any, depth: int = 0) -> str:
    """A value as text; lists and mappings in brackets, and cut where they are long or deep."""
    if value is None or isinstance(value, bool):
        return {None: "-", True: "yes", False: "no"}[value]
    if (known := number(value)) is not None:
        return _number(key, known)
    if depth >= DEEPEST:
        return "…"
    if isinstance(value, Mapping):
        return _mapping(value, depth + 1)
    if isinstance(value, list | tuple):
        parts = [value_text(key, part, depth + 1) for part in value[:MOST_ITEMS]]
        text = (", ".join(parts) or "-") + _more(len(value))
        return f"({text})" if depth else text
    return clean(str(value))


def _mapping(value: Mapping[str, Any], depth: int) -> str:
    parts = [
        f"{name_text(str(name))}: {value_text(str(name), part, depth)}"
        for name, part in list(value.items())[:MOST_ITEMS]
    ]
    return ("; ".join(parts) or "-") + _more(len(value))


def _number(key: str, value: float) -> str:
    if key.endswith("_ns"):
        return plain_time(value)
    if _seconds(key):
        return f"{int(value):,} s" if value == int(value) else f"{significant(value, 3)} s"
    in_bytes = key.endswith("_bytes") or key == "bytes_per_conversion"
    if in_bytes and 0 <= value < MOST_BYTES:
        return size_text(int(value))
    if value == int(value) and abs(value) < MOST_BYTES:
        return str(int(value))
    return significant(value, DIGITS)


def _seconds(key: str) -> bool:
    """``limit_s`` is in seconds, ``gb_per_s`` is not."""
    return key.endswith("_s") and not key.endswith("_per_s")


def _more(count: int) -> str:
    return f" and {count - MOST_ITEMS:,} more" if count > MOST_ITEMS else ""
