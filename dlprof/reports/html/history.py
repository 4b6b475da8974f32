"""What a page says of a history: steps, a table of all cases, charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dlprof.analysis.quantity import plain_time
from dlprof.history.trend import Trend
from dlprof.reports.history import answer
from dlprof.reports.history_text import (
    Told,
    array_of,
    doubts_of,
    name_of,
    pending_of,
    steps_of,
    when_text,
)
from dlprof.reports.html import trend
from dlprof.reports.html.figure import Figure
from dlprof.reports.sparkline import sparkline

FEW_STEPS = 12
LINE = 24


@dataclass(frozen=True)
class StepLine:
    """``style`` is ``worse``, ``better`` or ``other``."""

    when: str
    code: str
    where: str
    what: str
    brought: str
    style: str


@dataclass(frozen=True)
class CaseLine:
    code: str
    array: str
    machine: str
    line: str
    sessions: int
    first: str
    newest: str
    steps: int


@dataclass(frozen=True)
class Past:
    """The history as a section of a page; ``steps`` are newest first.

    ``array`` and ``machine`` are those of all cases, empty where they differ.
    """

    answer: str
    steps: tuple[StepLine, ...]
    cases: tuple[CaseLine, ...]
    array: str
    machine: str
    notes: tuple[str, ...]
    figures: tuple[Figure, ...]
    left_out: str
    few_steps: int = FEW_STEPS


def past(trends: Sequence[Trend]) -> Past:
    """The section of these trends."""
    notes = [f"Not told yet: {text}." for text in pending_of(trends)]
    for reason, names in doubts_of(trends).items():
        notes.append(f"{reason[:1].upper()}{reason[1:]}: {', '.join(dict.fromkeys(names))}.")
    return Past(
        answer(trends),
        tuple(map(_step, steps_of(trends))),
        tuple(map(_case, trends)),
        _common([array_of(found.series) for found in trends]),
        _common([found.series.machine.name for found in trends]),
        tuple(notes),
        tuple(trend.figures(trends)),
        trend.left_out_text(trends),
    )


def _step(told: Told) -> StepLine:
    series = told.trend.series
    return StepLine(
        when_text(told.when),
        name_of(series),
        f"{array_of(series)}, on {series.machine.name}",
        told.what,
        told.brought,
        told.style,
    )


def _case(found: Trend) -> CaseLine:
    series = found.series
    times = [point.time_ns for point in series.points]
    known = [time for time in times if time is not None]
    return CaseLine(
        name_of(series),
        array_of(series),
        series.machine.name,
        sparkline(times, LINE),
        len(series.points),
        plain_time(known[0], 3) if known else "-",
        plain_time(known[-1], 3) if known else "-",
        len(found.steps) + len(found.verdicts),
    )


def _common(words: Sequence[str]) -> str:
    return words[0] if len(set(words)) == 1 else ""
