"""Idle beside loaded: what a call takes when work is queued on its source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dlprof.analysis.case_view import CaseView
from dlprof.analysis.quantity import plain_time
from dlprof.reports.html.entry import Entry, choose, chosen_text, label_lines
from dlprof.reports.html.figure import Figure, array_text, figure
from dlprof.reports.html.rows import WIDTH, Rows, drawn, y_axis
from dlprof.reports.html.svg import chart
from dlprof.reports.html.theme import COLOURS, span, time_axis
from dlprof.session.model import FindingRecord

MOST = 16
KINDS = ("idle", "loaded", "queued work")
SHAPES = ["circle", "diamond", "M0,-1V1"]


def figures(everything: Sequence[Entry], findings: Sequence[FindingRecord]) -> list[Figure]:
    """One chart; none where no work could be queued."""
    known = [entry for entry in everything if entry.measured and loaded(entry) and idle_ns(entry)]
    if not known:
        return []
    shown = sorted(choose(known, findings, MOST), key=lambda entry: idle_ns(entry) or 0.0)
    caption = (
        "The host's time in one call with nothing queued (idle) and behind the longest queue"
        " (loaded), beside the length of that queue, on a logarithmic axis. A call whose loaded"
        " time reaches the queue's length waits for it. The queue was measured at the first shape"
        " of each path."
    )
    return [
        figure(
            "loaded",
            "Idle beside loaded",
            caption + chosen_text(len(shown), len(known)),
            _chart(shown),
            shown,
            (
                ("path", lambda entry: entry.row.code),
                ("array", array_text),
                ("idle", lambda entry: plain_time(idle_ns(entry) or 0.0)),
                ("loaded", lambda entry: plain_time((loaded(entry) or (0.0, 0.0))[0])),
                ("queued work", lambda entry: plain_time((loaded(entry) or (0.0, 0.0))[1])),
                ("verdict", lambda entry: entry.row.loaded or "-"),
            ),
        )
    ]


def loaded(entry: Entry) -> tuple[float, float] | None:
    """Host time behind the longest queue, and the length of that queue, in ns."""
    return CaseView(entry.index, entry.result).loaded


def idle_ns(entry: Entry) -> float | None:
    host = entry.result.host_time
    return host.median_ns if host is not None and host.median_ns > 0 else None


def _chart(shown: Sequence[Entry]) -> Any:
    import altair as alt

    rows = Rows(*label_lines(shown))
    points: list[dict[str, Any]] = []
    lines: list[dict[str, Any]] = []
    for place, entry in enumerate(shown):
        host, queued = loaded(entry) or (0.0, 0.0)
        times = (idle_ns(entry) or 0.0, host, queued)
        y = rows.y(place)
        lines.append({"y": y, "low": min(times[:2]), "high": max(times[:2])})
        points += [
            {"y": y, "kind": kind, "ns": ns}
            for kind, ns in zip(KINDS, times, strict=True)
            if ns > 0
        ]
    axis = span([point["ns"] for point in points])
    scale = alt.Scale(type="log", domain=list(axis), nice=False)
    x = alt.X("ns:Q", title="host time of one call", scale=scale, axis=time_axis(alt, *axis, WIDTH))
    y_ = y_axis(alt, rows)
    colours = [COLOURS["view"], COLOURS["waiting"], COLOURS["muted"]]
    rules = chart(lines).mark_rule(strokeWidth=2, color=COLOURS["grid"])
    marks = chart(points).mark_point(filled=False, opacity=1, size=70, strokeWidth=2)
    layers = [
        rules.encode(x=alt.X("low:Q", scale=scale), x2="high:Q", y=y_),
        marks.encode(
            x=x,
            y=y_,
            color=alt.Color("kind:N", scale=alt.Scale(domain=KINDS, range=colours)),
            shape=alt.Shape("kind:N", scale=alt.Scale(domain=KINDS, range=SHAPES)),
        ),
    ]
    return drawn(alt, rows, layers)
