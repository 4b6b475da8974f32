"""What a conversion changed besides making its result, in words: kinds of *values*' ``changed``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from dlprof.session.evidence import Changed, Count

SOURCE, SOURCE_WRITABLE = "source", "source_writable"
EARLIER_RESULT, AFTER_WRITE = "earlier_result", "after_write"


class Change(NamedTuple):
    """Words for a change: of one path, and of several."""

    does: str
    do: str


CHANGES: Mapping[str, Change] = {
    SOURCE: Change("changes its source", "change their source"),
    SOURCE_WRITABLE: Change(
        "changes whether its source can be written",
        "change whether their source can be written",
    ),
    EARLIER_RESULT: Change("overwrites its earlier result", "overwrite their earlier results"),
    AFTER_WRITE: Change(
        "gives old values of a source that was written since an earlier call",
        "give old values of a source that was written since an earlier call",
    ),
}
"""Worst first."""


def first(changed: Changed | None) -> str | None:
    """The worst of what was changed besides the result; None if nothing was."""
    kinds = changed.kinds if changed is not None else ()
    return next((kind for kind in CHANGES if kind in kinds), None)


def extent(kind: str, changed: Changed) -> str:
    """``1 of 16,384 values``, or what the evidence says instead; empty if it says nothing."""
    if kind == SOURCE_WRITABLE:
        words: dict[tuple[bool | None, bool | None], str]
        words = {(True, False): "it is read-only now", (False, True): "it was read-only"}
        return words.get(changed.source_writable or (None, None), "")
    count: Count | None = getattr(changed, kind)
    if count is None:
        return ""
    if count.same_address:
        return "two held copies are at one address"
    if count.different is None or count.of is None:
        return ""
    return f"{count.different:,} of {count.of:,} values"
