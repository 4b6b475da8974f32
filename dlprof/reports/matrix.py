"""The matrix: for each producer and consumer the cheapest safe path, and what it does."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TypeVar

from dlprof.quantity import brief_text
from dlprof.reports.row import Row

Key = TypeVar("Key", bound=Hashable)

AXES = ("environment", "layout", "dtype", "shape", "device")
"""What may differ between the arrays of a pair; the first that does becomes the columns."""

WORDS = {"unsupported": "no", "crashed": "crash"}
"""Short, since eight layouts stand side by side."""


@dataclass(frozen=True)
class Cell:
    """What the best path of a pair does, and what it costs; else why there is none."""

    verdict: str
    cost: str
    code: str
    reason: str = ""
    cost_ns: float = 0.0


@dataclass(frozen=True)
class Grid:
    """Cells by row and column, under the names of both. ``corner`` says what stands where."""

    title: str
    corner: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: dict[tuple[str, str], Cell]


def grids(rows: Sequence[Row]) -> list[Grid]:
    """Producers down and consumers across; where the arrays differ, pairs down and what differs
    across, a grid for each value of what else differs.
    """
    differs = [axis for axis in AXES if len({getattr(row, axis) for row in rows}) > 1]
    if not differs:
        return [_square(rows)] if rows else []
    across, *rest = differs
    groups = _grouped(rows, lambda row: tuple(str(getattr(row, axis)) for axis in rest))
    columns = tuple(dict.fromkeys(str(getattr(row, across)) for row in rows))
    return [
        _table(group, across, columns, _title(rows, differs, key)) for key, group in groups.items()
    ]


def cells(rows: Sequence[Row]) -> dict[str, Cell]:
    """The cell of each pair, by the pair's text."""
    return {pair: cell(group) for pair, group in _grouped(rows, attrgetter("pair")).items()}


def cell(rows: Sequence[Row]) -> Cell:
    """The cheapest safe path; else the cheapest that was measured, else why there is none."""
    measured = [row for row in rows if row.ready is not None]
    for group in ([row for row in measured if row.safe], measured):
        if group:
            best = min(group, key=lambda row: row.cost_ns)
            reason = "; ".join(best.changed) or (best.reason or "")
            return Cell(_word(best), _cost(best), best.code, reason, best.cost_ns)
    statuses = sorted({row.status for row in rows})
    verdict = statuses[0] if len(statuses) == 1 else "none"
    reasons = [row.reason for row in rows if row.reason]
    # The reason of most paths: one way may be missing for a reason of its own.
    reason = max(reasons, key=reasons.count) if reasons else ""
    return Cell(verdict, "-", "", reason)


def _cost(row: Row) -> str:
    return "-" if row.ready is None else brief_text(row.ready)


def short(verdict: str) -> str:
    return WORDS.get(verdict, verdict)


def reasons(found: Sequence[Grid]) -> dict[str, list[str]]:
    """Why cells hold no view and no copy: for each verdict and reason, where."""
    told: dict[str, list[str]] = {}
    for grid in found:
        for (row, column), one in grid.cells.items():
            if one.reason or one.verdict not in ("view", "copy"):
                why = f"{short(one.verdict)}: {one.reason or 'no reason given'}"
                told.setdefault(why, []).append(_where(grid, row, column))
    return told


def _where(grid: Grid, row: str, column: str) -> str:
    if grid.corner != "pair":
        return f"{row} → {column}"
    return f"{row} {column}"


def _square(rows: Sequence[Row]) -> Grid:
    groups = _grouped(rows, attrgetter("frameworks"))
    found: dict[str, Cell] = {pair: cell(group) for pair, group in groups.items()}
    sides = {pair: tuple(pair.split(" → ", 1)) for pair in found}
    producers = tuple(dict.fromkeys(side[0] for side in sides.values()))
    consumers = tuple(dict.fromkeys(side[-1] for side in sides.values()))
    return Grid(
        _title(rows, [], ()),
        "from \\ to",
        producers,
        consumers,
        {(sides[pair][0], sides[pair][-1]): one for pair, one in found.items()},
    )


def _table(rows: Sequence[Row], across: str, columns: tuple[str, ...], title: str) -> Grid:
    groups = _grouped(rows, lambda row: (row.frameworks, str(getattr(row, across))))
    found = {where: cell(group) for where, group in groups.items()}
    return Grid(title, "pair", tuple(dict.fromkeys(where[0] for where in found)), columns, found)


def _title(rows: Sequence[Row], differs: Sequence[str], rest: tuple[str, ...]) -> str:
    """What all cells have in common, in the order in which an array is told of."""
    found = dict(zip(differs[1:], rest, strict=True))
    for axis in AXES:
        if axis not in differs:
            found[axis] = getattr(rows[0], axis)
    words = [found[axis] for axis in ("shape", "dtype", "layout") if axis in found]
    where = f"on {found['device']}" if "device" in found else ""
    inside = f"in {found['environment']}" if found.get("environment") else ""
    return " ".join(word for word in (*words, where, inside) if word)


def _grouped(rows: Sequence[Row], key: Callable[[Row], Key]) -> dict[Key, list[Row]]:
    found: dict[Key, list[Row]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


def _word(row: Row) -> str:
    if row.changed:
        return "wrong"
    return row.owner if row.status == "ok" else row.status
