"""Lists in sentences."""

from __future__ import annotations

from collections.abc import Iterable

MOST_NAMED = 3


def listed(names: Iterable[str]) -> str:
    """The first of ``names``, and how many more there are."""
    found = list(names)
    more = len(found) - MOST_NAMED
    return ", ".join(found[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
