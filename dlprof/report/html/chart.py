"""The pictures of a page as inline SVG: paths of a session, a case over time, lines of a program.

Each is drawn twice, for wide screens and for phones; the style of the page shows one.

An SVG takes its colors from the page, so it serves light and dark, and needs no script: each mark
has a title with its path, its time and its problem.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from markupsafe import Markup

from dlprof.judge import with_name
from dlprof.judge.rule import SEVERITIES
from dlprof.report.document import MOST_POINTS, Chart, Lane, Point, Timeline
from dlprof.runner.quantity import plain_time

MOST_ROWS = 40
AXIS, TREND_HEIGHT = 24, 142
TICK = 43
"""The least between the names of two ticks."""
LONGEST_LABEL = 48
FEWEST_TICKS = 3
TICKS = ((1,), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 7))
FAR = 5
MOST_TICKS = 6
"""Where a few round times are not enough, these are evenly spaced."""
LEAST_NS, MOST_NS = 1e-3, 1e15
"""A time beyond them is no measurement, and the axis would have no room for others."""

SHAPES = {"view": "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", "copy": "M-4-4h8v8h-8z"}
OTHER_SHAPE = "M0-5l5 9h-10z"
ANY_SHAPE = "M-5-2h10v4h-10z"
"""In the legend of the colors."""


class Layout(NamedTuple):
    """A size of screen: lengths in its pixels."""

    name: str
    """The class by which the style of the page shows it."""
    width: int
    is_beside: bool
    """Whether the names of the rows stand left of the marks; else above them."""
    longest: int
    """Characters of a name; longer ones lose their middle."""
    font: int
    path_row: int
    group_row: int
    dates: int
    """The most dates below a trend."""


LAYOUTS = (
    Layout("wide", 980, True, 64, 12, 20, 36, 6),
    Layout("narrow", 358, False, 58, 10, 36, 44, 2),
)
GLYPH, MONO = 7.0, 0.61
"""What a character takes, and of a font of fixed width, as a share of the font's size."""
ABOVE, LEFT = 18, 8
"""What a name above its marks takes, and the room left of them."""

BARS = "is the 95 % interval of the median, or spans all processes where they differ"

Scale = Callable[[float], float]
"""From ns to a place in the picture."""


def draw(drawn: Chart | Timeline) -> tuple[Markup, str] | None:
    """The picture as SVG, and its caption; None where there is nothing to draw."""
    return _timeline(drawn) if isinstance(drawn, Timeline) else _chart(drawn)


def _chart(chart: Chart) -> tuple[Markup, str] | None:
    points = [point for point in chart.points if LEAST_NS < point.time_ns < MOST_NS][:MOST_POINTS]
    if not points:
        return None
    each = _trend if chart.kind == "trend" else _paths
    drawn = [each(points, layout) for layout in LAYOUTS]
    return Markup("\n").join(picture for picture, _ in drawn), drawn[0][1]


def _paths(points: Sequence[Point], layout: Layout) -> tuple[Markup, str]:
    """A row for each path; where several arrays were converted, a row for each array."""
    groups = list(dict.fromkeys(point.group for point in points))
    if len(groups) == 1:
        rows = [(point.label, [point]) for point in sorted(points, key=lambda one: one.time_ns)]
    else:
        rows = [(group, [one for one in points if one.group == group]) for group in groups]
    what = "paths" if len(groups) == 1 else "arrays"
    height = layout.path_row if len(groups) == 1 else layout.group_row
    above = 0 if layout.is_beside else ABOVE
    shown = [(_shortened(label, layout.longest), row) for label, row in rows[:MOST_ROWS]]
    names = 24 + MONO * layout.font * max(len(label) for label, _ in shown)
    marks = (
        [len(_shortened(point.mark)) for _, row in shown for point in row]
        if what == "paths"
        else []
    )
    ends = (names if layout.is_beside else LEFT, layout.width - 24 - GLYPH * max(marks, default=0))
    across, ticks = _scale([point for _, row in shown for point in row], *ends)
    drawn, top = _legend(points, layout)
    bottom = top + len(shown) * height
    for at_ns in _apart(ticks, across):
        x = across(at_ns)
        drawn.append(_line(x, top, x, bottom, "grid"))
        drawn.append(_text(_tick_name(at_ns), x, bottom + 16, "middle", "muted"))
    for place, (label, row) in enumerate(shown):
        y = top + place * height + (height + above) / 2
        at, anchor = (names - 16, "end") if layout.is_beside else (0, "")
        is_answer = any(point.is_answer for point in row)
        drawn.append(_text(label, at, y + 4 - above, anchor, "ink", layout.font, is_answer))
        for point in row:
            low, high = _ends(point)
            drawn.append(_line(across(low), y, across(high), y, _color(point)))
            drawn.append(_mark(point, across(point.time_ns), y))
            if len(groups) == 1:
                drawn.append(
                    _text(
                        _shortened(point.mark),
                        across(high) + 12,
                        y + 4,
                        "",
                        _color(point),
                    )
                )
    caption = _caption(points)
    caption += _cut(map(across, chain.from_iterable(map(_ends, points))), ends)
    if len(groups) > 1:
        caption += " Each mark is one path."
    if len(shown) < len(rows):
        caption += f" The chart shows {MOST_ROWS} of {len(rows):,} {what}; the table has the rest."
    return _svg(drawn, layout, bottom + AXIS, caption), caption


