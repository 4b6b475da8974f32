"""A traced program as a document: its lines by the time that their conversions take.

The table groups the rows of a trace by line, function or pair. The page also shows when lines
converted, and their source with heat.
"""

from __future__ import annotations

import os
import shlex
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dlprof.report.document import (
    Answer,
    Cell,
    Column,
    Document,
    Lane,
    Section,
    Source,
    SourceLine,
    Table,
    Timeline,
    Tone,
)
from dlprof.runner.axes import shape_text
from dlprof.runner.header import SIMULATED
from dlprof.runner.quantity import plain_time, significant, size_text
from dlprof.runner.trace import doubts
from dlprof.runner.trace_file import Row, Trace
from dlprof.text.clean import counted, first_line
from dlprof.tracer.rows import OTHERS

TONES: dict[str, Tone] = {"view": "view", "copy": "copy", "mixed": "copy", "waits": "bad"}


@dataclass(frozen=True)
class Group:
    """What one row of the table shows."""

    place: str
    code: str
    rows: tuple[Row, ...]

    def total(self, name: str) -> int:
        return sum(getattr(row, name) for row in self.rows)

    @property
    def result(self) -> str:
        return result_of(self.rows)


def result_of(rows: Sequence[Row]) -> str:
    """Return ``waits`` if a row waits, else the result that all rows share, or ``mixed``.

    Rows that only raised or only converted empty arrays count if there are no others.
    """
    if any(row.waits for row in rows):
        return "waits"
    found = {row.result for row in rows if row.calls > row.empty}
    if found:
        return found.pop() if len(found) == 1 else "mixed"
    return "raised" if all(row.result == "raised" for row in rows) else "unknown"


def grouped(rows: Sequence[Row], by: str) -> list[Group]:
    """Group rows by ``line``, ``function`` or ``pair``, in their order."""
    keys: dict[str, Callable[[Row], tuple[Any, ...]]] = {
        "line": lambda row: (id(row),),
        "function": lambda row: (row.file, row.function),
        "pair": lambda row: (row.producer, row.consumer),
    }
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(keys[by](row), []).append(row)
    return [_group(members, by) for members in found.values()]


def _group(rows: list[Row], by: str) -> Group:
    first = rows[0]
    function = first.function.replace(".<locals>.", ".")
    if by == "pair":
        return Group(f"{first.producer} → {first.consumer}", "", tuple(rows))
    if by == "function":
        code = ", ".join(dict.fromkeys(row.conversion for row in rows))
        return Group(f"{short_file(first.file)} {function}", code, tuple(rows))
    place = place_of(first) + ("" if function == "<module>" else f" {function}")
    return Group(place, first.expression or first.conversion, tuple(rows))


def place_of(row: Row) -> str:
    """Return the short file name and the line."""
    return f"{short_file(row.file)}:{row.line}" if row.line else row.file


def short_file(file: str) -> str:
    """Return the path below the working folder, or the name alone elsewhere."""
    if file.startswith("<"):
        return file
    try:
        relative = Path(file).relative_to(Path.cwd())
    except (ValueError, OSError):
        return os.path.basename(file)  # noqa: PTH119 - it may be no path at all
    return relative.as_posix()


MOST_ROWS, MOST_ARRAYS = 10, 3
UNTRACED = "untraced"
"""The consumer of a capsule that no traced call took in."""
LONG = 36
"""Characters up to which a table shows an expression; else it shows the conversion."""
ROW = Column("row", right=True)
"""What ``--from LAST:ROW`` takes."""
FIGURES = (Column("own\u00a0time", right=True), Column("calls", right=True), Column("result"))
OWN_TIME = "own time: in the calls themselves, without their arguments."
CONVERSION, WHAT = Column("conversion"), Column("what")


