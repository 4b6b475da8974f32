"""The trend of a case over the sessions of a history, with its steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dlprof.analysis.quantity import plain_time
from dlprof.history.series import Point
from dlprof.history.trend import TimeStep, Trend
from dlprof.history.verdicts import VerdictStep
from dlprof.reports.history_text import (
    array_of,
    label_text,
    name_of,
    number,
    pending_text,
    steps_of,
    when_text,
)
from dlprof.reports.html import svg
from dlprof.reports.html.entry import short
from dlprof.reports.html.figure import Figure, Line
from dlprof.reports.html.theme import (
    COLOURS,
    TIME_TEXT,
    owner_colour,
    owner_of,
    owner_shape,
    span,
    ticks,
)
from dlprof.text.clean import clean

MOST_FIGURES = 12
MOST_DOTS = 1000
WIDTH, HEIGHT = 520, 180
ROOM = 1.12
"""What differs by less than this is drawn almost level."""
WIDE = 3.0
"""From this ratio on the axis is logarithmic."""
FEW_DATES = 6
LONGEST_WORD = 22
DATE_TEXT = "utcFormat(datum.value, '%Y-%m-%d')"


def figures(trends: Sequence[Trend]) -> list[Figure]:
    """One chart for each case: those with a step first, the newest step first of all."""
    known = [trend for trend in trends if trend.series.timed]
    return [_figure(trend, place) for place, trend in enumerate(_ordered(known)[:MOST_FIGURES])]


def left_out_text(trends: Sequence[Trend]) -> str:
    """Which cases have no chart; nothing where all have one."""
    known = [trend for trend in trends if trend.series.timed]
    if len(known) <= MOST_FIGURES:
        return ""
    return (
        f"{MOST_FIGURES} of {len(known):,} charts are drawn: those with the newest steps first."
        " The table has all."
    )


def _ordered(trends: Sequence[Trend]) -> list[Trend]:
    def rank(trend: Trend) -> tuple[bool, float, bool]:
        newest = max((told.when.timestamp() for told in steps_of([trend])), default=0.0)
        return newest == 0.0, -newest, trend.pending is None

    return sorted(trends, key=rank)


def _figure(trend: Trend, place: int) -> Figure:
    series = trend.series
    title = f"{short(name_of(series), 60)}, {array_of(series)}, on {series.machine.name}"
    name = f"trend{place}"
    return Figure(
        name,
        title,
        _caption(trend),
        ("session", "label", "time", "processes", "result", "status"),
        tuple(Line(None, _cells(point)) for point in reversed(series.points)),
        svg.draw(_chart(trend), name, _alternative(trend, title)),
    )


def _alternative(trend: Trend, title: str) -> str:
    """The chart in words, for those who do not see it."""
    said = [f"{when_text(told.when)} {told.what}" for told in reversed(steps_of([trend]))]
    return clean(f"Chart: {title}. {'; '.join(said) if said else 'No step'}.", 1000)


def _caption(trend: Trend) -> str:
    text = "Time per call over the dates of the sessions; the line joins the medians."
    if _dots(trend):
        text += " Each faint dot is one process."
    found = steps_of([trend])
    for told in found:
        text += f" Step at {when_text(told.when)}: {told.what}; {told.brought}."
    if not found:
        text += " No step was found."
    pending = pending_text(trend)
    return text + (f" Not told yet: {pending}." if pending else "")


def _cells(point: Point) -> tuple[str, ...]:
    owner = point.result.ownership.verdict if point.result.ownership else "-"
    time_ns = point.time_ns
    return (
        when_text(point.entry.created),
        label_text(point.entry.label.text) or "-",
        "-" if time_ns is None else plain_time(time_ns, 3),
        str(len(point.side)),
        clean(owner, 20),
        clean(point.doubt or point.result.status, 120),
    )


def _chart(trend: Trend) -> Any:
    import altair as alt

    points = [_value(point) for point in trend.series.timed]
    dots = _dots(trend)
    scale, axis = _times(alt, [value["ns"] for value in (*dots, *points)])
    y = alt.Y("ns:Q", scale=scale, axis=axis, title="time per call")
    colour = owner_colour(alt, points)
    x = _dates(alt, points)
    faint = svg.chart(dots).mark_point(filled=True, size=12, opacity=0.35, color=COLOURS["muted"])
    layers = [
        *([faint.encode(x=x, y=y)] if dots else []),
        svg.chart(points).mark_line(strokeWidth=1.5, color=COLOURS["other"]).encode(x=x, y=y),
        svg.chart(points)
        .mark_point(filled=True, opacity=1, size=44)
        .encode(x=x, y=y, color=colour, shape=owner_shape(alt, points)),
        *_marks(alt, x, trend),
    ]
    return alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)


def _dots(trend: Trend) -> list[dict[str, Any]]:
    """A dot for each process; none where they would be too many to be seen, and to be stored."""
    timed = trend.series.timed
    if sum(len(point.side) for point in timed) > MOST_DOTS:
        return []
    return [
        {"when": _when(point), "ns": process.time_ns} for point in timed for process in point.side
    ]


def _value(point: Point) -> dict[str, Any]:
    owner = point.result.ownership.verdict if point.result.ownership else ""
    return {"when": _when(point), "ns": point.time_ns, "owner": owner_of(owner)}


def _when(point: Point) -> float:
    """Milliseconds, as Vega counts."""
    return point.entry.created.timestamp() * 1000.0


def _dates(alt: Any, points: Sequence[dict[str, Any]]) -> Any:
    """Dates of sessions; never two ticks of one day."""
    days: dict[int, float] = {}
    for point in points:
        days.setdefault(int(point["when"] // 86_400_000), point["when"])
    every = max(1, -(-len(days) // FEW_DATES))
    axis = alt.Axis(values=list(days.values())[::every], labelExpr=DATE_TEXT, grid=False)
    return alt.X("when:Q", scale=alt.Scale(zero=False, nice=False, padding=12), axis=axis, title="")


def _times(alt: Any, values: Sequence[float]) -> tuple[Any, Any]:
    low, high = span(values, ROOM)
    if high / low < WIDE:
        scale = alt.Scale(domain=[low, high], zero=False, nice=False)
        return scale, alt.Axis(tickCount=4, labelExpr=TIME_TEXT, titlePadding=12)
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    return scale, alt.Axis(values=ticks(low, high), labelExpr=TIME_TEXT, labelOverlap="greedy")


def _marks(alt: Any, x: Any, trend: Trend) -> list[Any]:
    """A line where a step stands, between the sessions on both of its sides, and its word."""
    marks = [*map(_time_mark, trend.steps), *map(_verdict_mark, trend.verdicts)]
    if not marks:
        return []
    # Words of one place stand below one another.
    seen: dict[float, int] = {}
    for mark in marks:
        mark["line"] = 12 * seen.get(mark["when"], 0) + 2
        seen[mark["when"]] = seen.get(mark["when"], 0) + 1
    words = [
        svg.chart([mark])
        .mark_text(align="left", baseline="top", dx=4, dy=mark["line"], fontSize=11)
        .encode(x=x, y=alt.value(0), text="word:N")
        for mark in marks
    ]
    rules = svg.chart(marks).mark_rule(strokeDash=[4, 3], color=COLOURS["ink"], strokeWidth=1.25)
    return [rules.encode(x=x), *words]


def _time_mark(step: TimeStep) -> dict[str, Any]:
    return {"when": _between(step), "word": f"{number(step.step.ratio)}\u00d7"}


def _verdict_mark(step: VerdictStep) -> dict[str, Any]:
    return {"when": _between(step), "word": clean(step.change.after, LONGEST_WORD)}


def _between(step: TimeStep | VerdictStep) -> float:
    return (_when(step.cause.before) + _when(step.cause.behind)) / 2
