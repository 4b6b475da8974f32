"""Loops: time per iteration by where the conversion stands, its share, and the break-even."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dlprof.analysis.quantity import time_text
from dlprof.reports import placement
from dlprof.reports.html import interval
from dlprof.reports.html.entry import Entry, choose, chosen_text, label_lines
from dlprof.reports.html.figure import Figure, array_text, figure
from dlprof.reports.html.rows import WIDTH, Rows, arrow_marks, drawn, y_axis
from dlprof.reports.html.size import IN_MODES
from dlprof.reports.html.svg import chart
from dlprof.reports.html.theme import COLOURS, time_axis
from dlprof.session.model import FindingRecord, TimeMeasure

MOST = 16
MOST_SENTENCES = 6
NAMES = ("in-loop", "hoisted", "implicit")
FIELDS = ("in_loop", "hoisted", "implicit")
PAINTS = ("import", "export", "release")
SHAPES = ("square", "circle", "triangle-up")


def figures(everything: Sequence[Entry], findings: Sequence[FindingRecord]) -> list[Figure]:
    """One chart of the loops; none where no placement was measured."""
    looped = [entry for entry in everything if any(measures(entry))]
    if not looped:
        return []
    shown = sorted(choose(looped, findings, MOST), key=_longest)
    picture = Picture(shown)
    said = placement.answers([entry.row for entry in looped])
    caption = (
        "Time per iteration of a loop that uses the result, on a logarithmic axis; bars are 95 %"
        " intervals. In-loop converts in every iteration, hoisted once before the loop; implicit"
        " hands the foreign array to the operation itself. " + " ".join(said[:MOST_SENTENCES])
    )
    if len(said) > MOST_SENTENCES:
        caption += f" Of {len(said) - MOST_SENTENCES:,} more the table tells."
    if any(measure.modes for entry in shown for measure in measures(entry) if measure):
        caption += IN_MODES
    return [
        figure(
            "loop",
            "The conversion in a loop",
            caption + interval.said(picture.arrows) + chosen_text(len(shown), len(looped)),
            picture.chart(),
            shown,
            (
                ("path", lambda entry: entry.row.code),
                ("array", array_text),
                ("operation", lambda entry: placement.use_text(entry.row)),
                ("alone", lambda entry: time_text(entry.row.ready, entry.row.process_medians_ns)),
                *((name, _cell(name)) for name in (*NAMES, "share", "pays from")),
            ),
        )
    ]


def measures(entry: Entry) -> tuple[TimeMeasure | None, ...]:
    """In-loop, hoisted and implicit; None for one without a time."""
    found = entry.row.placement
    return tuple(getattr(found, field, None) for field in FIELDS)


def _cell(title: str) -> Callable[[Entry], str]:
    text = placement.cell(title)
    return lambda entry: text(entry.row)


def _longest(entry: Entry) -> float:
    return max(measure.median_ns for measure in measures(entry) if measure is not None)


class Picture:
    """What is drawn of the loops: points with bars, and arrows where a bar is cut."""

    def __init__(self, shown: Sequence[Entry]) -> None:
        self.rows = Rows(*label_lines(shown))
        times = list(_times(shown, self.rows))
        self.axis = interval.domain([time for _, time in times])
        self.points: list[dict[str, Any]] = [
            {**at, "time": time.ns, **interval.bar(time, self.axis)} for at, time in times
        ]
        self.arrows: list[dict[str, Any]] = [
            {**at, **arrow} for at, time in times for arrow in interval.arrows(time, self.axis)
        ]

    def chart(self) -> Any:
        import altair as alt

        scale = alt.Scale(type="log", domain=list(self.axis), nice=False)
        axis = time_axis(alt, *self.axis, WIDTH)
        x = alt.X("time:Q", title="per iteration", scale=scale, axis=axis)
        y = y_axis(alt, self.rows)
        present = [name for name in NAMES if any(point["where"] == name for point in self.points)]
        legend = alt.Legend(values=present, title=None)
        paint = alt.Scale(domain=NAMES, range=[COLOURS[name] for name in PAINTS])
        colour = alt.Color("where:N", scale=paint, legend=legend)
        shape = alt.Shape("where:N", scale=alt.Scale(domain=NAMES, range=SHAPES), legend=legend)
        base = chart(self.points)
        bars = base.mark_rule(strokeWidth=2).encode(
            x=alt.X("low:Q", scale=scale), x2="high:Q", y=y, color=colour
        )
        marks = base.mark_point(filled=True, opacity=1, size=60).encode(
            x=x, y=y, color=colour, shape=shape
        )
        return drawn(
            alt, self.rows, [bars, marks, *arrow_marks(alt, self.arrows, scale, y, colour)]
        )


def _times(
    shown: Sequence[Entry], rows: Rows
) -> Iterator[tuple[dict[str, Any], interval.Estimate]]:
    for row, entry in enumerate(shown):
        for where, measure in zip(NAMES, measures(entry), strict=True):
            if measure is not None and measure.median_ns > 0:
                low, high = measure.ci95_ns or (None, None)
                at = {"y": rows.y(row), "where": where}
                modes = tuple(mode.median_ns for mode in measure.modes if mode.median_ns > 0)
                yield at, interval.Estimate(measure.median_ns, low, high, modes)