def _caption(points: Sequence[Point]) -> str:
    """What the marks of the paths mean."""
    ids = sorted({rule for one in points for rule in (*one.rules, *one.suspected)})
    told = [f"{', '.join(map(with_name, ids))}."] if ids else []
    told.append(f"Time until the result is ready, log scale{_bars(points, BARS)}.")
    if any(point.is_answer for point in points):
        told.append("The answers above are bold.")
    return " ".join(told)


def _trend(points: Sequence[Point], layout: Layout) -> tuple[Markup, str]:
    """A mark for each session, in order."""
    drawn, top = _legend(points, layout)
    left, bottom = 70, top + TREND_HEIGHT
    up, ticks = _scale(points, bottom, top + 14)
    step = (layout.width - left) / len(points)
    places = [left + (place + 0.5) * step for place in range(len(points))]
    for at_ns in ticks:
        drawn.append(_line(left, up(at_ns), layout.width, up(at_ns), "grid"))
        drawn.append(_text(_tick_name(at_ns), left - 8, up(at_ns) + 4, "end", "muted"))
    line = " ".join(
        f"{x:.1f},{up(point.time_ns):.1f}" for x, point in zip(places, points, strict=True)
    )
    drawn.append(Markup('<polyline points="{}" fill="none" stroke="var(--muted)"/>').format(line))
    every = math.ceil(len(points) / layout.dates)
    for place, (x, point) in enumerate(zip(places, points, strict=True)):
        low, high = _ends(point)
        drawn.append(_line(x, up(low), x, up(high), _color(point)))
        drawn.append(_mark(point, x, up(point.time_ns)))
        drawn.append(_text(_shortened(point.mark), x, up(high) - 10, "middle", _color(point)))
        if place % every == 0:
            drawn.append(_text(_shortened(point.group), x, bottom + 18, "middle", "muted"))
    caption = (
        "Time per call in each session, in order, log scale"
        f"{_bars(points, 'joins the fastest and the slowest process')}."
    )
    return _svg(drawn, layout, bottom + AXIS, caption), caption


def _scale(points: Sequence[Point], start: float, end: float) -> tuple[Scale, list[float]]:
    """A log scale over all times, and the round times at its ticks.

    A bar that reaches far beyond all times ends where the picture does.
    """
    ends, times = [_ends(point) for point in points], [point.time_ns for point in points]
    low = 0.9 * max(min(low for low, _ in ends), min(times) / FAR)
    high = 1.1 * min(max(high for _, high in ends), max(times) * FAR)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in TICKS:
        round_ = [step * 10.0**decade for decade in decades for step in steps]
        ticks = [time for time in round_ if low <= time <= high]
        # Of a few ticks one must be near each end: a mark far from all cannot be read.
        is_near = bool(ticks) and ticks[0] < 2 * low and ticks[-1] > high / 2
        if len(ticks) >= (FEWEST_TICKS if is_near else MOST_TICKS):
            break
    else:
        ticks = _even(low, high)
    ratio = high / low

    def place(ns: float) -> float:
        within = min(max(ns, low), high)
        return start + (end - start) * math.log(within / low) / math.log(ratio)

    return place, ticks


