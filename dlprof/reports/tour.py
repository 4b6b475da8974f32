"""The sentence that answers a tour: how many pairs share memory, and which is the costliest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dlprof.reports.matrix import Grid, called, short, unlooked

KINDS = ("view", "copy")
WORDS = {
    "no": "no path that is not refused",
    "none": "no path that works",
    "crash": "only paths that crash",
    "skipped": "only paths that were not tried",
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
    text = (
        f"Of {len(cells)} {what}, {views} {_have(views)} a view and {copies} a copy as the"
        f" cheapest {good} path{why}{rest}."
    )
    right = [found for found in cells if found[1].verdict in KINDS]
    if right:
        worst = max(right, key=lambda found: found[1].cost_ns)
        text += (
            f" The costliest of them is {worst[0]}: {worst[1].cost} for {worst[1].code},"
            f" a {worst[1].verdict}."
        )
    return text


def _have(number: int) -> str:
    return "has" if number == 1 else "have"


def _name(grid: Grid, row: str, column: str, grids: Sequence[Grid]) -> str:
    if grid.corner != "pair":
        return f"{row} → {column}"
    title = f" ({grid.title})" if len(grids) > 1 else ""
    return f"{row}, {column}{title}"
