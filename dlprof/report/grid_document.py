"""A grid of environments as a document: what changed and since when, then the cells."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dlprof.atlas.bisect import Found, Tried
from dlprof.atlas.cells import AT_BEST, BY_ADDRESS, QUESTIONS
from dlprof.atlas.cells import Cell as GridCell
from dlprof.atlas.changes import TIME, Change, word_text
from dlprof.atlas.grid import MISSING, Grid, Row
from dlprof.judge.slower import BETWEEN_SESSIONS
from dlprof.report.document import Answer, Column, Document, Lines, Section, Table, Tone, more_rows
from dlprof.report.document import Cell as Shown
from dlprof.report.paths import TONES
from dlprof.runner.axes import shape_text
from dlprof.runner.quantity import plain_time
from dlprof.runner.session import pair_text
from dlprof.text import json_text
from dlprof.text.clean import counted, listed

SCHEMA = "dlprof.grid/1"
FIRST_ROWS, ALL_ROWS = 12, 500
MOST_COLUMNS = 6
"""Of a table: if there are more, those where nothing changes are left out."""
MOST_DTYPES = 3
PLAIN = {"C", "aligned"}
"""Layouts that are not worth a word."""


@dataclass(frozen=True)
class Alike:
    """Changes of one pair with the same words."""

    changes: tuple[Change, ...]

    @property
    def first(self) -> Change:
        return self.changes[0]

    @property
    def arrays(self) -> str:
        """``bfloat16``, ``float32, F``; a number of dtypes where there are many."""
        dtypes = list(dict.fromkeys(one.row.case.dtype for one in self.changes))
        layouts = list(dict.fromkeys(one.row.case.layout for one in self.changes))
        told = ", ".join(dtypes) if len(dtypes) <= MOST_DTYPES else f"{len(dtypes)} dtypes"
        return told if {*layouts} & PLAIN else f"{told}, {', '.join(layouts)}"

    @property
    def codes(self) -> list[str]:
        return list(dict.fromkeys(one.row.case.code for one in self.changes))


def alike(changes: Sequence[Change]) -> list[Alike]:
    """Changes with the same words in one row, in the order of the first."""
    keyed = [
        ((one.row.pair, one.question, one.text, one.direction), one.row.case) for one in changes
    ]
    plain = {(key, case.code) for key, case in keyed if case.layout in PLAIN}
    found: dict[tuple[Any, ...], list[Change]] = {}
    for (key, case), one in zip(keyed, changes, strict=True):
        # What only another layout shows is a row of its own.
        found.setdefault((key, (key, case.code) in plain), []).append(one)
    return [Alike(tuple(group)) for group in found.values()]


def grid_document(grid: Grid, changes: Sequence[Change]) -> Document:
    """What a report over many environments says; the JSON has every cell."""
    groups, cells = alike(changes), tuple(_cells_tables(changes))
    is_long = len(groups) > FIRST_ROWS
    every = Section("All changes", (changes_table(groups, ALL_ROWS),))
    return Document(
        title=counted(len(grid.columns), "environment"),
        context=listed(_axis_text(grid, axis) for axis in grid.axes),
        scope=_sessions(grid),
        answers=(answer_of(grid, changes),),
        tables=(changes_table(groups, FIRST_ROWS), *cells) if groups else (),
        marks=marks_of(row for row, _ in changed_rows(changes)[:FIRST_ROWS]) if cells else (),
        sections=(
            *((every,) if is_long else ()),
            Section("Environments", (environments_table(grid),)),
            method_section(),
        ),
    )


def _cells_tables(changes: Sequence[Change]) -> Iterator[Table]:
    """What depends on the axis on which most depends, with a column for each value of that."""
    axes: dict[int, set[str]] = defaultdict(set)
    for one in changes:
        axes[id(one.row)].add(one.axis)
    for grid, rows in _by_pair(changes):
        counts = Counter(axis for row in rows for axis in axes[id(row)] if axis)
        for axis, _ in counts.most_common(1):
            chosen = {id(row) for row in rows if axes[id(row)] == {axis}}
            small = grid.by(axis)
            both = zip(grid.rows, small.rows, strict=True)
            fit = [new for old, new in both if id(old) in chosen]
            if fit:
                yield cells_table(small, fit, few_columns(small, fit, MOST_COLUMNS))


def _by_pair(changes: Iterable[Change]) -> list[tuple[Grid, list[Row]]]:
    found: dict[tuple[str, str], tuple[Grid, list[Row]]] = {}
    for row, grid in changed_rows(changes)[:FIRST_ROWS]:
        found.setdefault(row.pair, (grid, []))[1].append(row)
    return list(found.values())


STAR = "* The address of the array decides: at others it is a copy, or refused."
METHOD = (
    "An answer is compared where it is known: an instrument that did not look changes nothing.",
    f"{BY_ADDRESS[0]}: the address of the array decides.",
    "That a write tears a copy is seen by chance, and is no change here.",
    "Times are compared within one machine and one Python.",
    f"A time changed if it is {BETWEEN_SESSIONS} times as long, with intervals that do not meet.",
)


def marks_of(rows: Iterable[Row]) -> tuple[str, ...]:
    """What the star of a cell means, if a row has one."""
    cells = (cell for row in rows for cell in row.cells.values())
    return (STAR,) if any(cell.result in AT_BEST for cell in cells) else ()


def method_section() -> Section:
    return Section("How it is compared", (Lines(METHOD),))


def _sessions(grid: Grid) -> str:
    first, last = (moment[:10] for moment in grid.span)
    return f"{counted(grid.sessions, 'session')}, {first}" + (f" to {last}" * (first != last))


def _axis_text(grid: Grid, axis: str) -> str:
    values = {facts.get(axis, MISSING) for facts in grid.columns}
    return f"{axis}: {len(values)}"


def answer_of(grid: Grid, changes: Sequence[Change]) -> Answer:
    """How many paths changed, and how."""
    rows = len({id(one.row) for one in changes})
    of = f"{rows:,} of {counted(len(grid.rows), 'case')}"
    if not changes:
        return Answer("no change", "", note=f"in {counted(len(grid.rows), 'case')}")
    counts = Counter("times" if one.question == TIME else one.direction for one in changes)
    words = {"worse": "worse", "better": "better", "other": "other", "times": "of time"}
    told = ", ".join(f"{counts[name]:,} {word}" for name, word in words.items() if counts[name])
    return Answer("changes", "", note=f"{told}; in {of}")


def changed_rows(changes: Iterable[Change]) -> list[tuple[Row, Grid]]:
    """The rows that changed, worst first; of rows with equal cells the first."""
    found: dict[tuple[Any, ...], tuple[Row, Grid]] = {}
    for one in changes:
        cells = tuple((place, cell.words, cell.time) for place, cell in one.row.cells.items())
        found.setdefault((one.row.pair, one.row.case.code, cells), (one.row, one.grid))
    return list(found.values())


def changes_table(groups: Sequence[Alike], most: int) -> Table:
    titles = ("what changed", "path", "where")
    rows = tuple(change_row(group) for group in groups[:most])
    return Table(tuple(map(Column, titles)), rows, more_rows(len(groups), most))


def change_row(group: Alike) -> tuple[Shown, ...]:
    one, codes = group.first, group.codes
    tone: Tone = "" if one.direction == "other" else one.direction
    note = f"+{len(codes) - 1} alike" if len(codes) > 1 else ""
    where = f"{pair_text(one.row.pair)}, {group.arrays}"
    return Shown(one.text, tone), Shown(codes[0], code=True, note=note), Shown(where)


def few_columns(grid: Grid, rows: Sequence[Row], most: int) -> list[int]:
    """All columns; of more than ``most`` the ends, and the newest where an answer changes."""
    last = len(grid.columns) - 1
    if last < most:
        return [*range(last + 1)]
    words = [
        [row.cells[place].words if place in row.cells else () for row in rows]
        for place in range(last + 1)
    ]
    steps = [place for place in range(1, last + 1) if words[place] != words[place - 1]]
    around = sorted({*steps, *(place - 1 for place in steps)} - {0, last})
    return [0, *around[max(0, len(around) - most + 2) :], last]


def cells_table(grid: Grid, rows: Sequence[Row], columns: Sequence[int]) -> Table:
    """A row for each of ``rows``, with its cells in these columns of the grid."""
    title = Column(f"{pair_text(rows[0].pair)}, by {' / '.join(grid.axes)}")
    return Table(
        (title, *(Column(head_text(grid, place)) for place in columns)),
        tuple(
            (_path_cell(row), *(cell_text(row.cells.get(place)) for place in columns))
            for row in rows
        ),
    )


def head_text(grid: Grid, place: int) -> str:
    """``2.4.6 / 0.10.2``: the values of the axes, which the first column names."""
    return " / ".join(grid.columns[place].get(axis, "none") for axis in grid.axes)


def _path_cell(row: Row) -> Shown:
    case = row.case
    note = f"{case.dtype} {shape_text(case.shape)}" if case.survey else ""
    return Shown(case.code, code=True, note=note)


def cell_text(cell: GridCell | None) -> Shown:
    """The time and the result; what is worse than that stands in its place."""
    if cell is None:
        return Shown("-", "dim")
    shown = result_cell(cell)
    time = plain_time(cell.time.median_ns) if cell.time is not None else ""
    return Shown(time, shown.tone, under=shown.text)


def result_cell(cell: GridCell) -> Shown:
    """The result in a word, or what is worse than that."""
    is_dangling = cell.word("lifetime") == "dangling"
    bad = "wrong" if cell.word("values") == "wrong" else "dangling" * is_dangling
    result = cell.result or "?"
    if result in AT_BEST:
        result = f"{AT_BEST[result]}*"
    tone: Tone = "bad" if bad or result in ("crash", "hangs") else TONES.get(result, "")
    return Shown(bad or result, tone)


def environments_table(grid: Grid) -> Table:
    names = list(dict.fromkeys(name for facts in grid.columns for name in facts))
    rows = tuple(
        tuple(Shown(facts.get(name, "-")) for name in names) for facts in grid.columns[:ALL_ROWS]
    )
    more = more_rows(len(grid.columns), ALL_ROWS)
    return Table(tuple(map(Column, names)), rows, more)


def render_json(grid: Grid, changes: Sequence[Change]) -> Iterator[str]:
    """``dlprof.grid/1``: columns, rows with their cells, and changes."""
    head = {
        "schema": SCHEMA,
        "sessions": grid.sessions,
        "axes": grid.axes,
        "columns": list(map(dict, grid.columns)),
        "changes": [
            {
                "code": one.row.case.code,
                "pair": one.row.pair,
                "array": [shape_text(one.row.case.shape), one.row.case.dtype],
                "question": one.question,
                "text": one.text,
                "axis": one.axis or None,
                "since": one.since or None,
                "direction": one.direction,
            }
            for one in changes
        ],
    }
    yield json.dumps(head, indent=1)[:-2] + ',\n "rows": ['
    for at, row in enumerate(grid.rows):
        cells = {str(place): _cell_json(cell) for place, cell in sorted(row.cells.items())}
        content = {"case": row.case.model_dump(by_alias=True, mode="json"), "cells": cells}
        yield (",\n" if at else "\n") + json_text.dump(content)
    yield "\n]}\n"


def _cell_json(cell: GridCell) -> dict[str, Any]:
    answers = {
        name: word_text(name, word) if name != "result" else word
        for name, word in zip(QUESTIONS, cell.words, strict=True)
        if word
    }
    time = None if cell.time is None else cell.time._asdict()
    against = [f"{rule}{mark}" for rule, mark in cell.safety.marked]
    reasons = [*against, *filter(None, [cell.safety.unknown])]
    safety = {"level": cell.safety.level, "reasons": reasons}
    return {
        **answers,
        "safety": safety,
        "rules": cell.rules,
        "time": time,
        "reason": cell.reason or None,
    }


WORDS = {True: Shown("good"), False: Shown("changed", "worse"), None: Shown("not known", "dim")}


def bisect_document(found: Found, package: str, statement: str, pair: tuple[str, str]) -> Document:
    """What a search found for a path of a pair of frameworks."""
    rows = tuple(
        (Shown(f"{package} {one.version}"), Shown(_said(one, found.question)), WORDS[one.is_good])
        for one in found.tried
    )
    ends = {one.version: _said(one, found.question) for one in found.tried}
    note = ", ".join(f"{ends[one]} with {one}" for one in (found.last_good, found.first_bad))
    if found.untold:
        note += f"; or with {', '.join(found.untold)}, which told nothing"
    return Document(
        title=pair_text(pair),
        scope=statement,
        context=f"{len(found.tried)} releases tried",
        answers=(Answer("changed", f"{package} {found.first_bad}", note=note),),
        tables=(Table((Column("release"), Column("result"), Column("")), rows),),
    )


def _said(one: Tried, question: str) -> str:
    if one.cell is None:
        return one.reason
    if question in (TIME, "result"):
        return cell_text(one.cell).line
    return word_text(question, one.cell.words[QUESTIONS.index(question)])
