"""Loops: time per iteration by where the conversion stands, its share, and the break-even."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dlprof.quantity import time_text
from dlprof.reports import placement
from dlprof.reports.html.entry import Entry, choose, chosen_text, label_lines
from dlprof.reports.html.figure import Figure, array_text, figure
from dlprof.reports.html.rows import WIDTH, Rows, drawn, y_axis
from dlprof.reports.html.svg import chart
from dlprof.reports.html.theme import COLOURS, span, time_axis
from dlprof.session import FindingRecord, TimeMeasure

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
    said = placement.answers([entry.row for entry in looped])
    caption = (
        "Time per iteration of a loop that uses the result, on a logarithmic axis; bars are 95 %"
        " intervals. In-loop converts in every iteration, hoisted once before the loop; implicit"
        " hands the foreign array to the operation itself. " + " ".join(said[:MOST_SENTENCES])
    )
    return [
        figure(
            "loop",
            "The conversion in a loop",
            caption + chosen_text(len(shown), len(looped)),
            _chart(shown),
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


def _points(shown: Sequence[Entry], rows: Rows) -> Iterator[dict[str, Any]]:
    for row, entry in enumerate(shown):
        for where, measure in zip(NAMES, measures(entry), strict=True):
            if measure is not None and measure.median_ns > 0:
                low, high = measure.ci95_ns or (measure.median_ns, measure.median_ns)
                median = measure.median_ns
                ends = {"low": low if low > 0 else median, "high": high}
                yield {"y": rows.y(row), "where": where, "time": median, **ends}


def _chart(shown: Sequence[Entry]) -> Any:
    import altair as alt

    rows = Rows(*label_lines(shown))
    points = list(_points(shown, rows))
    ends = span([value for point in points for value in (point["low"], point["high"])])
    scale = alt.Scale(type="log", domain=list(ends), nice=False)
    x = alt.X("time:Q", title="per iteration", scale=scale, axis=time_axis(alt, *ends, WIDTH))
    y = y_axis(alt, rows)
    present = [name for name in NAMES if any(point["where"] == name for point in points)]
    legend = alt.Legend(values=present, title=None)
    paint = alt.Scale(domain=NAMES, range=[COLOURS[name] for name in PAINTS])
    colour = alt.Color("where:N", scale=paint, legend=legend)
    shape = alt.Shape("where:N", scale=alt.Scale(domain=NAMES, range=SHAPES), legend=legend)
    base = chart(points)
    bars = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", scale=scale), x2="high:Q", y=y, color=colour
    )
    marks = base.mark_point(filled=True, opacity=1, size=60).encode(
        x=x, y=y, color=colour, shape=shape
    )
    return drawn(alt, rows, [bars, marks])
