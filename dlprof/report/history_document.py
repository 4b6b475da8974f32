"""A history as a document: did anything change, when, and what came with it?

As JSON it is the contract ``dlprof.trend/1``; see docs/history.md.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from dlprof.compare.matching import code_key
from dlprof.history.entry import Entry
from dlprof.history.series import Cause, Machine, Point
from dlprof.history.store import History
from dlprof.history.trend import TimeStep, Trend, VerdictStep
from dlprof.judge.rule import Severity
from dlprof.judge.slower import FAMILY_LEVEL
from dlprof.report.comparison_answers import array_text, array_texts, code_cells, number, sentence
from dlprof.report.comparison_json import change_json
from dlprof.report.document import (
    Answer,
    Cell,
    Chart,
    Column,
    Document,
    Lines,
    Section,
    Table,
    Tone,
    more_rows,
)
from dlprof.report.document import Point as Dot
from dlprof.runner.quantity import plain_time
from dlprof.runner.session import CaseRecord
from dlprof.text.clean import counted, first_line, listed

FIRST_ROWS, ALL_ROWS = 12, 500
"""Rows of a table on the first screen, and in full; the JSON has them all."""
MOST_CHARTS = 12
BARS = "▁▂▃▄▅▆▇█"
LINE = 20
"""Characters of a trend in a table."""
LEAST_SPAN = 1.25
"""The highest over the lowest of a trend, at least: less is drawn almost level, not as noise blown
up to the full height."""
HASH, COMMIT = 40, 12
"""Characters of a commit, and how many of them are shown."""
MOST_DIFFERENCES = 6
KINDS = {"version": 0, "machine": 1, "setting": 2}
TONES: dict[str, Tone] = {"worse": "worse", "better": "better"}


@dataclass(frozen=True)
class Change:
    """A step of a trend in words."""

    when: datetime
    trend: Trend
    what: str
    mark: str
    """The same in a word."""
    since: str
    tone: Tone = ""


def history_document(history: History, trends: Sequence[Trend], measure: str) -> Document:
    """What a report of a history says of the trends that were chosen."""
    entries = history.entries
    times = [when_text(entry.created) for entry in (entries[0], entries[-1])]
    span = times[0] if times[0] == times[1] else f"{times[0]} to {times[1]} UTC"
    older = f" (and {history.left_out:,} older)" if history.left_out else ""
    shared, _ = array_texts(trend.series.case for trend in trends)
    return Document(
        title=f"{counted(len(entries), 'session')}{older}",
        scope=", ".join(filter(None, (shared, span))),
        context=f"{measure} time per call",
        answers=(answer_of(trends),),
        tables=_tables(trends, FIRST_ROWS),
        sections=(*_sections(trends), *_sessions(history)),
    )


def _sections(trends: Sequence[Trend]) -> tuple[Section, ...]:
    """Doubts, what the first screen has no room for, and a chart of each case that changed."""
    known = [trend for trend in trends if trend.series.timed]
    drawn = sorted(known, key=_newest_step, reverse=True)[:MOST_CHARTS]
    notes = _missing(trends)
    if len(known) > len(drawn):
        notes.append(f"{len(drawn)} of {len(known):,} charts are drawn, the newest steps first")
    is_long = max(len(trends), len(changes_of(trends))) > FIRST_ROWS
    return (
        *((Section("What is missing", (Lines(tuple(notes)),)),) if notes else ()),
        *((Section("All steps and cases", _tables(trends, ALL_ROWS)),) if is_long else ()),
        *map(_chart, drawn),
    )


def _tables(trends: Sequence[Trend], most: int) -> tuple[Table, ...]:
    codes = _codes(trends)
    return (*_steps_table(changes_of(trends), codes, most), _trends_table(trends, codes, most))


def answer_of(trends: Sequence[Trend]) -> Answer:
    """Did anything change?"""
    slower = sum(step.slower for trend in trends for step in trend.steps)
    faster = sum(not step.slower for trend in trends for step in trend.steps)
    verdicts = sum(len(trend.verdicts) for trend in trends)
    machines = len({trend.series.machine for trend in trends})
    timed = {code_key(trend.series.case) for trend in trends if trend.series.timed}
    untimed = {code_key(trend.series.case) for trend in trends} - timed
    cases = counted(len(timed), "case")
    where = f"in {cases}" + (f" on {machines} machines" if machines > 1 else "")
    where += f"; {len(untimed)} without a time" if untimed else ""
    counts = ((slower, "slower"), (faster, "faster"), (verdicts, "of verdict"))
    told = ", ".join(f"{count} {word}" for count, word in counts if count)
    if not (told or timed):
        return Answer("unknown", "", note="no session has a time")
    return Answer("steps" if told else "no step", "", note=f"{told} {where}".strip())


def when_text(when: datetime) -> str:
    return f"{when:%Y-%m-%d %H:%M}"


def label_text(label: str) -> str:
    """A commit is shown by its first characters."""
    stem, dash, rest = label.partition("-")
    is_commit = len(stem) == HASH and set(stem) <= set("0123456789abcdef")
    return stem[:COMMIT] + dash + rest if is_commit else label


def changes_of(trends: Iterable[Trend]) -> list[Change]:
    """All steps in words, newest first."""
    found = [
        change
        for trend in trends
        for change in (
            *(_of_time(trend, step) for step in trend.steps),
            *(_of_verdict(trend, step) for step in trend.verdicts),
        )
    ]
    return sorted(found, key=lambda change: change.when, reverse=True)


def _of_time(trend: Trend, step: TimeStep) -> Change:
    old, new = (plain_time(value, 3) for value in step.times_ns)
    ratio = number(step.step.ratio)
    low, high = map(number, step.step.interval)
    text = f"{old} → {new}: {ratio} ({low}-{high}) times as long"
    if step.page_faults is not None:
        few, many = (f"{value:.0f}" for value in step.page_faults)
        text += f"; page faults per call {few} → {many}: another mode"
    if step.shared:
        count, cases = step.shared
        which = f"all {cases}" if count == cases else f"{count} of {cases}"
        text += f"; {which} cases shift here: the machine, or what they share"
    tone: Tone = "worse" if step.slower else "better"
    return Change(_when(step), trend, text, f"{ratio}\u00d7", _since(step.cause), tone)


def _of_verdict(trend: Trend, step: VerdictStep) -> Change:
    change = step.change
    word = change.severity if change.direction == "worse" else change.direction
    text, tone = f"{change} ({word})", TONES.get(change.direction, "")
    return Change(_when(step), trend, text, change.after, _since(step.cause), tone)


def _when(step: TimeStep | VerdictStep) -> datetime:
    return step.cause.behind.entry.created


def _since(cause: Cause) -> str:
    """What changed between the sessions around a step; labels first, then versions."""
    old, new = map(label_text, cause.labels)
    found = sorted(cause.differences, key=lambda one: KINDS.get(one.kind, len(KINDS)))
    parts = [
        *([] if old == new else [f"label {old or 'none'} → {new or 'none'}"]),
        *map(str, found[:MOST_DIFFERENCES]),
        *([f"{len(found) - MOST_DIFFERENCES} more"] if len(found) > MOST_DIFFERENCES else []),
    ]
    told = ", ".join(parts) or "no change of a version, setting or label is known"
    return f"{when_text(cause.before.entry.created)}: {told}"


Codes = Mapping[tuple[CaseRecord, Machine], Cell]


def _codes(trends: Sequence[Trend]) -> Codes:
    """The cell of each path: its code, and what tells pair, array and machine from the others'."""
    cells = code_cells(trend.series.case for trend in trends)
    series = {(trend.series.case, trend.series.machine) for trend in trends}
    if len({machine for _, machine in series}) == 1:
        return {(case, machine): cells[case] for case, machine in series}
    return {
        (case, machine): replace(cells[case], note=f"{cells[case].note}  on {machine.name}".strip())
        for case, machine in series
    }