def trace_document(
    trace: Trace,
    by: str = "line",
    full: bool = False,
    name: str = "LAST",
    advice: Mapping[int, str] = MappingProxyType({}),
) -> Document:
    """``by`` is ``line``, ``function`` or ``pair``; ``name`` is what commands call the trace.

    ``advice`` has what to write instead, by the place of a row.
    """
    advised = {id(row): advice[at] for at, row in enumerate(trace.rows) if at in advice}
    answered = {id(_copying(trace.rows)), id(_waiting(trace.rows))}
    others = {row: text for row, text in advised.items() if row not in answered}
    groups = sorted(grouped(trace.rows, by), key=lambda group: -group.total("total_ns"))
    shown = groups if full else groups[:MOST_ROWS]
    title, context = _title(trace)
    if not groups:
        return Document(title, "no conversions", notices=tuple(_notices(trace)))
    places = (Column("pair"),) if by == "pair" else (Column(by), CONVERSION)
    columns = (*FIGURES, *places, WHAT)
    rows = []
    for number, group in enumerate(shown, 1):
        cells = (
            *_figures(group),
            Cell(group.place),
            *(() if by == "pair" else (_conversion(group, by, full),)),
            _what(group, by, full, others),
        )
        rows.append((Cell(str(number), "dim"), *cells) if by == "line" else cells)
    left = len(groups) - len(shown)
    table = Table(
        (ROW, *columns) if by == "line" else columns,
        tuple(rows),
        more=f"… {counted(left, f'more {by}')} (--full)" if left else "",
    )
    return Document(
        title,
        context,
        answers=(
            _answer("copy", _copying(trace.rows), _without_waits, trace, advised),
            _answer("wait", _waiting(trace.rows), lambda row: row.waited_ns, trace, advised),
        ),
        notices=tuple(_notices(trace)),
        tables=(table,),
        marks=(OWN_TIME,),
        chart=timeline(trace),
        sections=tuple(sections(trace)),
        commands=tuple(_commands(trace, by, name, advised)) if trace.program else (),
    )


def _copying(rows: Iterable[Row]) -> Row | None:
    """Return the line to change first: its copies are not allowed and take longest."""
    copying = (row for row in rows if row.copies and "copy" not in row.allowed)
    return max(copying, key=_without_waits, default=None)


def _waiting(rows: Iterable[Row]) -> Row | None:
    """Return the line whose waits are not allowed and take longest."""
    waiting = (row for row in rows if row.waits and "wait" not in row.allowed)
    return max(waiting, key=lambda row: row.waited_ns, default=None)


def _without_waits(row: Row) -> int:
    return row.total_ns - row.waited_ns


def _answer(
    word: str,
    row: Row | None,
    took_ns: Callable[[Row], int],
    trace: Trace,
    advised: Mapping[int, str],
) -> Answer:
    label = f"costliest {word}"
    if row is None:
        unknown = sum(word in doubts(one) for one in trace.rows)
        note = f"none known, {counted(unknown, 'line')} may" if unknown else "none"
        return Answer(label, "", note=note)
    told = filter(None, (place_of(row), counted(row.calls, "call"), advised.get(id(row), "")))
    return Answer(label, _short(row), plain_time(took_ns(row)), "; ".join(told))


def _short(row: Row) -> str:
    """Return the expression, or the conversion where that is too long."""
    return row.expression if 0 < len(row.expression) <= LONG else row.conversion


def _title(trace: Trace) -> tuple[str, str]:
    waited, copied = (
        sum(getattr(row, name) for row in trace.rows) for name in ("waited_ns", "bytes")
    )
    converted = sum(map(_without_waits, trace.rows))
    code = trace.exit_code
    end = f"killed by signal {-code}" if code < 0 else f"exit {code}"
    name = Path(trace.program[0]).name if trace.program else ""
    whole = plain_time(trace.wall_ns, 3)
    title = f"dlprof trace   {name}   {whole}, {end}" if name else f"dlprof trace   {whole}"
    copies = f"{size_text(copied, 2)} copied"
    count = len({pid for row in trace.rows for pid in row.processes})
    several = f", {count} processes" if count > 1 else ""
    parts = [f"conversions {plain_time(converted)} ({_share(converted, trace.wall_ns)})"]
    if waited:
        parts.append(f"waits {plain_time(waited)} ({_share(waited, trace.wall_ns)})")
    return title, f"{', '.join((*parts, copies))}{several}"


def _share(took_ns: float, whole_ns: float) -> str:
    percent = 100 * took_ns / whole_ns if whole_ns else 0.0
    return "below 0.1 %" if percent < 0.1 else f"{significant(percent, 2)} %"  # noqa: PLR2004 - as it is shown


