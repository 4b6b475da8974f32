"""The sentence that answers a tour: how many pairs share memory, and which is the costliest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dlprof.reports.matrix import Cell, Grid, called, short, unlooked, word

KINDS = ("view", "copy")
GIVES = {
    "view": "a view",
    "copy": "a copy",
    "varies": "a view in some processes and a copy in others",
}
WORDS = {
    "no": "no path that is not refused",
    "none": "no path that works",
    "crash": "only paths that crash",
    "skipped": "only paths that were not tried",
    "timeout": "only paths that give no answer in time",
    "invalid": "only paths whose measurement is not valid",
    "no time": "only paths of which no ready time is known",
    "unchecked": "one whose values could not be checked",
    "wrong": "only paths that change values, dtype or shape",
    "unsafe": "only paths that a rule calls wrong or unsafe",
    "unseen": "only paths that leave nothing behind to look at",
    "varies": "one that is a view in some processes and a copy in others",
    "?": "one of which view or copy is unknown",
    "-": "one of which view or copy is unknown",
}


def answer(grids: Sequence[Grid]) -> str:
    """How often the cheapest right path is a view, a copy or nothing, with the worst of them."""
    cells = [
        (_name(grid, row, column, grids), cell)
        for grid in grids
        for (row, column), cell in grid.cells.items()
    ]
    if not cells:
        return "Nothing was measured."
    counts = Counter(short(cell.verdict) for _, cell in cells)
    what = "pairs" if all(grid.corner != "pair" for grid in grids) else "pairs and arrays"
    views, copies = (counts.pop(kind, 0) for kind in KINDS)
    rest = "".join(f"; {n} {_have(n)} {WORDS.get(kind, kind)}" for kind, n in counts.most_common())
    good, why = called(unlooked(grids))
    return (
        f"Of {len(cells)} {what}, {views} {_have(views)} a view{_starred(cells)} and {copies} a"
        f" copy as the cheapest {good} path{why}{rest}.{_costliest(cells)}"
    )


def _starred(cells: Sequence[tuple[str, Cell]]) -> str:
    """How many of the views are one of some memory only."""
    number = sum(cell.verdict == "view" and word(cell).endswith("*") for _, cell in cells)
    if not number:
        return ""
    return f" ({number} of them, with a star, only where the source is aligned)"


def _costliest(cells: Sequence[tuple[str, Cell]]) -> str:
    """The right path that takes longest, in its slowest mode, whatever it gives.

    One whose time is not known to be its own only where there is no other.
    """
    right = [found for found in cells if found[1].right]
    if not right:
        return ""
    known = [found for found in right if not found[1].doubt]
    name, worst = max(known or right, key=lambda found: found[1].cost_ns)
    time = f"{worst.cost} ({worst.doubt})" if worst.doubt else worst.cost
    return f" The costliest of them is {name}: {time} for {worst.code}, {_kind(worst)}."


def _kind(cell: Cell) -> str:
    if cell.verdict == "view" and cell.depends:
        return "a view where the source is aligned"
    return GIVES.get(cell.verdict, "of which view or copy is unknown")


def _have(number: int) -> str:
    return "has" if number == 1 else "have"


def _name(grid: Grid, row: str, column: str, grids: Sequence[Grid]) -> str:
    if grid.corner != "pair":
        return f"{row} → {column}"
    title = f" ({grid.title})" if len(grids) > 1 else ""
    return f"{row}, {column}{title}"
