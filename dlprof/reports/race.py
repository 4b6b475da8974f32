"""Which copies may be torn, since one like them was seen torn; and what is said of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dlprof.text.lists import listed

if TYPE_CHECKING:
    from dlprof.reports.row import Row

Key = tuple[str, ...]

RACE = "DLP020"
DOUBT = f"{RACE}?"
"""The mark of what was not seen torn itself."""
UNSEEN = (
    f"{DOUBT} not seen torn, but others into the framework were, and copies that were whole prove"
    " nothing"
)


def racing_of(torn: Row) -> tuple[Key, ...]:
    """What else may be torn: what returns early of the same consumer; and all of the pair, where a
    call was torn that has nothing to wait for.
    """
    consumer = torn.frameworks.rpartition(" → ")[2]
    early = (torn.environment, consumer, torn.device)
    return (early, (torn.pair, torn.device)) if torn.ends_whole else (early,)


def may_race(row: Row, racing: set[Key]) -> bool:
    """Whether it may copy as what was seen torn does: whole ones prove nothing then."""
    if row.is_step or not racing or (row.owner == "view" and not row.copies_elsewhere):
        return False
    return (row.pair, row.device) in racing or (not row.ends_whole and racing_of(row)[0] in racing)


def notes(rows: Iterable[Row]) -> list[str]:
    """What the mark of torn copies leaves open, and of which paths."""
    marked: dict[str, dict[str, None]] = {}
    for row in rows:
        if text := note(row):
            marked.setdefault(text, {})[row.code] = None
    ordered = sorted(marked.items(), key=lambda one: one[0] == UNSEEN)
    return [f"{text}: {listed(codes)}" for text, codes in ordered]


def note(row: Row) -> str:
    """What the mark of a torn copy leaves open of this path; empty without one, or if nothing."""
    if DOUBT in row.faults:
        return UNSEEN
    return f"{RACE} torn only where {row.torn_where}" if row.torn_where else ""


def is_unlooked_copy(row: Row) -> bool:
    """Whether it is a copy that may be late, and nobody looked: only what has nothing to wait for
    is known to end with a whole one.
    """
    return row.unwritten and not row.ends_whole


def only_races(row: Row) -> bool:
    """Whether nothing is known against it but that a write may tear it before it is waited for."""
    whole = row.status == "ok" and not row.unseen and not row.promise_broken
    return whole and bool(row.faults) and set(row.faults) <= {RACE, DOUBT}


def how_seen(row: Row) -> str:
    """The rule that says so, and where alone it was seen."""
    mark = DOUBT if DOUBT in row.faults else RACE
    return f"{mark}, seen only where {row.torn_where}" if row.torn_where else mark
