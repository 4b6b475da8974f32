"""Which copies may be torn, since one like them was seen torn."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dlprof.reports.row import Row

Key = tuple[str, ...]


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
