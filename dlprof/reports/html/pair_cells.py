"""The matrix: for each producer and consumer the cheapest right path, and what it does.

It is called safe where everything was looked at that could make it unsafe.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TypeVar

from dlprof.analysis.quantity import brief_text
from dlprof.reports.cell_text import DISTURBED, WHY_DISTURBED, WHY_SCATTERED, why_not_known
from dlprof.reports.row import Row, trusted
from dlprof.text.lists import listed

Key = TypeVar("Key", bound=Hashable)

AXES = ("environment", "layout", "dtype", "shape", "device")
"""What may differ between the arrays of a pair; the first that does becomes the columns."""

WORDS = {"unsupported": "no", "crashed": "crash", "ok": "no time"}
"""Short, since eight layouts stand side by side."""

PARTLY = "not everything was looked at"


@dataclass(frozen=True)
class Cell:
    """What the best path of a pair does, and what it costs; else why there is none.

    ``cost_ns`` is the time in its slowest mode.
    """

    verdict: str
    cost: str
    code: str
    reason: str = ""
    cost_ns: float = 0.0
    unlooked: str = ""
    """What keeps it from being called safe: that something was not looked at."""
    depends: str = ""
    """How view or copy depends on where the source begins, in words; empty where it does not."""
    right: bool = False
    """Whether the path keeps shape, dtype and values, and nothing is known against it."""
    doubt: str = ""
    """Why the time is not known to be the path's own, in a word; empty where it is."""


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
    """The cheapest right path; else the cheapest that was measured, else why there is none."""
    best = best_of(rows)
    if best is not None:
        return _cell_of(best)
    statuses = sorted({row.status for row in rows})
    verdict = statuses[0] if len(statuses) == 1 else "none"
    reasons = [row.why_lost for row in rows if row.why_lost]
    # The reason of most paths: one way may be missing for a reason of its own.
    reason = max(reasons, key=reasons.count) if reasons else ""
    return Cell(verdict, "-", "", reason)


def best_of(rows: Sequence[Row]) -> Row | None:
    """The cheapest right row; else the cheapest that was measured, if there is any.

    The time of a path that is a view of aligned memory only is that of a copy where the processes
    happened to get other memory. So it is taken before one that copies whatever it is given, where
    copying is what takes the time: else the same pair were a copy with one seed and a view with
    the next.
    """
    measured = [row for row in rows if row.ready is not None]
    right = trusted(measured)
    best = min(right or measured, key=lambda row: row.cost_ns, default=None)
    if best is None or not right or best.size_bytes < COPYING_BYTES:
        return best
    if best.owner != "copy" or best.depends:
        return best
    viewed = [row for row in right if row.is_view_if_aligned and row.owner != "view"]
    return min(viewed, key=lambda row: row.cost_ns, default=best)


COPYING_BYTES = 64 * 2**10
"""From so many bytes on a copy takes longer than the call around it."""


def called(unlooked: Iterable[str]) -> tuple[str, str]:
    """``safe``, or ``right`` and why no more than that, of paths that miss so much."""
    reasons = set(unlooked)
    if reasons <= {""}:
        return "safe", ""
    return "right", f" ({reasons.pop() if len(reasons) == 1 else PARTLY})"


def unlooked(found: Iterable[Grid]) -> list[str]:
    """What was not looked at of each cell's path."""
    return [cell.unlooked for grid in found for cell in grid.cells.values() if cell.code]


def _cell_of(best: Row) -> Cell:
    right = best.safe and not best.unchecked
    return Cell(
        _word(best),
        _cost(best),
        best.code,
        _why(best),
        best.ready.modes_ns[1] if best.ready is not None else 0.0,
        best.unlooked if right else "",
        best.depends,
        right,
        "" if best.ready is None or best.is_known else why_not_known(best),
    )


def _why(best: Row) -> str:
    """What is wrong with it; empty for a right one."""
    if best.changed or best.reason:
        return "; ".join(best.changed) or str(best.reason)
    if best.faults:
        return ", ".join(best.faults)
    if best.promise_broken:
        return f"documented: {best.promise}"
    return f"its values could not be checked: {best.unchecked}" if best.unchecked else ""


def _cost(row: Row) -> str:
    return "-" if row.ready is None else brief_text(row.ready, row.process_medians_ns)


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
    if row.status != "ok":
        return row.status
    if row.suspect or row.promise_broken:
        return "unsafe"
    if row.unseen:
        return "unseen"
    if row.unchecked:
        return "unchecked"
    return "view" if row.is_view_if_aligned else row.owner


def word(cell: Cell) -> str:
    """The verdict in short, with a star where it depends on where the source begins."""
    return short(cell.verdict) + ("*" if cell.depends and cell.right else "")


def cost(cell: Cell) -> str:
    """The time, with a question mark where it is not known to be the path's own."""
    return f"{cell.cost}?" if cell.doubt else cell.cost


def footnotes(found: Sequence[Grid]) -> list[str]:
    """What the star means; of which pairs, where it means several things. Then why a time has a
    question mark.
    """
    return [*_starred(found), *_doubted(found)]


def _doubted(found: Sequence[Grid]) -> list[str]:
    told: dict[str, list[str]] = {}
    for grid in found:
        for (row, column), one in grid.cells.items():
            if one.doubt:
                why = WHY_DISTURBED if one.doubt == DISTURBED else WHY_SCATTERED
                told.setdefault(why, []).append(_where(grid, row, column))
    return [f"? {why}: {listed(places)}" for why, places in told.items()]


def _starred(found: Sequence[Grid]) -> list[str]:
    told: dict[str, list[str]] = {}
    for grid in found:
        for (row, column), one in grid.cells.items():
            if one.depends and one.right:
                # Which of several paths that cost the same is told must not change the note.
                means = ALIGNED if one.verdict == "view" else one.depends
                told.setdefault(means, []).append(_where(grid, row, column))
    if len(told) == 1:
        return [f"* {depends}" for depends in told]
    return [f"* {depends}: {listed(places)}" for depends, places in told.items()]


ALIGNED = (
    "a view where the source begins at a multiple of 64 bytes; elsewhere a copy, or refused. Its"
    " time is that of what the processes happened to get"
)