def _notices(trace: Trace) -> Iterable[str]:
    if trace.simulated:
        yield f"{SIMULATED[:1].upper()}{SIMULATED[1:]}."
    yield from cut_short(trace)
    for trouble in trace.troubles:
        yield f"Not all is traced of {first_line(trouble)}"
    troubled = [row for row in trace.rows if row.trouble]
    if troubled:
        where, why = place_of(troubled[0]), first_line(troubled[0].trouble)
        lines = counted(len(troubled), "line")
        yield f"View or copy is unknown for {lines}, first {where}: {why}"


def cut_short(trace: Trace) -> Iterator[str]:
    """Yield how many processes were killed or still run: conversions of theirs may be missing."""
    cut = [one for one in trace.processes if not one.ended]
    if cut:
        verb = "was killed or still runs" if len(cut) == 1 else "were killed or still run"
        until = plain_time(min(one.wall_ns for one in cut), 3)
        yield (
            f"{len(cut)} of {len(trace.processes)} processes {verb}: "
            f"conversions later than {until} after its start may be missing."
        )


def _figures(group: Group) -> tuple[Cell, ...]:
    result = group.result
    return (
        Cell(plain_time(group.total("total_ns"))),
        Cell(f"{group.total('calls'):,}"),
        Cell(result, TONES.get(result, "dim")),
    )


def _conversion(group: Group, by: str, full: bool) -> Cell:
    return Cell(group.code if full or by == "function" else _short(group.rows[0]), code=True)


def _what(group: Group, by: str, full: bool, advised: Mapping[int, str]) -> Cell:
    advice = advised.get(id(group.rows[0]), "") if by == "line" else ""
    return Cell("; ".join(filter(None, (*_facts(group, by, full), advice))))


def _facts(group: Group, by: str, full: bool) -> Iterable[str]:
    if by == "line":
        yield from _of_line(group.rows[0], full)
    first_ns, total_ns = group.total("first_ns"), group.total("total_ns")
    if group.total("calls") > len(group.rows) and 2 * first_ns > total_ns:
        yield f"{plain_time(first_ns)} of it in the first call"
    copies, calls, copied = (group.total(name) for name in ("copies", "calls", "bytes"))
    if group.result == "mixed" and copies:
        yield f"{copies:,} of {calls:,} copy"
    if by != "line" and copied:
        yield f"{size_text(copied, 2)} copied"
    waits, maybe = group.total("waits"), group.total("maybe_waits")
    if waits:
        kinds = dict.fromkeys(row.result for row in group.rows)
        yield f"{', '.join(kinds)}; waits {plain_time(group.total('waited_ns'))} for queued work"
    elif maybe:
        yield f"{maybe:,} may wait for queued work"
    crossings = (one[:2] for row in group.rows for one in row.crossings)
    yield from (f"crosses from {one} to {other}" for one, other in dict.fromkeys(crossings))
    if group.total("raised"):
        yield f"{group.total('raised'):,} raised"


def _of_line(row: Row, full: bool) -> Iterable[str]:
    sizes = {size for dtype, _, _, size in row.arrays if dtype not in ("?", OTHERS)}
    if row.copies:
        alike = len(row.arrays) == 1 and is_of_one(row)
        each = " each" if alike else " per copy on average"
        yield size_text(round(row.bytes / row.copies), 2) + (each if row.copies > 1 else " copied")
    elif sizes and row.result != "view":
        lengths = dict.fromkeys((size_text(min(sizes), 2), size_text(max(sizes), 2)))
        yield f"{' to '.join(lengths)}{' each' if row.calls > 1 else ''}"
    if row.retyped:
        yield f"to {', '.join(row.retyped)}"
    if full:
        yield _arrays(row)
    if row.via:
        yield f"{row.via.split('.')[0]}: {row.via.rpartition('.')[2]}"
    if row.allowed:
        yield f"allowed: {', '.join(row.allowed)}"


def is_of_one(row: Row) -> bool:
    """Whether each copy is of one array, and not of a list of arrays."""
    return row.bytes <= row.copies * max((size for *_, size in row.arrays), default=0)


