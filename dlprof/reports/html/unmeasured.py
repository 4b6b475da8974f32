"""Everything that was not measured, could not be told, or was left out, and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dlprof.reports import faults
from dlprof.reports.cell_text import WHY_DISTURBED, WHY_SCATTERED, kept_text, modes_text
from dlprof.reports.html.entry import Entry
from dlprof.session.model import Session, Verdict
from dlprof.text.clean import clean, first_line

VERDICTS = (
    "ownership",
    "values",
    "ordering",
    "alignment",
    "fresh_source",
    "lifetime",
    "early_write",
    "peak_memory",
    "trace",
)
UNKNOWN = ("unknown", "varies", "no trace")
MOST_LINES = 40
OPEN = 3
"""So many cases are named beside a reason; more are folded."""


@dataclass(frozen=True)
class Reason:
    """``what`` is a status, a measure, or nothing for a note."""

    what: str
    why: str
    cases: tuple[Entry, ...]
    whole: tuple[str, ...] = ()
    """All lines of it, where there are more than the first."""

    @property
    def few(self) -> tuple[Entry, ...]:
        return self.cases if len(self.cases) <= OPEN else ()


@dataclass(frozen=True)
class Unmeasured:
    lost: list[Reason]
    unknown: list[Reason]
    notes: list[Reason]
    left_out: list[str]
    stopped: bool


def unmeasured(session: Session, everything: Sequence[Entry]) -> Unmeasured:
    """The same reason is told once, with all its cases."""
    return Unmeasured(
        lost=_grouped(
            (entry.row.status, entry.row.why_lost or "no reason given", entry)
            for entry in everything
            if entry.row.status != "ok" or not entry.measured
        ),
        unknown=_grouped(found for entry in everything for found in _unknown(entry)),
        notes=_grouped(("", note, entry) for entry in everything for note in _notes(entry)),
        left_out=[clean(text) for text in session.left_out],
        stopped=not session.complete,
    )


def _grouped(found: Iterable[tuple[str, str, Entry]]) -> list[Reason]:
    reasons: dict[tuple[str, str], list[Entry]] = {}
    for what, why, entry in found:
        reasons.setdefault((what, why), []).append(entry)
    return [
        Reason(what, why, tuple(cases), _whole(cases[0]) if what == cases[0].row.status else ())
        for (what, why), cases in reasons.items()
    ]


def _whole(entry: Entry) -> tuple[str, ...]:
    """Every line of the reason, and the last that the process printed."""
    lines = _lines(entry.result.reason)
    if entry.result.output:
        lines += ["the last that the process printed:", *_lines(entry.result.output, last=True)]
    return tuple(clean(line) for line in lines) if len(lines) > 1 else ()


def _lines(text: str | None, last: bool = False) -> list[str]:
    """The first or the last lines, and how many more the session has."""
    lines = (text or "").strip().splitlines()
    more = len(lines) - MOST_LINES
    if more <= 0:
        return lines
    mark = f"… {more:,} more lines in the session"
    return [mark, *lines[more:]] if last else [*lines[:MOST_LINES], mark]


def _unknown(entry: Entry) -> Iterable[tuple[str, str, Entry]]:
    for name in VERDICTS:
        verdict: Verdict[Any] | None = getattr(entry.result, name)
        if verdict is not None and verdict.verdict in UNKNOWN:
            reason = verdict.evidence.get("reason")
            yield name.replace("_", " "), first_line(None if reason is None else str(reason)), entry
    device = entry.result.device_time
    if device is not None and device.verdict == "unknown":
        yield "device time", first_line(device.reason), entry


def _notes(entry: Entry) -> Iterable[str]:
    row = entry.row
    if row.disturbed:
        yield WHY_DISTURBED
    elif row.scattered:
        yield WHY_SCATTERED
    if torn := faults.note(row):
        yield torn
    if row.ready is not None and row.ready.modes:
        yield f"runs in {len(row.ready.modes)} modes: {modes_text(row)}"
    if row.setup:
        yield f"needs: {row.setup}"
    if kept := kept_text(row):
        yield kept
    yield from row.notes
