"""The sentence that answers a tour: how many pairs share memory, and which is the costliest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dlprof.reports.matrix import Grid, short

KINDS = ("view", "copy")
WORDS = {
    "no": "no path that is not refused",
    "wrong": "only paths that change values, dtype or shape",
}


def answer(grids: Sequence[Grid]) -> str:
    """How often the cheapest safe path is a view, a copy or nothing, with the worst of them."""
    cells = [
        (_name(grid, row, column, grids), cell)
        for grid in grids
        for (row, column), cell in grid.cells.items()
    ]
    if not cells:
        return "Nothing was measured."
    counts = Counter(short(cell.verdict) for _, cell in cells)
    what = "pairs" if all(grid.corner != "pair" for grid in grids) else "pairs and arrays"
    best = "have " + " and ".join(f"{counts.pop(kind, 0)} a {kind}" for kind in KINDS)
    rest = "".join(f"; {number} {_have(kind)}" for kind, number in counts.most_common())
    sentences = [f"Of {len(cells)} {what}, {best} as the cheapest safe path{rest}."]
    worst = max(cells, key=lambda found: found[1].cost_ns)
    if worst[1].code:
        sentences.append(
            f"The costliest of them is {worst[0]}: {worst[1].cost} for {worst[1].code},"
            f" a {worst[1].verdict}."
        )
    return " ".join(sentences)


def _have(kind: str) -> str:
    return f"have {WORDS[kind]}" if kind in WORDS else f"end in {kind}"


def _name(grid: Grid, row: str, column: str, grids: Sequence[Grid]) -> str:
    if grid.corner != "pair":
        return f"{row} → {column}"
    title = f" ({grid.title})" if len(grids) > 1 else ""
    return f"{row}, {column}{title}"
