"""All cases: a table for each pair, folded where there are many, never cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from statistics import median

from dlprof.analysis.quantity import plain_time, time_text
from dlprof.reports.cell_text import device_text, fault_text, speed_text
from dlprof.reports.html.entry import Entry
from dlprof.reports.html.shares import outlasts
from dlprof.reports.row import Row
from dlprof.session.model import Result

OPEN_ROWS = 60
"""A table of more rows is folded, unless it is the only one and not much longer."""

OUTLASTING = (
    "\u2260 marks a call that was measured to take longer than ready, which the call is a part of."
    " The two are timed in loops of their own, and that of the call waits for nothing: work and"
    " memory of earlier calls pile up in it, or the machine was busier. Trust ready."
)


@dataclass(frozen=True)
class Column:
    """``value`` gives the number that a cell is sorted by."""

    title: str
    cell: Callable[[Entry], str]
    value: Callable[[Entry], float | None] | None = None

    @property
    def number(self) -> bool:
        return self.value is not None


@dataclass(frozen=True)
class Cell:
    text: str
    value: str = ""


@dataclass(frozen=True)
class Line:
    entry: Entry
    kind: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Grid:
    """Columns, and a line for each case."""

    columns: tuple[Column, ...]
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Table:
    """All cases of one pair. ``constant`` is what all of them share.

    ``apart`` has those without a time to be trusted, with the reason. ``note`` explains marks.
    """

    pair: str
    constant: str
    measured: Grid
    apart: Grid
    open: bool
    note: str = ""

    @property
    def count(self) -> int:
        return len(self.measured.lines) + len(self.apart.lines)


def row(name: str) -> Callable[[Entry], str]:
    found = attrgetter(name)
    return lambda entry: found(entry.row)


AXES = (
    Column("shape", row("shape"), lambda entry: float(entry.row.size_bytes)),
    Column("dtype", row("dtype")),
    Column("layout", row("layout")),
    Column("device", row("device")),
)


def tables(everything: Sequence[Entry]) -> list[Table]:
    """One for each pair, in the session's order; cheapest first for each array."""
    pairs: dict[str, list[Entry]] = {}
    for entry in everything:
        pairs.setdefault(entry.row.pair, []).append(entry)
    few = len(everything) <= OPEN_ROWS
    return [_table(pair, group, few) for pair, group in pairs.items()]


def _table(pair: str, group: Sequence[Entry], few: bool) -> Table:
    arrays = {array: place for place, array in enumerate(dict.fromkeys(e.row.array for e in group))}
    ordered = sorted(group, key=lambda entry: (arrays[entry.row.array], entry.row.cost_ns))
    fixed = [axis for axis in AXES if len({axis.cell(entry) for entry in group}) == 1]
    which = (Column("path", row("code")), *(axis for axis in AXES if axis not in fixed))
    measured = [entry for entry in ordered if entry.measured]
    apart = [entry for entry in ordered if not entry.measured]
    return Table(
        pair=pair,
        constant=" ".join(axis.cell(group[0]) for axis in fixed),
        measured=_grid(measured, (*which, *_measures(measured))),
        apart=_grid(apart, (*which, *_reasons(apart))),
        open=few,
        note=OUTLASTING if any(outlasts(entry) for entry in measured) else "",
    )


def _grid(entries: Sequence[Entry], columns: tuple[Column, ...]) -> Grid:
    return Grid(columns, tuple(_line(entry, columns) for entry in entries))


def _reasons(apart: Sequence[Entry]) -> list[Column]:
    """Status and reason; a time only where one was taken before it was refused."""
    timed = any(entry.row.ready is not None for entry in apart)
    until = [Column("time until then", _ready, _ready_ns)] if timed else []
    status = Column("status", lambda entry: fault_text(entry.row))
    return [status, *until, Column("reason", _reason)]


def _reason(entry: Entry) -> str:
    return entry.row.why_not or "no reason given"


def _line(entry: Entry, columns: Sequence[Column]) -> Line:
    cells = (
        Cell(column.cell(entry), _value(column.value(entry)) if column.value else "")
        for column in columns
    )
    return Line(entry, kind(entry.row), tuple(cells))


def kind(row_: Row) -> str:
    """The word by which a row is coloured; the same word stands in it as text."""
    if row_.status != "ok" or row_.changed or row_.suspect or row_.promise_broken:
        return "wrong"
    return row_.owner if row_.owner in ("view", "copy") else "other"


def _value(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def _speed(entry: Entry) -> float | None:
    """As it is shown: a time that is not known has no speed."""
    return None if speed_text(entry.row) == "-" else entry.row.gb_per_s


def _measures(group: Sequence[Entry]) -> list[Column]:
    columns = [
        Column("ready", _ready, _ready_ns),
        Column("result", _owner),
    ]
    if any(entry.row.device == "cuda" or entry.row.device_ns is not None for entry in group):
        columns.insert(1, Column("on device", _device, lambda entry: entry.row.device_ns))
    if any(entry.row.loaded for entry in group):
        columns.append(Column("loaded", row("loaded")))
    if any(speed_text(entry.row) != "-" for entry in group):
        columns.append(Column("GB/s", lambda entry: speed_text(entry.row), _speed))
    if any(_calls(entry.result) for entry in group):
        columns.append(Column("call", _call, _call_ns))
    if any(entry.result.first_call_ns is not None for entry in group):
        columns.append(Column("first call", _first, lambda entry: entry.result.first_call_ns))
    return [*columns, Column("status", _status)]


def _ready(entry: Entry) -> str:
    return time_text(entry.row.ready, entry.row.process_medians_ns)


def _ready_ns(entry: Entry) -> float | None:
    return entry.row.ready.median_ns if entry.row.ready else None


def _device(entry: Entry) -> str:
    return device_text(entry.row)


def _calls(result: Result) -> bool:
    """Whether the call's own time was measured apart from the ready time."""
    return result.ready_time is not None and result.ready_time.same_as is None


def _call(entry: Entry) -> str:
    host = entry.result.host_time
    processes = host.processes if host is not None else []
    medians = tuple(median(one.samples_ns) for one in processes if one.samples_ns)
    return ("\u2260 " if outlasts(entry) else "") + time_text(host, medians)


def _call_ns(entry: Entry) -> float | None:
    return entry.result.host_time.median_ns if entry.result.host_time else None


def _owner(entry: Entry) -> str:
    found = entry.row
    return f"{found.owner}, by alignment" if found.depends else found.owner


def _first(entry: Entry) -> str:
    first = entry.result.first_call_ns
    before = entry.result.first_call_cases_before
    if first is None:
        return "-"
    return plain_time(first) + (f", after {before}" if before else "")


def _status(entry: Entry) -> str:
    found = entry.row
    words = [fault_text(found)]
    if found.changed:
        words.append(", ".join(found.changed))
    if found.promise_broken:
        words.append(f"documented: {found.promise}")
    elif found.suspect:
        words.append("not safe")
    elif found.unseen and found.status == "ok":
        words.append("nothing to look at")
    return ": ".join(words[:2]) + "".join(f", {word}" for word in words[2:])
