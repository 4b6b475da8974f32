"""The two charts of a page: the paths of a session, and the trend of a case."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from markupsafe import Markup

from dlprof.analysis.quantity import plain_time
from dlprof.reports.document import Chart, Point
from dlprof.reports.html.svg import COLORS, to_svg
from dlprof.text.clean import clean

MOST_ROWS = 40
MOST_POINTS = 2000
PATH_WIDTH, TREND_WIDTH = 560, 860
TREND_HEIGHT = 170
PATH_ROW, GROUP_ROW = 20, 36
LONGEST_LABEL, LONGEST_TITLE = 52, 400
WIDE = 3.0
"""From this ratio on the times of a trend stand on a log axis."""
MOST_DATES = 6
FEW_DECADES = 4
LEAST_NS, MOST_NS = 1e-3, 1e15
"""A time beyond them is no measurement, and the axis would have no room for others."""

SHAPES = {"view": "circle", "copy": "square"}
OTHER_SHAPE = "triangle-up"
SEVERITIES = ("error", "warning", "info")
NO_PROBLEM = "no problem"
TIME_TEXT = (
    "datum.value >= 1e9 ? format(datum.value / 1e9, '~g') + ' s' : "
    "datum.value >= 1e6 ? format(datum.value / 1e6, '~g') + ' ms' : "
    "datum.value >= 1e3 ? format(datum.value / 1e3, '~g') + ' µs' : "
    "format(datum.value, '~g') + ' ns'"
)


def draw(chart: Chart, name: str) -> tuple[Markup, str] | None:
    """The chart as SVG and its caption; None where it has no point. ``name`` is unique on a page.

    The SVG needs no script. Each point has a title with its path, its time and its problem.
    """
    points = [point for point in chart.points if LEAST_NS < point.time_ns < MOST_NS][:MOST_POINTS]
    if not points:
        return None
    drawn, caption = _trend(points) if chart.kind == "trend" else _paths(points)
    return to_svg(drawn, name, caption), caption


def _paths(points: Sequence[Point]) -> tuple[Any, str]:
    """A row for each path; where several arrays were converted, a row for each array."""
    groups = list(dict.fromkeys(point.group for point in points))
    if len(groups) == 1:
        points = sorted(points, key=lambda point: point.time_ns)
        names = [_short(point.label) for point in points]
        rows: Iterable[int] = range(len(points))
        what, height = "paths", PATH_ROW
    else:
        names = [_short(group) for group in groups]
        rows = [groups.index(point.group) for point in points]
        what, height = "arrays", GROUP_ROW
    shown, total = min(len(names), MOST_ROWS), len(names)
    values = [
        {**_value(point), "row": row, "y": (row + 0.5) * height}
        for point, row in zip(points, rows, strict=True)
        if row < shown
    ]
    caption = f"Time until the result is ready, log scale{_bars(points, 'is the 95 % interval')}."
    if len(groups) > 1:
        caption += " Each mark is one path."
    if shown < total:
        caption += f" The chart shows {shown} of {total:,} {what}; the table has the rest."
    names_at = [
        {"name": name, "y": (row + 0.5) * height} for row, name in enumerate(names[:MOST_ROWS])
    ]
    return _path_layers(values, names_at, shown * height, len(groups) == 1), caption


def _path_layers(
    values: Sequence[dict[str, Any]],
    names: Sequence[dict[str, Any]],
    height: float,
    named: bool,
) -> Any:
    import altair as alt

    low, high = _domain(values)
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    axis = alt.Axis(labelExpr=TIME_TEXT, labelOverlap="greedy", values=_ticks(low, high))
    x = alt.X("time:Q", scale=scale, axis=axis, title=None)
    y = alt.Y("y:Q", scale=alt.Scale(domain=[height, 0], nice=False), axis=None)
    bar = {"x": alt.X("low:Q", scale=scale, axis=axis, title=None), "x2": "high:Q", "y": y}
    marks = _chart(values)
    layers = [
        _chart(names)
        # The width of other fonts differs from browser to browser.
        .mark_text(align="right", dx=-12, font="monospace", fontSize=12, aria=False)
        .encode(x=alt.value(0), y=y, text="name:N"),
        *_mark_layers(alt, values, x, y, bar),
    ]
    if named:
        layers.append(
            marks.mark_text(align="left", dx=10, fontSize=11.5, aria=False).encode(
                x=alt.X("high:Q", scale=scale), y=y, text="rules:N", color=_color(alt, values)
            )
        )
    return alt.layer(*layers).properties(width=PATH_WIDTH, height=height)


def _mark_layers(
    alt: Any, values: Sequence[dict[str, Any]], x: Any, y: Any, bar: dict[str, Any]
) -> list[Any]:
    """The interval, the mark with its title, and a ring where there is a problem."""
    marks, color = _chart(values), _color(alt, values)
    rings = [value for value in values if value["severity"] in SEVERITIES[:2]]
    return [
        marks.mark_rule(strokeWidth=1.5, opacity=0.6, aria=False).encode(color=color, **bar),
        _chart(rings)
        .mark_point(shape="circle", filled=False, size=170, strokeWidth=1.5, aria=False)
        .encode(x=x, y=y, color=color),
        marks.mark_point(filled=True, opacity=1, size=55).encode(
            x=x, y=y, color=color, shape=_shape(alt, values), description="title:N"
        ),
    ]


def _trend(points: Sequence[Point]) -> tuple[Any, str]:
    """A mark for each session, in order."""
    import altair as alt

    values = [{**_value(point), "place": place} for place, point in enumerate(points)]
    low, high = _domain(values)
    log = high / low > WIDE
    scale = alt.Scale(type="log" if log else "linear", domain=[low, high], nice=False, zero=False)
    axis = alt.Axis(labelExpr=TIME_TEXT, labelOverlap="greedy", tickCount=4)
    x = alt.X("place:Q", scale=alt.Scale(domain=[-0.5, len(values) - 0.5]), axis=None)
    y = alt.Y("time:Q", scale=scale, axis=axis, title=None)
    bar = {"y": alt.Y("low:Q", scale=scale, axis=axis, title=None), "y2": "high:Q", "x": x}
    every = math.ceil(len(values) / MOST_DATES)
    text = {"fontSize": 11.5, "aria": False}
    layers = [
        _chart(values)
        .mark_line(strokeWidth=1.5, color=COLORS["muted"], aria=False)
        .encode(x=x, y=y),
        *_mark_layers(alt, values, x, y, bar),
        _chart(values).mark_text(dy=-14, **text).encode(x=x, y=y, text="rules:N"),
        _chart(values[::every])
        .mark_text(baseline="top", dy=8, color=COLORS["muted"], **text)
        .encode(x=x, y=alt.value(TREND_HEIGHT), text="date:N"),
    ]
    bars = _bars(points, "joins the fastest and the slowest process")
    caption = f"Time per call in each session, in order{bars}."
    return alt.layer(*layers).properties(width=TREND_WIDTH, height=TREND_HEIGHT), caption


def _bars(points: Sequence[Point], meaning: str) -> str:
    if all(point.low_ns == point.high_ns for point in points):
        return ""
    return f"; the bar {meaning}"


def _value(point: Point) -> dict[str, Any]:
    severity, _, rules = point.problem.partition(" ")
    if severity not in SEVERITIES:
        severity, rules = NO_PROBLEM, point.problem
    parts = (point.group, point.label, plain_time(point.time_ns), point.kind, point.problem)
    return {
        "time": point.time_ns,
        "low": min(point.low_ns, point.time_ns),
        "high": max(point.high_ns, point.time_ns),
        "kind": _short(point.kind),
        "date": clean(point.group[:10]),
        "severity": severity,
        "rules": _short(rules),
        "title": " · ".join(_short(part, LONGEST_TITLE) for part in parts if part),
    }


def _domain(values: Sequence[dict[str, Any]]) -> list[float]:
    """From the shortest to the longest time. Intervals beyond are cut: two processes that disagree
    have one over many powers of ten. ``values`` are changed to end there.
    """
    times = [value["time"] for value in values]
    low, high = min(times) / 1.4, max(times) * 1.4
    for value in values:
        value["low"], value["high"] = max(value["low"], low), min(value["high"], high)
    return [low, high]


def _ticks(low: float, high: float) -> list[float]:
    """Powers of ten; 1, 2 and 5 of each where there are few."""
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if len(exponents) <= FEW_DECADES else (1,)
    ticks = [step * 10.0**exponent for exponent in exponents for step in steps]
    return [tick for tick in ticks if low <= tick <= high]


def _color(alt: Any, values: Sequence[dict[str, Any]]) -> Any:
    severities = [*SEVERITIES, NO_PROBLEM]
    present = _present(values, "severity", severities)
    scale = alt.Scale(domain=severities, range=[COLORS[name] for name in (*SEVERITIES, "plain")])
    return alt.Color("severity:N", scale=scale, legend=_legend(alt, present))


def _shape(alt: Any, values: Sequence[dict[str, Any]]) -> Any:
    others = sorted({value["kind"] for value in values} - {*SHAPES})
    kinds = [*SHAPES, *others]
    scale = alt.Scale(domain=kinds, range=[*SHAPES.values(), *[OTHER_SHAPE] * len(others)])
    return alt.Shape("kind:N", scale=scale, legend=_legend(alt, _present(values, "kind", kinds)))


def _present(values: Sequence[dict[str, Any]], key: str, order: Sequence[str]) -> list[str]:
    found = {value[key] for value in values}
    return [word for word in order if word in found]


def _legend(alt: Any, present: Sequence[str]) -> Any:
    """No legend where all marks are alike."""
    return alt.Legend(values=list(present)) if len(present) > 1 else None


def _chart(values: Sequence[dict[str, Any]]) -> Any:
    import altair

    made: Any = altair
    return made.Chart(made.Data(values=list(values)))


def _short(text: str, longest: int = LONGEST_LABEL) -> str:
    """``text`` without its middle where it is long: calls differ at both ends."""
    text = clean(text)  # a control character makes vl-convert abort the process
    if len(text) <= longest:
        return text
    tail = longest // 3
    return f"{text[: longest - tail - 1]}…{text[-tail:]}"
