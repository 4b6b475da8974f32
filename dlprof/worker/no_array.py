"""No array: does the conversion give something else, of which nothing can be looked at?

Objects of Python itself are arrays only of a probe that says so of them.
"""

from __future__ import annotations

from typing import Any

from dlprof.worker.subject import Subject


def reason(subject: Subject, result: Any) -> str:
    """Why a result of the conversion is nothing to look at, in words; empty for an array."""
    if not subject.import_.returns_array:
        return ""
    if getattr(type(result), "__module__", None) != "builtins":
        return ""
    try:
        subject.consumer.dtype(result)
        subject.consumer.pointer(result)
    except Exception:  # noqa: BLE001 - a foreign probe: that it cannot tell is the answer
        kind = type(result).__name__
        given = "None" if result is None else f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
        return f"the conversion gives {given}, which is no array of {subject.consumer.name}"
    return ""
