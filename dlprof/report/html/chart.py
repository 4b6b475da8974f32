"""The pictures of a page: the paths of a session, and the lines of a program over time.

Rows are as high as their text, and everything across is a share of the width. So one picture serves
every screen. The template draws it as SVG.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from dlprof.judge.rule import SEVERITIES
from dlprof.report.document import Chart, Lane, Point, Timeline
from dlprof.runner.quantity import plain_time

MOST_ROWS, MOST_SPANS = 40, 1000
ROW = 36
"""The pixels of a row: its name, and below it what is drawn."""
LEAST_NS, MOST_NS = 1e-3, 1e15
"""A time beyond them is no measurement, and the axis would have no room for others."""
FAR = 5
"""A bar that reaches this far beyond all times ends at the edge."""
TICKS = ((1,), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 7))
FEWEST_TICKS, MOST_TICKS = 3, 6
LEAST_WIDTH, LEAST_OPACITY = 0.2, 0.25
"""Of a span that took any time: it must be seen."""
SHAPES = {"view": "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", "copy": "M-4-4h8v8h-8z"}
OTHER_SHAPE = "M0-5l5 9h-10z"
COLORS = {"view": "plain", "copy": "warning", "mixed": "warning", "waits": "error"}

Scale = Callable[[float], float]
"""From ns to a share of the width in percent."""


@dataclass(frozen=True)
class Mark:
    """A point and its bar, or a span; ``x``, ``low`` and ``high`` in percent of the width."""

    title: str
    low: float
    high: float
    color: str
    """The name of a color of the page."""
    x: float = 0.0
    shape: str = ""
    """An SVG path; empty for a span."""
    has_ring: bool = False
    opacity: float = 1.0


@dataclass(frozen=True)
class Row:
    name: str
    marks: tuple[Mark, ...]
    value: str = ""
    color: str = "muted"
    """Of the value."""
    is_bold: bool = False


@dataclass(frozen=True)
class Picture:
    """``ticks`` have a place in percent and a name; ``legend`` a shape, a color and a word."""

    rows: tuple[Row, ...]
    ticks: tuple[tuple[float, str], ...]
    caption: str
    legend: tuple[tuple[str, str, str], ...] = ()

    @property
    def height(self) -> int:
        return ROW * len(self.rows)


def picture_of(drawn: Chart | Timeline | None) -> Picture | None:
    """None if there is nothing to draw."""
    if isinstance(drawn, Timeline):
        return _timeline(drawn) if drawn.lanes and drawn.end_ns > 0 else None
    points = drawn.points if drawn is not None else ()
    known = [point for point in points if LEAST_NS < point.time_ns < MOST_NS]
    return _chart(known) if known else None


def _chart(points: Sequence[Point]) -> Picture:
    """A row for each path; if several arrays were converted, a row for each array."""
    groups = list(dict.fromkeys(point.group for point in points))
    if len(groups) == 1:
        ranked = sorted(points, key=lambda one: one.time_ns)
        rows = [([one], one.label, one.mark) for one in ranked[:MOST_ROWS]]
        left = len(points) - len(rows)
    else:
        alike = [[one for one in points if one.group == group] for group in groups[:MOST_ROWS]]
        rows = [(found, found[0].group, "") for found in alike]
        left = len(groups) - len(rows)
    across, ticks = _scale([one for found, *_ in rows for one in found])
    caption = "Time until the result is ready, log scale. A bar is the 95 % interval of the median."
    if left:
        caption += f" The table has {left:,} more."
    return Picture(
        tuple(
            Row(
                name,
                tuple(_point(one, across) for one in found),
                value,
                _color(found[0]),
                any(one.is_answer for one in found) and len(groups) == 1,
            )
            for found, name, value in rows
        ),
        tuple((across(at_ns), plain_time(at_ns).replace(".0 ", " ")) for at_ns in ticks),
        caption,
        _legend(points),
    )


def _point(point: Point, across: Scale) -> Mark:
    low, high = _ends(point)
    parts = (point.group, point.label, plain_time(point.time_ns), point.kind, point.mark)
    return Mark(
        ", ".join(filter(None, parts)),
        across(low),
        across(high),
        _color(point),
        across(point.time_ns),
        SHAPES.get(point.kind, OTHER_SHAPE),
        point.severity in SEVERITIES[:2],
    )


def _color(point: Point) -> str:
    return point.severity or ("muted" if point.mark else "plain")


def _legend(points: Sequence[Point]) -> tuple[tuple[str, str, str], ...]:
    kinds = dict.fromkeys(point.kind for point in points)
    colors = {_color(point) for point in points}
    words = {"plain": "no problem seen", "muted": "suspected"}
    bar = "M-5-2h10v4h-10z"
    shown = [color for color in (*SEVERITIES, *reversed(words)) if color in colors]
    return (
        *((SHAPES.get(kind, OTHER_SHAPE), "muted", kind) for kind in kinds),
        *((bar, color, words.get(color, color)) for color in shown),
    )


def _ends(point: Point) -> tuple[float, float]:
    low = point.low_ns if LEAST_NS < point.low_ns < point.time_ns else point.time_ns
    high = point.high_ns if point.time_ns < point.high_ns < MOST_NS else point.time_ns
    return low, high


def _scale(points: Sequence[Point]) -> tuple[Scale, list[float]]:
    """A log scale over all times, from 2 to 96 % of the width, and the times at its ticks."""
    ends, times = [_ends(point) for point in points], [point.time_ns for point in points]
    low = 0.9 * max(min(low for low, _ in ends), min(times) / FAR)
    high = 1.1 * min(max(high for _, high in ends), max(times) * FAR)

    def place(ns: float) -> float:
        return 2 + 94 * math.log(min(max(ns, low), high) / low) / math.log(high / low)

    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks: list[float] = []
    for steps in TICKS:
        ticks = [step * 10.0**decade for decade in decades for step in steps]
        ticks = [time for time in ticks if low <= time <= high]
        if len(ticks) >= FEWEST_TICKS:
            break
    every = max(math.ceil(len(ticks) / MOST_TICKS), 1)  # one time may lie between all ticks
    return place, ticks[::every]


def _timeline(timeline: Timeline) -> Picture:
    """A row for each line of a program, dark where it took most of the time."""
    rows = tuple(
        Row(lane.label, tuple(_spans(lane, timeline.end_ns)), lane.value) for lane in timeline.lanes
    )
    step = timeline.end_ns / MOST_TICKS
    step = math.ceil(step / 10 ** math.floor(math.log10(step))) * 10 ** math.floor(math.log10(step))
    ticks = [number * step for number in range(math.floor(timeline.end_ns / step) + 1)]
    caption = "When the lines converted: the stronger the color, the more of that time they took."
    return Picture(
        rows,
        tuple((100 * ns / timeline.end_ns, plain_time(ns) if ns else "0") for ns in ticks),
        f"{caption} {timeline.more}".strip(),
    )


def _spans(lane: Lane, end_ns: float) -> Iterator[Mark]:
    for begin, end, share in lane.spans[:MOST_SPANS]:
        took = f"{plain_time(share * (end - begin))} of {plain_time(end - begin)}"
        low = 100 * begin / end_ns
        yield Mark(
            f"{lane.label}, {lane.kind}, at {plain_time(begin)}: {took}",
            low,
            max(100 * end / end_ns, low + LEAST_WIDTH),
            COLORS.get(lane.kind, "muted"),
            opacity=LEAST_OPACITY + (1 - LEAST_OPACITY) * min(share, 1.0),
        )
