"""A timeline as inline SVG: a row for each line of a program, dark where it took most of the time.

It is drawn for wide screens and for phones, as :mod:`dlprof.reports.html.chart` does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from markupsafe import Markup

from dlprof.analysis.quantity import plain_time
from dlprof.reports.document import Lane, Timeline
from dlprof.reports.html.chart import (
    AXIS,
    GLYPH,
    LAYOUTS,
    LEFT,
    MONO,
    Layout,
    draw_line,
    draw_svg,
    draw_text,
    shortened,
)

MOST_SPANS = 1000
"""Of a lane."""
ROW, BAR = 24, 14
LEAST_WIDTH, LEAST_OPACITY = 1.5, 0.25
"""Of a span that took any time: it must be seen."""
MOST_TICKS = 6
COLORS = {"view": "plain", "copy": "warning", "mixed": "warning", "waits": "error"}
CAPTION = "When the lines converted; the stronger the color, the more of that time they took."


def draw(timeline: Timeline) -> tuple[Markup, str] | None:
    """The timeline as SVG, and its caption; None where it has no lane."""
    if not timeline.lanes or timeline.end_ns <= 0:
        return None
    caption = f"{CAPTION} {timeline.more}".strip()
    return Markup("\n").join(_drawn(timeline, layout, caption) for layout in LAYOUTS), caption


def _drawn(timeline: Timeline, layout: Layout, caption: str) -> Markup:
    lanes = timeline.lanes
    labels = [shortened(lane.label, 34 if layout.is_beside else layout.longest) for lane in lanes]
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
        drawn.append(draw_text(label, at, up, anchor, "ink", layout.font))
        drawn.append(draw_text(lane.value, right + 10, y + BAR - 3, "", "muted"))
        drawn += _spans(lane, y, left, (right - left) / timeline.end_ns)
    return draw_svg(drawn, layout, bottom + AXIS, caption)


def _axis(end_ns: float, left: float, right: float, bottom: float) -> Iterator[Markup]:
    decade = 10.0 ** math.floor(math.log10(end_ns / MOST_TICKS))
    step = next(n * decade for n in (1, 2, 5, 10) if end_ns <= MOST_TICKS * n * decade)
    for tick in range(int(end_ns / step) + 1):
        x = left + (right - left) * tick * step / end_ns
        yield draw_line(x, 0, x, bottom, "grid")
        label = plain_time(tick * step) if tick else "0"
        yield draw_text(label, x, bottom + 16, "middle", "muted")


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
            f"{shortened(lane.label)}, {lane.kind}, at {plain_time(begin)}: "
            f"{plain_time(share * (end - begin))} of {plain_time(end - begin)}",
        )
