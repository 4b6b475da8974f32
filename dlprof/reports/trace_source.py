"""The pictures of a traced program: when its lines converted, and their source with heat."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from dlprof.analysis.quantity import plain_time, size_text
from dlprof.reports.document import Cell, Lane, Section, Source, SourceLine, Timeline
from dlprof.reports.trace_groups import TONES, grouped, result_of, short_file
from dlprof.session.trace_file import Row, Trace
from dlprof.text.clean import clean

MOST_LANES = 10
MOST_FILES = 50


def timeline(trace: Trace) -> Timeline | None:
    """When the lines converted that took most; None where that is not known."""
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
    more = f"{left} more line{'s' * (left > 1)} are in the table." if left > 1 else ""
    if left == 1:
        more = "1 more line is in the table."
    return Timeline(tuple(lanes[:MOST_LANES]), trace.wall_ns, more)


def sections(trace: Trace) -> Iterator[Section]:
    """A section for each file with its hot lines, those that took longest first."""
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
            heading = f"{clean(short_file(file))}   {', '.join(filter(None, parts))}"
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
            yield SourceLine(number, clean(line))
            continue
        took, calls = _took(found), sum(row.calls for row in found)
        result = result_of(found)
        heat = took / hottest if hottest else 0.0
        cell = Cell(result, TONES.get(result, "dim"))
        yield SourceLine(number, clean(line), plain_time(took), f"{calls:,}", cell, heat)
