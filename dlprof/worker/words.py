"""An error in its own words, whatever they are."""

from __future__ import annotations

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
