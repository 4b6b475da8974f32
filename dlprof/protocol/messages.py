"""Names and words that parent and worker use in their messages."""

from __future__ import annotations

from typing import Any

DIAGNOSIS = ("ordering", "alignment", "peak_memory", "early_write", "lifetime")
"""Instruments that may crash or hang where timing did not: they come after all times."""

AFTER_DROP = "lifetime after drop"
"""The stage in which a result is read whose source is gone: a worker that dies in it dangled."""

LONGEST = 2000


def words(error: BaseException) -> str:
    """The type and the message of an error, cut where it would fill the report."""
    kind = type(error).__name__
    try:
        text = str(error).strip()
    except Exception:  # noqa: BLE001 - the error is a framework's, and so is its __str__
        return f"{kind}, whose message cannot be shown"
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}… ({len(text):,} characters)"
    return f"{kind}: {text}" if text else kind


def unknown(reason: str) -> dict[str, Any]:
    """The answer of an instrument that cannot tell."""
    return {"verdict": "unknown", "evidence": {"reason": reason}}
