"""Cost of each path where there is one size: times with intervals, beside a plain memcpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dlprof.quantity import plain_time, size_text, time_text
from dlprof.reports.html.entry import Entry, choose, chosen_text, labels
from dlprof.reports.html.figure import Figure, array_text, figure
from dlprof.reports.html.size import memcpy
from dlprof.reports.html.svg import chart
from dlprof.reports.html.theme import (
    COLOURS,
    TIME_TEXT,
    owner_colour,
    owner_of,
    owner_shape,
    span,
    ticks,
)
from dlprof.session import FindingRecord

MOST = 24
WIDTH, STEP = 380, 22


def figures(everything: Sequence[Entry], findings: Sequence[FindingRecord]) -> list[Figure]:
    """One chart of the paths, cheapest first; none where nothing was measured."""
    measured = [entry for entry in everything if entry.measured and entry.row.cost_ns > 0]
    if not measured:
        return []
    shown = sorted(choose(measured, findings, MOST), key=lambda entry: entry.row.cost_ns)
    line = _memcpy_ns(measured)
    return [
        figure(
            "cost",
            "Cost of each path",
            _caption(shown, len(measured), line, shown[0].row.size_bytes),
            _chart(shown, line),
            shown,
            (
                ("path", lambda entry: entry.row.code),
                ("array", array_text),
                ("ready", lambda entry: time_text(entry.row.ready, entry.row.process_medians_ns)),
                ("result", lambda entry: entry.row.owner),
            ),
        )
    ]


def _memcpy_ns(measured: Sequence[Entry]) -> float | None:
    """One line can be drawn for one size only."""
    if len({entry.row.size_bytes for entry in measured}) != 1:
        return None
    found = memcpy(measured)
    return found[0][1] if found else None


def _caption(shown: Sequence[Entry], of: int, line: float | None, size: int) -> str:
    text = (
        "Time until the result is ready, per call, on a logarithmic axis; bars are 95 % intervals."
    )
    if line is not None:
        text += (
            f" The dashed line is a plain memcpy of {size_text(size)} on this machine:"
            f" {plain_time(line)}."
        )
    return text + chosen_text(len(shown), of)


def _chart(shown: Sequence[Entry], line: float | None) -> Any:
    import altair as alt

    names = labels(shown)
    points = [_point(entry, name) for entry, name in zip(shown, names, strict=True)]
    ends = [value for point in points for value in (point["low"], point["high"])]
    low, high = span([*ends, line or 0.0])
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    x = alt.X(
        "ready:Q",
        title="ready, per call",
        scale=scale,
        axis=alt.Axis(values=ticks(low, high), labelExpr=TIME_TEXT, labelOverlap="greedy"),
    )
    y = alt.Y("name:N", sort=names, title=None, axis=names_axis(alt))
    colour = owner_colour(alt, points)
    shape = owner_shape(alt, points)
    base = chart(points)
    layers = [
        base.mark_rule(strokeWidth=2).encode(
            x=alt.X("low:Q", scale=scale), x2="high:Q", y=y, color=colour
        ),
        base.mark_point(filled=True, opacity=1, size=60).encode(
            x=x, y=y, color=colour, shape=shape
        ),
    ]
    if line is not None:
        data = chart([{"ready": line}])
        layers.insert(0, data.mark_rule(color=COLOURS["muted"], strokeDash=[3, 3]).encode(x=x))
    return alt.layer(*layers).properties(width=WIDTH, height={"step": STEP})


def names_axis(alt: Any) -> Any:
    return alt.Axis(
        labelFont="monospace",
        labelFontSize=11.5,
        labelLimit=360,
        labelColor=COLOURS["ink"],
        grid=False,
    )


def _point(entry: Entry, name: str) -> dict[str, Any]:
    median = entry.row.cost_ns
    interval = entry.row.ready.ci95_ns if entry.row.ready is not None else None
    low, high = interval or (median, median)
    return {
        "name": name,
        "ready": median,
        "low": low if low > 0 else median,
        "high": high,
        "owner": owner_of(entry.row.owner),
    }
