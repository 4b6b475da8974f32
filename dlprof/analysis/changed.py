"""What a conversion changed besides making its result, in words: kinds of *values*' ``changed``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

SOURCE, SOURCE_WRITABLE = "source", "source_writable"
EARLIER_RESULT, AFTER_WRITE = "earlier_result", "after_write"


class Change(NamedTuple):
    """Words for a change: of one path, of several, and as what did not stay."""

    does: str
    do: str
    lost: str


CHANGES: Mapping[str, Change] = {
    SOURCE: Change("changes its source", "change their source", "values of its source"),
    SOURCE_WRITABLE: Change(
        "changes whether its source can be written",
        "change whether their source can be written",
        "whether its source can be written",
    ),
    EARLIER_RESULT: Change(
        "overwrites its earlier result",
        "overwrite their earlier results",
        "values of an earlier result",
    ),
    AFTER_WRITE: Change(
        "gives old values of a source that was written since an earlier call",
        "give old values of a source that was written since an earlier call",
        "values written to its source after an earlier call",
    ),
}
"""Worst first."""


def first(changed: Mapping[str, Any]) -> str | None:
    """The worst of what was changed besides the result; None if nothing was."""
    return next((kind for kind in CHANGES if kind in changed), None)


def extent(kind: str, detail: Any) -> str:
    """``1 of 16,384 values``, or what the evidence says instead; empty if it says nothing."""
    if kind == SOURCE_WRITABLE:
        words = {(True, False): "it is read-only now", (False, True): "it was read-only"}
        pair = tuple(detail) if isinstance(detail, list) else ()
        return next((text for known, text in words.items() if known == pair), "")
    if not isinstance(detail, Mapping):
        return ""
    if detail.get("same_address") is True:
        return "two held copies are at one address"
    counts = detail.get("different"), detail.get("of")
    if not all(isinstance(count, int) for count in counts):
        return ""
    return "{:,} of {:,} values".format(*counts)


def lost(kind: str, detail: Any) -> str:
    """What did not stay as it was, as a noun: ``1 of 16,384 values of its source``."""
    noun, told = CHANGES[kind].lost, extent(kind, detail)
    return f"{told}{noun.removeprefix('values')}" if told.endswith("values") else noun