def _steps_table(changes: Sequence[Change], codes: Codes, most: int) -> tuple[Table, ...]:
    titles = ("when", "what changed", "path", "since")
    rows = tuple(
        (
            Cell(when_text(change.when)),
            Cell(change.what, change.tone),
            codes[change.trend.series.case, change.trend.series.machine],
            Cell(change.since),
        )
        for change in changes[:most]
    )
    return (Table(tuple(map(Column, titles)), rows, more_rows(len(changes), most)),) if rows else ()


def _trends_table(trends: Sequence[Trend], codes: Codes, most: int) -> Table:
    numbers = (Column(title, right=True) for title in ("first", "newest", "steps"))
    columns = (Column("trend"), *numbers, Column("path"))
    rows = []
    for trend in trends[:most]:
        times = [point.time_ns for point in trend.series.points]
        known = [plain_time(time, 3) for time in times if time is not None] or ["-"]
        row = (
            Cell(sparkline(times)),
            Cell(known[0]),
            Cell(known[-1]),
            Cell(str(len(trend.steps) + len(trend.verdicts) or "-")),
            codes[trend.series.case, trend.series.machine],
        )
        rows.append(row)
    return Table(columns, tuple(rows), more_rows(len(trends), most))


def sparkline(values: Sequence[float | None]) -> str:
    """``▁▁▁▇▇``: positive values from left to right, a blank for None.

    Of more than :data:`LINE` values as many are shown, evenly chosen.
    """
    count = min(len(values), LINE)
    parts = [values[len(values) * place // count] for place in range(count)]
    known = [part for part in parts if part is not None]
    low = min(known, default=0.0)
    step = (max(*known, low * LEAST_SPAN, low) - low) / len(BARS) if known else 0.0
    return "".join(
        " " if part is None else BARS[min(int((part - low) / step), len(BARS) - 1)]
        for part in parts
    )


def _missing(trends: Sequence[Trend]) -> list[str]:
    """Why newest sessions have no time of a case, and of which cases."""
    found: dict[str, list[str]] = {}
    for trend in trends:
        newest, name = trend.series.points[-1], trend.series.case.code
        if newest.doubt:
            reason = f"no time in its newest session: {first_line(newest.doubt)}"
            found.setdefault(reason, []).append(name)
        if trend.series.missing:
            asked = counted(trend.series.missing, "newest session")
            found.setdefault(f"missing in the {asked} of its machine", []).append(name)
    return [f"{listed(dict.fromkeys(names))}: {reason}" for reason, names in found.items()]


def _newest_step(trend: Trend) -> float:
    return max((change.when.timestamp() for change in changes_of([trend])), default=0.0)


def _chart(trend: Trend) -> Section:
    """A chart of one case, in words too."""
    changes = changes_of([trend])
    lines = tuple(f"{when_text(one.when)}: {one.what}; since {one.since}" for one in changes)
    at: dict[datetime, list[Change]] = defaultdict(list)
    for one in changes:
        at[one.when].append(one)
    dots = tuple(_dot(point, at.get(point.entry.created, [])) for point in trend.series.timed)
    series = trend.series
    heading = f"{series.case.code}, {array_text(series.case)}, on {series.machine.name}"
    return Section(heading, (Chart("trend", dots), *([Lines(lines)] if lines else [])))


def _dot(point: Point, changes: Sequence[Change]) -> Dot:
    times = [process.time_ns for process in point.side]
    owner = point.result.ownership.verdict if point.result.ownership else ""
    label, when = label_text(point.entry.label.text), when_text(point.entry.created)
    worse: Severity = "warning" if any(one.tone == "worse" for one in changes) else "info"
    severity, mark = worse if changes else None, " ".join(one.mark for one in changes)
    ends = min(times), max(times)
    return Dot(label, point.time_ns or 0.0, *ends, owner, severity, mark, when)


def _sessions(history: History) -> tuple[Section, ...]:
    titles = ("session", "label", "Python", "packages", "cases", "complete")
    newest = history.entries[::-1]
    rows = tuple(
        (
            Cell(when_text(entry.created)),
            Cell(label_text(entry.label.text)),
            Cell(entry.session.environment.python or "?"),
            Cell(", ".join(entry.session.environment.versions)),
            Cell(f"{len(entry.session.results):,}"),
            Cell("yes" if entry.session.complete else "no: it was stopped"),
        )
        for entry in newest[:ALL_ROWS]
    )
    table = Table(tuple(map(Column, titles)), rows, more_rows(len(newest), ALL_ROWS))
    ignored = tuple(f"{name} is left out: {reason}" for name, reason in history.ignored)
    return (Section("Sessions", (table, *([Lines(ignored)] if ignored else []))),)


SCHEMA = "dlprof.trend/1"


def render_json(history: History, trends: Sequence[Trend], measure: str) -> str:
    """One JSON object, with a line end."""
    content = {
        "schema": SCHEMA,
        "measure": measure,
        "family_level": FAMILY_LEVEL,
        "answer": sentence(answer_of(trends)),
        "sessions": [_session(entry) for entry in history.entries],
        "ignored": [{"file": name, "reason": reason} for name, reason in history.ignored],
        "older": history.left_out,
        "trends": [_trend(trend) for trend in trends],
    }
    return json.dumps(content, indent=1, allow_nan=False) + "\n"


def _session(entry: Entry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "created": entry.created.isoformat(),
        "label": entry.label.text or None,
        "label_source": entry.label.source or None,
        "complete": entry.session.complete,
    }


def _trend(trend: Trend) -> dict[str, Any]:
    series = trend.series
    return {
        "case": series.case.model_dump(by_alias=True),
        "machine": {"name": series.machine.name, "facts": dict(series.machine.facts)},
        "points": [_point(point) for point in series.points],
        "steps": [
            {
                "ratio": step.step.ratio,
                "ci95": step.step.interval,
                "before_ns": step.times_ns[0],
                "behind_ns": step.times_ns[1],
                "sessions_before": step.step.before,
                "sessions_behind": step.step.behind,
                "page_faults": step.page_faults,
                "shared_by": step.shared[0] if step.shared else None,
                **_brought(step.cause),
            }
            for step in trend.steps
        ],
        "verdicts": [
            {**change_json(step.change), **_brought(step.cause)} for step in trend.verdicts
        ],
        "missing": series.missing,
    }


def _point(point: Point) -> dict[str, Any]:
    return {
        "session": point.entry.id,
        "time_ns": point.time_ns,
        "processes_ns": [process.time_ns for process in point.side],
        "status": point.result.status,
        "doubt": point.doubt or None,
    }


def _brought(brought: Cause) -> dict[str, Any]:
    return {
        "last_before": brought.before.entry.id,
        "first_behind": brought.behind.entry.id,
        "when": brought.behind.entry.created.isoformat(),
        "labels": [label or None for label in brought.labels],
        "differences": [asdict(one) for one in brought.differences],
    }
