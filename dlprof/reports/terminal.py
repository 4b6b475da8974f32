"""The report for a terminal: one table, what was not measured, and the answer."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dlprof.analysis.quantity import size_text, time_text
from dlprof.probes.base import DTYPES
from dlprof.reports import circumstances, findings, first_call, ingest, placement, steps
from dlprof.reports.answer import answers
from dlprof.reports.cell_text import (
    device_text,
    fault_text,
    kept_text,
    modes_text,
    owner_text,
    speed_text,
)
from dlprof.reports.faults import suspected
from dlprof.reports.footnotes import footnotes
from dlprof.reports.row import Row
from dlprof.session.model import Header
from dlprof.text.clean import first_line
from dlprof.text.lists import listed

MOST_ROWS = 60
MOST_REASONS = 12
MOST_ANSWERS = 8
MANY_COLUMNS = 3


@dataclass(frozen=True)
class Column:
    """A column: its title, its cell, and whether it is lifted into the heading when constant."""

    title: str
    cell: Callable[[Row], str]
    constant: bool = False
    right: bool = False


COLUMNS = (
    Column("pair", attrgetter("pair"), constant=True),
    Column("shape", attrgetter("shape"), constant=True, right=True),
    Column("dtype", attrgetter("dtype"), constant=True),
    Column("layout", attrgetter("layout"), constant=True),
    Column("device", attrgetter("device"), constant=True),
)


def render(header: Header, rows: Sequence[Row], width: int = 80, colour: bool = False) -> str:
    """The report as text of ``width`` columns, with ANSI colours if ``colour``."""
    return printed(compose(header, rows), width, colour)


def circumstances_text(header: Header, width: int = 80, colour: bool = False) -> str:
    """How it was measured, with what, and what was left out."""
    return printed(circumstances.compose(header), width, colour)


def findings_text(
    header: Header, rows: Sequence[Row], width: int = 80, colour: bool = False
) -> str:
    """The findings alone; ``rows`` are those of all results."""
    return printed(Group(*findings.compose(header.findings, rows)), width, colour)


def printed(renderable: RenderableType | str, width: int = 80, colour: bool = False) -> str:
    """Text of ``width`` columns, with ANSI colours if ``colour``, no blanks at line ends."""
    target = io.StringIO()
    console = Console(
        file=target,
        width=width,
        force_terminal=colour,
        color_system="standard" if colour else None,
        no_color=not colour,
        highlight=False,
        emoji=False,
        markup=False,
    )
    console.print(renderable)
    lines = (line.rstrip() for line in target.getvalue().splitlines())
    return "\n".join(lines) + "\n"


def unmeasured_text(rows: Sequence[Row]) -> str:
    """How many were measured, and how many were not and why, in one line each."""
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.status] = counts.get(row.status, 0) + 1
    return (
        f"{len(rows):,} cases: "
        + ", ".join(f"{n:,} {status}" for status, n in counts.items())
        + "\n"
    )


def compose(header: Header, rows: Sequence[Row]) -> RenderableType:
    rows = suspected(rows, header.findings)
    order = {array: index for index, array in enumerate(dict.fromkeys(row.array for row in rows))}
    measured = sorted(
        (row for row in rows if row.ready is not None and not row.is_step),
        key=lambda row: (order[row.array], row.cost_ns),
    )
    lost = [row for row in rows if row.ready is None]
    parts: list[RenderableType] = [_heading(header, rows)]
    if measured:
        parts.append(_table(measured[:MOST_ROWS], rows))
    if len(measured) > MOST_ROWS:
        parts.append(Text(f"… and {len(measured) - MOST_ROWS:,} more in the session file"))
    parts += steps.compose(rows)
    parts += reasons(lost, rows)
    notes, first = _notes(measured), first_call.compose(rows)
    parts += notes or ([Text()] if first else [])
    parts += first
    parts += ingest.compose(rows)
    parts += placement.compose(rows)
    if measured or header.findings or not rows:
        parts += findings.compose(header.findings, rows)
    parts.append(Text())
    found = answers(rows)
    parts += [_flush(Text(answer, style="bold")) for answer in found[:MOST_ANSWERS]]
    if len(found) > MOST_ANSWERS:
        parts.append(Text(f"… and {len(found) - MOST_ANSWERS:,} more arrays in the session file"))
    return Group(*parts)


def _heading(header: Header, rows: Sequence[Row]) -> Text:
    text = Text()
    if rows:
        fixed = [column.cell(rows[0]) for column in COLUMNS if _is_fixed(column, rows)]
        size = (
            f" ({size_text(rows[0].size_bytes)})"
            if len({row.size_bytes for row in rows}) == 1 and _is_size_known(rows[0])
            else ""
        )
        text.append(("  ".join(fixed) + size).lstrip() + "\n", style="bold")
    return text.append_text(circumstances.compose(header))


def _is_size_known(row: Row) -> bool:
    """An array without bytes has no elements; else the dtype is one that dlprof does not know."""
    return row.size_bytes > 0 or row.dtype in DTYPES


def _is_fixed(column: Column, rows: Sequence[Row]) -> bool:
    return column.constant and len({column.cell(row) for row in rows}) == 1


def _table(measured: Sequence[Row], rows: Sequence[Row]) -> Table:
    differs = [column for column in COLUMNS if not _is_fixed(column, rows)]
    in_blocks = bool(differs) and _all_repeat(measured)
    columns = [*([] if in_blocks else varying(rows)), *measures_of(rows)]
    table = Table(box=None, padding=(0, 1, 0, 0), show_edge=False, header_style="dim")
    table.add_column("path", overflow="fold", ratio=1, no_wrap=False)
    for column in columns:
        table.add_column(column.title, justify="right" if column.right else "left", no_wrap=True)
    before = None
    for row in measured:
        if before is not None and before != row.array:
            table.add_row()
        if in_blocks and before != row.array:
            table.add_row(Text("  ".join(column.cell(row) for column in differs), style="bold"))
        before = row.array
        table.add_row(row.code, *(column.cell(row) for column in columns), style=_style(row))
    return table


def _all_repeat(measured: Sequence[Row]) -> bool:
    """Whether there is more than one path for each array: then each has a line above its paths."""
    counts = Counter(row.array for row in measured)
    return min(counts.values(), default=0) > 1


def varying(rows: Sequence[Row]) -> list[Column]:
    """What differs between the rows; in one column if there is much, or the path has no room."""
    columns = [column for column in COLUMNS if not _is_fixed(column, rows)]
    if len(columns) < MANY_COLUMNS:
        return columns
    return [Column("array", lambda row: "\n".join(column.cell(row) for column in columns))]


def measures_of(rows: Sequence[Row]) -> list[Column]:
    columns = [
        Column("ready", lambda row: time_text(row.ready, row.process_medians_ns), right=True)
    ]
    if any(row.device == "cuda" or row.device_ns is not None for row in rows):
        columns.append(Column("on device", device_text, right=True))
    columns.append(Column("result", owner_text))
    if any(row.loaded for row in rows):
        columns.append(Column("loaded", attrgetter("loaded"), right=True))
    if any(speed_text(row) != "-" for row in rows):
        columns.append(Column("GB/s", speed_text, right=True))
    columns.append(Column("status", fault_text))
    return columns


def _style(row: Row) -> str:
    if row.status != "ok" or row.changed:
        return "red"
    if row.promise_broken or row.suspect:
        return "magenta"
    return {"view": "green", "copy": "yellow"}.get(row.owner, "")


def reasons(lost: Sequence[Row], rows: Sequence[Row]) -> list[RenderableType]:
    """Why some of ``rows`` were not measured; the same reason is told once."""
    if not lost:
        return []
    reasons: dict[tuple[str, str], list[Row]] = {}
    for row in lost:
        reasons.setdefault((row.status, first_line(row.why_not)), []).append(row)
    parts: list[RenderableType] = [Text("\nnot measured:", style="dim")]
    for (status, reason), group in list(reasons.items())[:MOST_REASONS]:
        codes = list(dict.fromkeys(row.code for row in group))
        what = ", ".join(codes[:3]) + (f" and {len(codes) - 3:,} more" if len(codes) > 3 else "")  # noqa: PLR2004
        parts.append(_flush(Text(f"{what}{_only(group, rows)}: {status}: {reason}")))
    if len(reasons) > MOST_REASONS:
        parts.append(
            Text(f"… and {len(reasons) - MOST_REASONS:,} more reasons in the session file")
        )
    return parts


def _only(group: Sequence[Row], rows: Sequence[Row]) -> str:
    """Which arrays a reason is for, where it is not for all."""
    told = []
    for column in COLUMNS:
        values = list(dict.fromkeys(column.cell(row) for row in group))
        if len(values) < len({column.cell(row) for row in rows}):
            told.append(listed(values))
    return f" ({'; '.join(told)})" if told else ""


def _notes(measured: Sequence[Row]) -> list[RenderableType]:
    lines: dict[str, None] = dict.fromkeys(footnotes(measured))
    for row in measured:
        if row.status != "ok":
            lines[f"{row.code}: {row.status}: {first_line(row.reason)}"] = None
        if row.ready is not None and row.ready.modes:
            lines[f"{row.code} runs in {len(row.ready.modes)} modes: {modes_text(row)}"] = None
        if row.setup:
            lines[_needs(row, measured)] = None
        if kept := kept_text(row):
            lines[f"{row.code}: {kept}"] = None
        for note in row.notes:
            lines[f"{row.code}: {note}"] = None
    shown: list[RenderableType] = [_flush(Text(line)) for line in list(lines)[:MOST_REASONS]]
    if len(lines) > MOST_REASONS:
        shown.append(Text(f"… and {len(lines) - MOST_REASONS:,} more notes in the session file"))
    return [Text(), *shown] if shown else []


def _needs(row: Row, measured: Sequence[Row]) -> str:
    """What a path needs; told once for all that need the same."""
    codes = list(dict.fromkeys(other.code for other in measured if other.setup == row.setup))
    if len(codes) == 1:
        return f"{row.code} needs: {row.setup}"
    return f"{codes[0]} and {len(codes) - 1} more need: {row.setup}"


def _flush(text: Text) -> Padding:
    return Padding(text, (0, 0, 0, 0))
