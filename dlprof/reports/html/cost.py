"""Cost of each path where there is one size: times with intervals, beside a plain memcpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dlprof.analysis.quantity import plain_time, size_text, time_text
from dlprof.reports.html import interval
from dlprof.reports.html.entry import Entry, choose, chosen_text, label_lines
from dlprof.reports.html.figure import Figure, array_text, figure
from dlprof.reports.html.rows import WIDTH, Rows, arrow_marks, drawn, y_axis
from dlprof.reports.html.size import memcpy
from dlprof.reports.html.svg import chart
from dlprof.reports.html.theme import (
    COLOURS,
    owner_colour,
    owner_of,
    owner_shape,
    time_axis,
)
from dlprof.session.model import FindingRecord

MOST = 24


def figures(everything: Sequence[Entry], findings: Sequence[FindingRecord]) -> list[Figure]:
    """One chart of the paths, cheapest first; none where nothing was measured."""
    measured = [entry for entry in everything if entry.measured and entry.row.cost_ns > 0]
    if not measured:
        return []
    shown = sorted(choose(measured, findings, MOST), key=lambda entry: entry.row.cost_ns)
    line = _memcpy_ns(measured)
    picture = Picture(shown, line)
    return [
        figure(
            "cost",
            "Cost of each path",
            _caption(picture, len(measured)),
            picture.chart(),
            shown,
            (
                ("path", lambda entry: entry.row.code),
                ("array", array_text),
                ("ready", _ready),
                ("result", lambda entry: entry.row.owner),
            ),
        )
    ]


def _ready(entry: Entry) -> str:
    return time_text(entry.row.ready, entry.row.process_medians_ns)


def _memcpy_ns(measured: Sequence[Entry]) -> float | None:
    """One line can be drawn for one size on one device only."""
    rows = [entry.row for entry in measured]
    if len({(row.size_bytes, row.device, row.environment) for row in rows}) != 1:
        return None
    found = memcpy(measured)
    return found[0][1] if found else None


def _caption(picture: Picture, of: int) -> str:
    text = (
        "Time until the result is ready, per call, on a logarithmic axis; bars are 95 % intervals."
    )
    if picture.modes:
        text += (
            " Where processes fall into modes, each mode is a hollow mark on a dashed line; the"
            " filled one is that of most processes."
        )
    if picture.line is not None:
        text += (
            " The dashed line down the chart is a plain memcpy of"
            f" {size_text(picture.shown[0].row.size_bytes)} on this machine:"
            f" {plain_time(picture.line)}."
        )
    return text + interval.said(picture.arrows) + chosen_text(len(picture.shown), of)


class Picture:
    """What is drawn of the cases: points, bars, arrows and modes, each with its place."""

    def __init__(self, shown: Sequence[Entry], line: float | None) -> None:
        self.shown = shown
        self.line = line
        self.rows = Rows(*label_lines(shown), list(map(_ready, shown)))
        estimates = [interval.estimate(entry) for entry in shown]
        self.axis = interval.domain(estimates, [] if line is None else [line])
        self.points: list[dict[str, Any]] = []
        self.arrows: list[dict[str, Any]] = []
        self.modes: list[dict[str, Any]] = []
        for place, (entry, one) in enumerate(zip(shown, estimates, strict=True)):
            at = {"y": self.rows.y(place), "owner": owner_of(entry.row.owner)}
            self.points.append({**at, "ready": one.ns, **interval.bar(one, self.axis)})
            self.arrows += [{**at, **arrow} for arrow in interval.arrows(one, self.axis)]
            self.modes += [
                {**at, "mode": ns, "low": min(one.modes), "high": max(one.modes)}
                for ns in one.modes
            ]

    def chart(self) -> Any:
        import altair as alt

        scale = alt.Scale(type="log", domain=list(self.axis), nice=False)
        x = alt.X(
            "ready:Q", title="ready, per call", scale=scale, axis=time_axis(alt, *self.axis, WIDTH)
        )
        y, colour = y_axis(alt, self.rows), owner_colour(alt, self.points)
        base = chart(self.points)
        low = alt.X("low:Q", scale=scale)
        layers = [
            base.mark_rule(strokeWidth=2).encode(x=low, x2="high:Q", y=y, color=colour),
            base.mark_point(filled=True, opacity=1, size=60).encode(
                x=x, y=y, color=colour, shape=owner_shape(alt, self.points)
            ),
        ]
        if self.modes:
            modes = chart(self.modes)
            dashes = modes.mark_rule(strokeWidth=1.5, strokeDash=[3, 2])
            layers += [
                dashes.encode(x=low, x2="high:Q", y=y, color=colour),
                modes.mark_point(size=44, strokeWidth=1.5, opacity=1).encode(
                    x=alt.X("mode:Q", scale=scale), y=y, color=colour
                ),
            ]
        layers += arrow_marks(alt, self.arrows, scale, y, colour)
        if self.line is not None:
            line = chart([{"ready": self.line, **ends} for ends in self.rows.bands()])
            dashed = line.mark_rule(color=COLOURS["muted"], strokeDash=[3, 3])
            layers.insert(0, dashed.encode(x=x, y=y, y2="below:Q"))
        return drawn(alt, self.rows, layers)
