"""The matrix on a terminal: verdicts, costs, the code of each cell, and reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from dlprof.cli.show import plain_table, say, text_of, width
from dlprof.reports.faults import suspected
from dlprof.reports.matrix import (
    Cell,
    Grid,
    called,
    cost,
    footnotes,
    grids,
    reasons,
    unlooked,
    word,
)
from dlprof.reports.row import Row
from dlprof.reports.terminal import circumstances_text, findings_text, printed, unmeasured_text
from dlprof.reports.tour import answer
from dlprof.session.model import Header
from dlprof.text.lists import listed

GAP = 2
MOST_CODES = 64
MOST_REASONS = 24


def show_matrix(header: Header, rows: Sequence[Row]) -> None:
    """Verdicts and costs of the cheapest right path of each pair, what it is, and the answer."""
    show_grids(header, rows)
    say(printed(f"\n{matrix_answer(header, rows)}", width()))


def matrix_answer(header: Header, rows: Sequence[Row]) -> str:
    """How many pairs share memory."""
    return answer(grids(suspected(rows, header.findings)))


def show_grids(header: Header, rows: Sequence[Row]) -> None:
    """The matrix without its answer."""
    found = grids(suspected(rows, header.findings))
    good, _ = called(unlooked(found))
    for grid in found:
        say(f"{grid.title}: what the cheapest {good} path of each pair gives\n")
        say(f"{_tables(grid, word)}\n")
        say(f"{grid.title}: what it costs\n")
        say(f"{_tables(grid, cost)}\n")
    notes = footnotes(found)
    if notes:
        say(printed("\n".join(notes), width()))
    say(f"{_codes(found)}\n")
    say(_reasons(found))
    say(circumstances_text(header, width()))
    say(unmeasured_text(rows))
    say(findings_text(header, rows, width()))


def _tables(grid: Grid, text: Callable[[Cell], str]) -> str:
    """The grid, in parts one below the other where it is too wide."""
    parts = _parts(grid, text)
    return "\n".join(_table(grid, columns, text) for columns in parts)


def _table(grid: Grid, columns: Sequence[str], text: Callable[[Cell], str]) -> str:
    table = plain_table(grid.corner, *columns)
    for row in grid.rows:
        found = [grid.cells.get((row, column)) for column in columns]
        table.add_row(row, *(text(cell) if cell else "-" for cell in found))
    return text_of(table)


def _parts(grid: Grid, text: Callable[[Cell], str]) -> Iterator[list[str]]:
    room = width() - max(len(row) for row in (*grid.rows, grid.corner)) - GAP
    part: list[str] = []
    used = 0
    for column in grid.columns:
        cells = [text(cell) for (_, where), cell in grid.cells.items() if where == column]
        needed = max(map(len, (*cells, column))) + GAP
        if part and used + needed > room:
            yield part
            part, used = [], 0
        part.append(column)
        used += needed
    if part:
        yield part


def _codes(found: Sequence[Grid]) -> str:
    """The code of each pair, and where it is the best."""
    places: dict[tuple[str, str], list[str]] = {}
    for grid in found:
        for (row, column), cell in grid.cells.items():
            pair = row if grid.corner == "pair" else f"{row} → {column}"
            if cell.code:
                places.setdefault((pair, cell.code), []).append(column)
    several = any(grid.corner == "pair" for grid in found)
    lines = [
        f"{pair}: {code}" + (f"  ({', '.join(dict.fromkeys(columns))})" if several else "")
        for (pair, code), columns in places.items()
    ]
    more = len(lines) - MOST_CODES
    rest = [f"… and {more:,} more in the session file"] if more > 0 else []
    return "\n".join([*lines[:MOST_CODES], *rest]) + "\n"


def _reasons(found: Sequence[Grid]) -> str:
    told = reasons(found)
    lines = [f"{why}: {_listed(places)}" for why, places in list(told.items())[:MOST_REASONS]]
    if len(told) > MOST_REASONS:
        lines.append(f"… and {len(told) - MOST_REASONS:,} more reasons in the session file")
    return printed("\n".join(lines), width()) + "\n" if lines else ""


def _listed(places: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(places))
    return listed(distinct)
