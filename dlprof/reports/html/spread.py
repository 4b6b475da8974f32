"""Spread of the samples: how far calls of one process, and processes among themselves, disagree."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from dlprof.analysis.quantity import plain_time, range_text, time_text
from dlprof.reports.html.entry import Entry, label_lines
from dlprof.reports.html.figure import Figure, array_text, figure
from dlprof.reports.html.rows import WIDTH, Rows, drawn, y_axis
from dlprof.reports.html.svg import chart
from dlprof.reports.html.theme import (
    COLOURS,
    owner_colour,
    owner_of,
    spaced,
    span,
    ticks,
)
from dlprof.session.model import FindingRecord, ProcessSamples

MOST = 12
LINE_PIXELS = 9
AGREED = 1.05
"""Process medians of a smaller ratio do not disagree."""
GAP_PIXELS = 8
ONCE = "1\u00d7"
TIMES = "format(datum.value, '~g') + '\u00d7'"


def figures(everything: Sequence[Entry], _: Sequence[FindingRecord]) -> list[Figure]:
    """One chart of the cases whose processes disagree most; none where there are no samples."""
    known = [entry for entry in everything if processes(entry)]
    if not known:
        return []
    shown = sorted(known, key=disagreement, reverse=True)[:MOST]
    caption = (
        "Each line is one process: from its fastest to its slowest sample, with a bar over the"
        " middle half and a tick at the median, each as a multiple of the time at the right: the"
        " median of the processes' medians, where they fall into modes that of the mode most are"
        " in. Where processes disagree widely, ready is told as their range instead. Each sample is"
        " the mean of many calls."
    )
    if len(shown) < len(known):
        most = "processes disagree" if disagreement(shown[0]) >= AGREED else "samples spread"
        caption += f" Shown are the {len(shown)} of {len(known):,} cases whose {most} most."
    return [
        figure(
            "spread",
            "Spread of the samples in each process",
            caption,
            _chart(shown),
            shown,
            (
                ("path", lambda entry: entry.row.code),
                ("array", array_text),
                ("ready", _ready),
                (ONCE, lambda entry: plain_time(entry.row.cost_ns)),
                ("medians of the processes", _medians_text),
                ("all samples", _range_text),
                ("samples", lambda entry: str(len(_all(entry)))),
            ),
        )
    ]


def _ready(entry: Entry) -> str:
    return time_text(entry.row.ready, entry.row.process_medians_ns)


def processes(entry: Entry) -> list[ProcessSamples]:
    """Those of the ready time, or of the time that it repeats."""
    measure = entry.result.ready_time
    if measure is not None and measure.same_as is not None:
        measure = entry.result.host_time
    found = measure.processes if measure is not None else []
    if entry.row.cost_ns <= 0 or not entry.measured:
        return []
    return [one for one in found if one.samples_ns and min(one.samples_ns) > 0]


def disagreement(entry: Entry) -> float:
    """Largest process median over the smallest; the spread of all samples breaks ties."""
    medians = [statistics.median(one.samples_ns) for one in processes(entry)]
    samples = _all(entry)
    return max(medians) / min(medians) + 1e-6 * max(samples) / min(samples)


def _all(entry: Entry) -> list[float]:
    return [sample for one in processes(entry) for sample in one.samples_ns]


def _medians_text(entry: Entry) -> str:
    return ", ".join(plain_time(statistics.median(one.samples_ns), 3) for one in processes(entry))


def _range_text(entry: Entry) -> str:
    return range_text(min(_all(entry)), max(_all(entry)))


def _chart(shown: Sequence[Entry]) -> Any:
    import altair as alt

    most = max(len(processes(entry)) for entry in shown)
    once = tuple(f"{ONCE} = {plain_time(entry.row.cost_ns)}" for entry in shown)
    rows = Rows(*label_lines(shown), once, most * LINE_PIXELS + GAP_PIXELS)
    values = [
        _box(one, rows.y(row, (place + 0.5) * LINE_PIXELS), entry)
        for row, entry in enumerate(shown)
        for place, one in enumerate(processes(entry))
    ]
    low, high = span([value[end] for value in values for end in ("low", "high")], 1.05)
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    axis = alt.Axis(values=spaced(ticks(low, high), (low, high), WIDTH), labelExpr=TIMES)
    y, colour = y_axis(alt, rows), owner_colour(alt, values, stroke=2)
    base = chart(values)
    title = "multiple of the median of the processes' medians"
    layers = [
        base.mark_rule(strokeWidth=1).encode(
            x=alt.X("low:Q", scale=scale, axis=axis, title=title), x2="high:Q", y=y, color=colour
        ),
        base.mark_rule(strokeWidth=5, opacity=0.55).encode(
            x=alt.X("quarter:Q", scale=scale), x2="three:Q", y=y, color=colour
        ),
        base.mark_tick(thickness=2, size=9, color=COLOURS["ink"]).encode(
            x=alt.X("median:Q", scale=scale), y=y
        ),
    ]
    return drawn(alt, rows, layers)


def _box(one: ProcessSamples, y: float, entry: Entry) -> dict[str, Any]:
    samples = [sample / entry.row.cost_ns for sample in one.samples_ns]
    median = statistics.median(samples)
    cuts = (
        statistics.quantiles(samples, n=4, method="inclusive") if len(samples) > 1 else [median] * 3
    )
    return {
        "y": y,
        "low": min(samples),
        "quarter": cuts[0],
        "median": median,
        "three": cuts[2],
        "high": max(samples),
        "owner": owner_of(entry.row.owner),
    }
