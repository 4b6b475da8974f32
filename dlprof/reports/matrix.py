"""The matrix: for each producer and consumer the cheapest safe path, and what it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dlprof.quantity import plain_time
from dlprof.reports.row import Row


@dataclass(frozen=True)
class Cell:
    """What the best path of a pair does, and what it costs."""

    verdict: str
    cost: str
    code: str


def cells(rows: Sequence[Row]) -> dict[str, Cell]:
    """The cell of each pair, by the pair's text."""
    pairs: dict[str, list[Row]] = {}
    for row in rows:
        pairs.setdefault(row.pair, []).append(row)
    return {pair: cell(group) for pair, group in pairs.items()}


def cell(rows: Sequence[Row]) -> Cell:
    """The cheapest safe path; else the cheapest that was measured, else why there is none."""
    measured = [row for row in rows if row.ready is not None]
    for group in ([row for row in measured if row.safe], measured):
        if group:
            best = min(group, key=lambda row: row.cost_ns)
            return Cell(_word(best), plain_time(best.cost_ns), best.code)
    statuses = sorted({row.status for row in rows})
    return Cell(statuses[0] if len(statuses) == 1 else "none", "-", "")


def _word(row: Row) -> str:
    if row.changed:
        return "wrong"
    return row.owner if row.status == "ok" else row.status
