"""Cost against size: a view stays level, a copy climbs beside the memcpy of this machine."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from dlprof.analysis.quantity import plain_time, size_text, time_text
from dlprof.reports.html import interval
from dlprof.reports.html.entry import Entry, choose, short
from dlprof.reports.html.figure import Figure, figure
from dlprof.reports.html.svg import chart
from dlprof.reports.html.theme import (
    COLOURS,
    OWNER_DASHES,
    OWNERS,
    SIZE_TEXT,
    owner_colour,
    owner_of,
    owner_shape,
    spaced,
    time_axis,
)
from dlprof.session.model import FindingRecord

MOST_FIGURES = 3
MOST_PATHS = 14
WIDTH, HEIGHT = 420, 340
LABEL_PIXELS = 15
LONGEST_CODE = 38
ARROWS = {"low": "triangle-down", "high": "triangle-up"}
MEMCPY = "memcpy of this machine"

Group = tuple[str, str, str, str]
Way = tuple[str, str]


def figures(everything: Sequence[Entry], findings: Sequence[FindingRecord]) -> list[Figure]:
    """One for each pair, dtype, layout and device that was measured at two sizes or more."""
    found = [group for group in groups(everything).values() if len(sizes(group)) > 1]
    # A pair that a finding names comes first.
    named = {index for finding in findings for index in finding.results}
    found.sort(key=lambda group: not any(entry.index in named for entry in group))
    return [
        _figure(group, findings, number, len(found))
        for number, group in enumerate(found[:MOST_FIGURES])
    ]


def groups(everything: Iterable[Entry]) -> dict[Group, list[Entry]]:
    """The measured cases that a chart can hold together: those with elements."""
    found: dict[Group, list[Entry]] = {}
    for entry in everything:
        row = entry.row
        if entry.measured and row.size_bytes > 0 and row.cost_ns > 0:
            found.setdefault((row.pair, row.dtype, row.layout, row.device), []).append(entry)
    return found


def sizes(group: Iterable[Entry]) -> list[int]:
    return sorted({entry.row.size_bytes for entry in group})


def memcpy(group: Iterable[Entry]) -> list[tuple[int, float]]:
    """Size in bytes and time in ns that a plain copy of as many bytes takes here."""
    speeds: dict[int, list[float]] = {}
    for entry in group:
        cost = entry.result.copy_cost
        if cost is not None and cost.memcpy_gb_per_s:
            speeds.setdefault(entry.row.size_bytes, []).append(cost.memcpy_gb_per_s)
    middle = {size: sorted(found)[len(found) // 2] for size, found in speeds.items()}
    return sorted((size, size / speed) for size, speed in middle.items())


def _figure(
    group: Sequence[Entry], findings: Sequence[FindingRecord], number: int, of: int
) -> Figure:
    shown = _chosen(group, findings)
    picture = Picture(shown, memcpy(group))
    row = group[0].row
    title = f"Cost against size, {row.pair}, {row.dtype} {row.layout} on {row.device}"
    return figure(
        f"size{number}",
        title,
        _caption(group, shown, number, of) + interval.said(picture.arrows),
        picture.chart(),
        sorted(shown, key=lambda entry: (entry.row.path, entry.row.size_bytes)),
        (
            ("path", lambda entry: entry.row.code),
            ("shape", lambda entry: entry.row.shape),
            ("size", lambda entry: size_text(entry.row.size_bytes)),
            ("ready", lambda entry: time_text(entry.row.ready, entry.row.process_medians_ns)),
            ("result", lambda entry: entry.row.owner),
        ),
        wide=True,
    )


def _chosen(group: Sequence[Entry], findings: Sequence[FindingRecord]) -> list[Entry]:
    """All sizes of at most so many paths."""
    # Not by their code: the shape may stand in it.
    paths = list(dict.fromkeys(entry.row.path for entry in choose(group, findings, len(group))))
    kept = set(paths[:MOST_PATHS])
    return [entry for entry in group if entry.row.path in kept]


IN_MODES = " Where processes fall into modes, a mark is at that of most of them; the table has all."


def _caption(group: Sequence[Entry], shown: Sequence[Entry], number: int, of: int) -> str:
    known = sizes(group)
    text = (
        f"Time until the result is ready, from {size_text(known[0])} to {size_text(known[-1])},"
        " both axes logarithmic. A level line does not depend on the size, as a view's should"
        " not; a copy's climbs with the bytes. Bars are 95 % intervals."
    )
    line = memcpy(group)
    if len(line) > 1:
        size, copy_ns = line[-1]
        text += (
            f" The dotted line is a plain memcpy on this machine:"
            f" {plain_time(copy_ns)} for {size_text(size)}."
        )
    else:
        text += " There is no memcpy line: copies were measured at fewer than two sizes."
    if any(entry.row.ready is not None and entry.row.ready.modes for entry in shown):
        text += IN_MODES
    paths = len({entry.row.path for entry in group})
    drawn = len({entry.row.path for entry in shown})
    if drawn < paths:
        text += f" {drawn} of {paths} paths are drawn: those that findings name, then the cheapest."
    if number == 0 and of > MOST_FIGURES:
        text += f" {MOST_FIGURES} of {of} charts are drawn; the table of all cases has the rest."
    return text


class Picture:
    """What is drawn of the cases: points with bars, and arrows where a bar is cut."""

    def __init__(self, shown: Sequence[Entry], copies: Sequence[tuple[int, float]]) -> None:
        self.copies = copies if len(copies) > 1 else ()
        self.sizes = sizes(shown)
        estimates = [interval.estimate(entry) for entry in shown]
        self.axis = interval.domain(estimates, [ns for _, ns in self.copies])
        both = list(zip(shown, estimates, strict=True))
        self.points = [_point(entry, one, self.axis) for entry, one in both]
        self.arrows: list[dict[str, Any]] = [
            {**_point(entry, one, self.axis), **arrow}
            for entry, one in both
            for arrow in interval.arrows(one, self.axis)
        ]

    def chart(self) -> Any:
        import altair as alt

        x = alt.X(
            "size:Q",
            title="size of the array",
            scale=alt.Scale(type="log", nice=False),
            axis=alt.Axis(values=self._ticks(), labelExpr=SIZE_TEXT, grid=False),
        )
        scale = alt.Scale(type="log", domain=list(self.axis), nice=False)
        y = alt.Y("ready:Q", title="ready, per call", scale=scale, axis=time_axis(alt, *self.axis))
        colour = owner_colour(alt, self.points)
        base = chart(self.points)
        layers = [
            base.mark_line(strokeWidth=1.5, opacity=0.7).encode(
                x=x, y=y, color=colour, detail="path:N", strokeDash=_dash(alt)
            ),
            base.mark_rule(strokeWidth=1.5).encode(
                x=x, y=alt.Y("low:Q", scale=scale), y2="high:Q", color=colour
            ),
            base.mark_point(filled=True, opacity=1, size=44).encode(
                x=x, y=y, color=colour, shape=owner_shape(alt, self.points)
            ),
            *self._arrows(alt, x, scale, colour),
        ]
        ends = list(self.points)
        if self.copies:
            layers += _memcpy_layers(alt, x, scale, self.copies)
            size, copy_ns = self.copies[-1]
            ends.append(
                {"size": size, "ready": copy_ns, "owner": "", "code": MEMCPY, "path": MEMCPY}
            )
        layers += _names(alt, x, scale, ends, self.axis)
        return alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)

    def _ticks(self) -> list[float]:
        return spaced(self.sizes, (self.sizes[0], self.sizes[-1]), WIDTH)

    def _arrows(self, alt: Any, x: Any, scale: Any, colour: Any) -> list[Any]:
        return [
            chart([arrow for arrow in self.arrows if arrow["beyond"] == end])
            .mark_point(shape=shape, filled=True, size=44, opacity=1)
            .encode(x=x, y=alt.Y("end:Q", scale=scale), color=colour)
            for end, shape in ARROWS.items()
            if any(arrow["beyond"] == end for arrow in self.arrows)
        ]


def _point(entry: Entry, one: interval.Estimate, axis: tuple[float, float]) -> dict[str, Any]:
    return {
        "size": entry.row.size_bytes,
        "ready": one.ns,
        **interval.bar(one, axis),
        "owner": owner_of(entry.row.owner),
        "code": entry.row.code,
        "path": entry.row.path,
    }


def _dash(alt: Any) -> Any:
    return alt.StrokeDash(
        "owner:N", scale=alt.Scale(domain=OWNERS, range=OWNER_DASHES), legend=None
    )


def _memcpy_layers(alt: Any, x: Any, scale: Any, copies: Sequence[tuple[int, float]]) -> list[Any]:
    data = chart([{"size": size, "ready": ns} for size, ns in copies])
    y = alt.Y("ready:Q", scale=scale)
    return [
        data.mark_line(color=COLOURS["muted"], strokeDash=[3, 3]).encode(x=x, y=y),
        data.mark_point(color=COLOURS["muted"], shape="cross", size=30).encode(x=x, y=y),
    ]


def _names(
    alt: Any,
    x: Any,
    scale: Any,
    points: Sequence[dict[str, Any]],
    domain: tuple[float, float],
) -> list[Any]:
    """Each path's code at the end of its line, moved apart where lines end close together."""
    last: dict[str, dict[str, Any]] = {}
    for point in sorted(points, key=lambda point: point["size"]):
        last[point["path"]] = point
    ends = sorted(last.values(), key=lambda point: point["ready"])
    places = spread_out([point["ready"] for point in ends], domain)
    values = [
        {**point, "place": place, "text": short(point["code"], LONGEST_CODE)}
        for point, place in zip(ends, places, strict=True)
    ]
    base = chart(values)
    right = alt.value(WIDTH + 14)
    return [
        base.mark_rule(color=COLOURS["muted"], opacity=0.5, strokeWidth=1).encode(
            x=x, x2=right, y=alt.Y("ready:Q", scale=scale), y2="place:Q"
        ),
        base.mark_text(align="left", dx=4, font="monospace", fontSize=11.5).encode(
            x=right, y=alt.Y("place:Q", scale=scale), text="text:N"
        ),
    ]


def spread_out(
    values: Sequence[float],
    domain: tuple[float, float],
    height: float = HEIGHT,
    gap: float = LABEL_PIXELS,
) -> list[float]:
    """Ascending ``values`` on a logarithmic axis, moved until ``gap`` pixels lie between them."""
    low, high = (math.log(end) for end in domain)
    scale = (high - low) / height
    places = [math.log(value) / scale for value in values]
    for index in range(1, len(places)):
        places[index] = max(places[index], places[index - 1] + gap)
    # Pushed up over the top, they are let down again, and those below with them.
    limit = high / scale
    for index in reversed(range(len(places))):
        places[index] = min(places[index], limit)
        limit = places[index] - gap
    return [math.exp(place * scale) for place in places]