def _arrays(row: Row) -> str:
    """Return the most frequent dtypes and shapes."""
    texts = [
        f"{dtype} {shape_text(shape)}" + (f": {calls:,} calls" if len(row.arrays) > 1 else "")
        for dtype, shape, calls, _ in row.arrays[:MOST_ARRAYS]
        if dtype not in ("?", OTHERS)
    ]
    left = len(row.arrays) - MOST_ARRAYS
    return ", ".join([*texts, f"{left} more"] if left > 0 and texts else texts)


def may_be_advised(row: Row) -> bool:
    """Whether a session that measures the row's array can advise what to write instead."""
    if row.crossings or row.retyped or row.consumer in (row.producer, UNTRACED):
        return False
    return bool(row.waits or (row.copies and is_of_one(row)))


def _commands(trace: Trace, by: str, name: str, advised: Mapping[int, str]) -> Iterable[str]:
    fit = [row for row in trace.rows if may_be_advised(row) and id(row) not in advised]
    row = _copying(fit) or _waiting(fit)
    if row is not None and by != "line":  # only lines have the number of a row
        yield f"dlprof report {shlex.quote(name)} --by line"
    elif row is not None:
        pair, number = shlex.join([row.producer, row.consumer]), trace.rows.index(row) + 1
        yield f"dlprof run {pair} --from {shlex.quote(name)}:{number}"
    yield f"dlprof report {shlex.quote(name)} --html report.html"
    yield "dlprof explain trace"


MOST_LANES = 10
MOST_FILES = 50


def timeline(trace: Trace) -> Timeline | None:
    """Return when the costliest lines converted, or None if that is unknown."""
    lines = grouped(trace.rows, "line")
    spans: dict[int, list[tuple[float, float, float]]] = defaultdict(list)
    for begin, end, row, took, _ in trace.timeline:
        if end > begin and 0 <= row < len(trace.rows):
            spans[id(trace.rows[row])].append((begin, end, took / (end - begin)))
    lanes = [
        Lane(line.place, line.result, tuple(drawn), plain_time(line.total("total_ns")))
        for line in lines
        if (drawn := [span for row in line.rows for span in spans[id(row)]])
    ]
    if not lanes:
        return None
    left = len(lines) - len(lanes[:MOST_LANES])
    more = f"The table has {counted(left, 'more line')}." if left else ""
    return Timeline(tuple(lanes[:MOST_LANES]), trace.wall_ns, more)


def sections(trace: Trace) -> Iterator[Section]:
    """Yield a section for each file with its hot lines, the costliest first."""
    files: dict[str, list[Row]] = defaultdict(list)
    for row in trace.rows:
        files[row.file].append(row)
    hottest = max((_took(rows) for rows in _lines(trace.rows).values()), default=0)
    ordered = sorted(files.items(), key=lambda item: -_took(item[1]))
    for file, rows in ordered[:MOST_FILES]:
        text = trace.sources.get(file)
        if text:
            copied = sum(row.bytes for row in rows)
            parts = (plain_time(_took(rows)), f"{size_text(copied, 2)} copied" if copied else "")
            heading = f"{short_file(file)}   {', '.join(filter(None, parts))}"
            yield Section(heading, (Source(tuple(_source(text, rows, hottest))),))


def _lines(rows: Sequence[Row]) -> dict[tuple[str, int], list[Row]]:
    found: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in rows:
        found[row.file, row.line].append(row)
    return found


def _took(rows: Sequence[Row]) -> int:
    return sum(row.total_ns for row in rows)


def _source(
    text: Sequence[tuple[int, str]], rows: Sequence[Row], hottest: int
) -> Iterator[SourceLine]:
    hot = {line: found for (_, line), found in _lines(rows).items()}
    last = 0
    for number, line in text:
        if last and number > last + 1:
            yield SourceLine(0, "⋯")
        last = number
        found = hot.get(number)
        if found is None:
            yield SourceLine(number, line)
            continue
        took, calls = _took(found), sum(row.calls for row in found)
        results = dict.fromkeys(result_of([row]) for row in found)
        tone: Tone = next((TONES[one] for one in reversed(TONES) if one in results), "dim")
        heat = took / hottest if hottest else 0.0
        cell = Cell(", ".join(results), tone)
        yield SourceLine(number, line, plain_time(took), f"{calls:,}", cell, heat)
