"""Which paths a trip may take: the cheapest safe one first; where none is safe, the cheapest right.

*Right* is a path that kept shape, dtype and values. What a rule calls unsafe of it is told with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from dlprof.reports.faults import RACE
from dlprof.reports.row import Row

Key = tuple[str, ...]
"""Producer and consumer, and the array: shape, dtype, layout, device, environment."""

GONE = ("DLP011", "DLP016")
"""Rules that say of a path that its values do not last, or that its process dies."""
BROKEN_PROMISE = "DLP018"


def key_of(row: Row) -> Key:
    producer, _, consumer = row.frameworks.partition(" → ")
    return producer, consumer, row.shape, row.dtype, row.layout, row.device, row.environment


def way_back(key: Key) -> Key:
    """The key of the same array the other way."""
    return (key[1], key[0], *key[2:])


def ranked(rows: Iterable[Row]) -> dict[Key, list[Row]]:
    """The paths of each direction and array, the best first: the safe ones, then those that are
    right, each by their cost.
    """
    found: dict[Key, list[Row]] = {}
    for row in sorted((row for row in rows if is_right(row)), key=attrgetter("cost_ns")):
        found.setdefault(key_of(row), []).append(row)
    return {key: sorted(paths, key=lambda row: not row.safe) for key, paths in found.items()}


def unsafe_text(row: Row) -> str:
    """``not safe: DLP020``, and of which other path that was found; empty for a safe path."""
    if row.safe:
        return ""
    seen = [rule for rule in row.faults if not rule.endswith("?")]
    other = [
        f"{rule[:-1]} of another copy of the pair" for rule in row.faults if rule.endswith("?")
    ]
    why = ", ".join(seen + other) or (BROKEN_PROMISE if row.promise_broken else "see the findings")
    return f"not safe: {why}"


def races(row: Row, rows: Iterable[Row]) -> bool:
    """Whether a copy of the row's pair was seen torn: the row's own would be none that is safe."""
    pair = row.pair, row.device
    return any((one.pair, one.device) == pair and RACE in one.faults for one in rows)


def is_right(row: Row) -> bool:
    """Whether it kept shape, dtype and values, and they last."""
    whole = row.status == "ok" and row.ready is not None and not row.changed and not row.unseen
    return whole and not set(GONE) & set(row.faults)
