"""Many environments as a document: the paths that differ first, then the others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dlprof.compare.environments import (
    BY_ADDRESS,
    MISSING,
    Cell,
    Environments,
    Row,
    cases_of,
)
from dlprof.jobs.bisect import Tried
from dlprof.report.document import Answer, Column, Document, Section, Table, Tone
from dlprof.report.document import Cell as Shown
from dlprof.report.paths import TONES
from dlprof.runner.axes import shape_text
from dlprof.runner.quantity import plain_time
from dlprof.runner.session import pair_text
from dlprof.text.clean import counted, listed

SCHEMA = "dlprof.environments/1"
MOST_COLUMNS = 6
"""Of the first screen. If there are more, it shows the ends and the newest that differ."""
STAR = f"{BY_ADDRESS} The address of the array decides: at others it is a copy, or refused."


def environments_document(found: Environments) -> Document:
    """Show what differs between environments, and in full every path."""
    differ, same = found.rows[: found.different], found.rows[found.different :]
    first = (_table(one, MOST_COLUMNS) for one in found.of_pairs(differ))
    parts = {"Paths that differ": differ, "Paths that are the same": same}
    tables = {heading: tuple(map(_table, found.of_pairs(rows))) for heading, rows in parts.items()}
    has_star = any(BY_ADDRESS in cell.word for row in found.rows for cell in row.cells.values())
    return Document(
        title=counted(len(found.columns), "environment"),
        context=listed(
            f"{axis}: {len({facts.get(axis, MISSING) for facts in found.columns})}"
            for axis in found.axes
        ),
        scope=counted(found.sessions, "session"),
        answers=(_answer(found),),
        tables=tuple(replace(table, is_summary=True) for table in first),
        marks=(STAR,) if has_star else (),
        sections=(
            *(Section(heading, blocks) for heading, blocks in tables.items() if blocks),
            Section("Environments", (_environments(found),)),
        ),
    )


def _answer(found: Environments) -> Answer:
    cases = counted(len(found.rows), "case")
    if not found.different:
        return Answer("no difference", "", note=f"in {cases}")
    times = sum(row.time_differs(found.columns) for row in found.rows[: found.different])
    told = f", {times:,} in time" if times else ""
    return Answer("differences", "", note=f"{found.different:,} of {cases}{told}")


def _table(found: Environments, most_columns: int | None = None) -> Table:
    """The rows of one pair. Arrays of a path with the same results share a row."""
    places = _few_columns(found, most_columns or len(found.columns))
    alike: dict[tuple[Any, ...], list[Row]] = {}
    for row in found.rows:
        words = tuple((place, cell.word, cell.rules) for place, cell in row.cells.items())
        alike.setdefault((row.case.code, words), []).append(row)
    arrays = {_array(row) for row in found.rows}
    heads = (found.label(place).replace(", ", " ") for place in places)
    return Table(
        (Column(pair_text(found.rows[0].case.pair)), *(Column(head) for head in heads)),
        tuple(
            (_path(rows, len(arrays)), *(_cell(rows[0].cells.get(place)) for place in places))
            for rows in alike.values()
        ),
    )


def _few_columns(found: Environments, most: int) -> Sequence[int]:
    """All columns. If there are more than ``most``: the ends, and the newest that differ."""
    last = len(found.columns) - 1
    if last < most:
        return range(last + 1)
    cells = [
        [row.cells[place].word if place in row.cells else "" for row in found.rows]
        for place in range(last + 1)
    ]
    steps = [place for place in range(1, last) if cells[place] != cells[place - 1]]
    return sorted({0, last, *steps[2 - most :]})


def _path(rows: Sequence[Row], arrays: int) -> Shown:
    more = f", +{len(rows) - 1} alike" if len(rows) > 1 else ""
    return Shown(rows[0].case.code, code=True, note=_array(rows[0]) + more if arrays > 1 else "")


def _array(row: Row) -> str:
    layout = "" if row.case.layout == "C" else f" {row.case.layout}"
    return f"{row.case.dtype} {shape_text(row.case.shape)}{layout}"


def _cell(cell: Cell | None) -> Shown:
    if cell is None:
        return Shown("-", "dim")
    time = "" if cell.median_ns is None else plain_time(cell.median_ns)
    is_bad = cell.rules or cell.word in ("wrong", "crash", "hangs")
    tone: Tone = "bad" if is_bad else TONES.get(cell.word.rstrip(BY_ADDRESS), "")
    return Shown(time, tone, note=" ".join((cell.word, *cell.rules)))


def _environments(found: Environments) -> Table:
    names = list(dict.fromkeys(name for facts in found.columns for name in facts))
    rows = tuple(tuple(Shown(facts.get(name, "-")) for name in names) for facts in found.columns)
    return Table(tuple(map(Column, names)), rows)


def render_json(found: Environments) -> str:
    """Render ``dlprof.environments/1``: the columns, and the rows with their cells."""
    content = {
        "schema": SCHEMA,
        "sessions": found.sessions,
        "axes": found.axes,
        "columns": list(map(dict, found.columns)),
        "rows": [
            {
                "case": row.case.model_dump(by_alias=True, mode="json"),
                "differs": at < found.different,
                "cells": {str(place): _json(cell) for place, cell in sorted(row.cells.items())},
            }
            for at, row in enumerate(found.rows)
        ],
    }
    return json.dumps(content, indent=1) + "\n"


def _json(cell: Cell) -> dict[str, Any]:
    return {
        "result": cell.word,
        "rules": cell.rules,
        "median_ns": cell.median_ns,
        "interval_ns": cell.interval_ns,
    }


def bisect_document(
    tried: Sequence[Tried], package: str, statement: str, pair: tuple[str, str]
) -> Document:
    """Show the releases that were tried, and the first that gives another result."""
    words = {True: Shown("good"), False: Shown("changed", "worse"), None: Shown("not known", "dim")}
    first_bad = next(one.version for one in tried if one.is_good is False)
    rows = tuple(
        (Shown(f"{package} {one.version}"), _tried(one), words[one.is_good]) for one in tried
    )
    return Document(
        title=pair_text(pair),
        scope=statement,
        context=f"{counted(len(tried), 'release')} tried",
        answers=(Answer("changed", f"{package} {first_bad}"),),
        tables=(Table((Column("release"), Column("result"), Column("")), rows),),
    )


def _tried(one: Tried) -> Shown:
    cases = cases_of(one.session) if one.session is not None else ()
    return next((_cell(cell) for _, cell in cases), Shown(one.reason or "?"))