def _apart(ticks: Iterable[float], across: Scale) -> list[float]:
    """The ticks whose names do not touch; of those that do, powers of ten stay, then fives."""
    kept: list[float] = []
    for at_ns in sorted(ticks, key=lambda at_ns: "15".find(f"{at_ns:e}"[0]) % 3):
        if all(abs(across(at_ns) - across(other)) >= TICK for other in kept):
            kept.append(at_ns)
    return kept


def _tick_name(at_ns: float) -> str:
    return plain_time(at_ns).replace(".0 ", " ")


def _cut(reached: Iterable[float], ends: tuple[float, float]) -> str:
    """A sentence where bars end only because the picture does."""
    is_cut = any(place <= ends[0] or place >= ends[1] for place in reached)
    return " Bars are cut at the edge." if is_cut else ""


def _even(low: float, high: float) -> list[float]:
    """At most ``MOST_TICKS`` round times, evenly spaced."""
    decade = 10.0 ** math.floor(math.log10((high - low) / MOST_TICKS))
    step = next(n * decade for n in (1, 2, 5, 10) if (high - low) / (n * decade) < MOST_TICKS)
    return [n * step for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _ends(point: Point) -> tuple[float, float]:
    low = point.low_ns if LEAST_NS < point.low_ns < point.time_ns else point.time_ns
    high = point.high_ns if point.time_ns < point.high_ns < MOST_NS else point.time_ns
    return low, high


def _mark(point: Point, x: float, y: float) -> Markup:
    """View or copy by its shape, a problem by its color and a ring."""
    parts = (point.group, point.label, plain_time(point.time_ns), point.kind, point.mark)
    title = ", ".join(_shortened(part, 400) for part in parts if part)
    color = _color(point)
    drawn = _shape(SHAPES.get(point.kind, OTHER_SHAPE), color)
    place = f"translate({x:.1f} {y:.1f})"
    return Markup('<g transform="{}"><title>{}</title>{}</g>').format(place, title, drawn)


def _shape(shape: str, color: str) -> Markup:
    """With a ring around what is an error or a warning."""
    ring = Markup('<circle r="8" fill="none" stroke="var(--{})"/>').format(color)
    return Markup('<path d="{}" fill="var(--{})"/>{}').format(
        shape, color, ring if color in SEVERITIES[:2] else ""
    )


def _color(point: Point) -> str:
    """The name of the page's color."""
    return point.severity or ("muted" if point.mark else "plain")


def _legend(points: Iterable[Point], layout: Layout) -> tuple[list[Markup], float]:
    """The shapes and the colors; and where they end."""
    points = list(points)
    kinds = sorted({point.kind for point in points}, key=lambda kind: (kind not in SHAPES, kind))
    colors = [
        name for name in (*SEVERITIES, "muted", "plain") if any(_color(p) == name for p in points)
    ]
    entries = [(_shortened(kind), SHAPES.get(kind, OTHER_SHAPE), "muted") for kind in kinds if kind]
    if colors != ["plain"]:
        words = {"plain": "no problem seen", "muted": "suspected"}
        entries += [(words.get(color, color), ANY_SHAPE, color) for color in colors]
    drawn: list[Markup] = []
    x, y = 12.0, 10.0
    for word, shape, color in entries:
        width = 34 + 7 * len(word)
        if x > LEFT + 4 and x + width > layout.width:
            x, y = 12.0, y + 18
        mark = Markup('<g transform="translate({:.0f} {:.0f})">{}</g>')
        drawn += [
            mark.format(x, y, _shape(shape, color)),
            _text(word, x + 12, y + 4, "", "ink"),
        ]
        x += width
    return drawn, y + AXIS - 10


def _text(
    text: str,
    x: float,
    y: float,
    anchor: str = "",
    color: str = "ink",
    mono: int = 0,
    is_bold: bool = False,
) -> Markup:
    """``mono`` is the size of a font of fixed width; without it the size of the picture's."""
    if not text:
        return Markup("")
    family = Markup(' class="m{}"').format(mono) if mono else ""
    anchored = Markup(' text-anchor="{}"').format(anchor) if anchor else ""
    weight = Markup(' font-weight="bold"') if is_bold else ""
    return Markup('<text x="{:.1f}" y="{:.1f}" fill="var(--{})"{}{}{}>{}</text>').format(
        x, y, color, anchored, family, weight, text
    )


def _line(x: float, y: float, to_x: float, to_y: float, color: str) -> Markup:
    return Markup('<path d="M{:.1f} {:.1f}L{:.1f} {:.1f}" stroke="var(--{})"/>').format(
        x, y, to_x, to_y, color
    )


def _svg(parts: Iterable[Markup], layout: Layout, height: float, label: str) -> Markup:
    return Markup(
        '<svg class="{}" viewBox="0 0 {} {:.0f}" font-size="12" role="img" aria-label="{}">{}</svg>'
    ).format(layout.name, layout.width, height, label, Markup("\n").join(parts))


def _bars(points: Iterable[Point], meaning: str) -> str:
    return f"; the bar {meaning}" if any(point.low_ns != point.high_ns for point in points) else ""


def _shortened(text: str, longest: int = LONGEST_LABEL) -> str:
    """``text`` without its middle where it is long: calls differ at both ends."""
    tail = longest // 3
    return text if len(text) <= longest else f"{text[: longest - tail - 1]}…{text[-tail:]}"


MOST_SPANS = 1000
"""Of a lane."""
ROW, BAR = 24, 14
LEAST_WIDTH, LEAST_OPACITY = 1.5, 0.25
"""Of a span that took any time: it must be seen."""
COLORS = {"view": "plain", "copy": "warning", "mixed": "warning", "waits": "error"}
CAPTION = "When the lines converted; the stronger the color, the more of that time they took."


def _timeline(timeline: Timeline) -> tuple[Markup, str] | None:
    """A row for each line of a program, dark where it took most of the time."""
    if not timeline.lanes or timeline.end_ns <= 0:
        return None
    caption = f"{CAPTION} {timeline.more}".strip()
    return Markup("\n").join(_drawn(timeline, layout, caption) for layout in LAYOUTS), caption


def _drawn(timeline: Timeline, layout: Layout, caption: str) -> Markup:
    lanes = timeline.lanes
    labels = [_shortened(lane.label, 34 if layout.is_beside else layout.longest) for lane in lanes]
    names = 24 + MONO * layout.font * max(map(len, labels))
    left = names if layout.is_beside else LEFT
    right = layout.width - 16 - GLYPH * max(len(lane.value) for lane in lanes)
    height = ROW if layout.is_beside else ROW + 16
    bottom = len(lanes) * height
    drawn = [*_axis(timeline.end_ns, left, right, bottom)]
    for place, (lane, label) in enumerate(zip(lanes, labels, strict=True)):
        y = place * height + (ROW - BAR) / 2 + (height - ROW)
        at, anchor = (left - 12, "end") if layout.is_beside else (0, "")
        up = y + BAR - 3 if layout.is_beside else y - 5
        drawn.append(_text(label, at, up, anchor, "ink", layout.font))
        drawn.append(_text(lane.value, right + 10, y + BAR - 3, "", "muted"))
        drawn += _spans(lane, y, left, (right - left) / timeline.end_ns)
    return _svg(drawn, layout, bottom + AXIS, caption)


def _axis(end_ns: float, left: float, right: float, bottom: float) -> Iterator[Markup]:
    for at_ns in _even(0.0, end_ns):
        x = left + (right - left) * at_ns / end_ns
        yield _line(x, 0, x, bottom, "grid")
        label = plain_time(at_ns) if at_ns else "0"
        yield _text(label, x, bottom + 16, "middle", "muted")


def _spans(lane: Lane, y: float, left: float, per_ns: float) -> Iterator[Markup]:
    color = COLORS.get(lane.kind, "muted")
    for begin, end, share in lane.spans[:MOST_SPANS]:
        opacity = LEAST_OPACITY + (1 - LEAST_OPACITY) * min(share, 1.0)
        yield Markup(
            '<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{}" fill="var(--{})" '
            'opacity="{:.2f}"><title>{}</title></rect>'
        ).format(
            left + begin * per_ns,
            y,
            max((end - begin) * per_ns, LEAST_WIDTH),
            BAR,
            color,
            opacity,
            f"{_shortened(lane.label)}, {lane.kind}, at {plain_time(begin)}: "
            f"{plain_time(share * (end - begin))} of {plain_time(end - begin)}",
        )
