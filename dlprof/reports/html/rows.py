"""A chart with a row for each case: its name in a line of its own above its marks.

So a chart is narrow enough for a phone, and a name is whole on every screen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dlprof.reports.html.svg import chart
from dlprof.reports.html.theme import COLOURS

WIDTH = 400
NAME = 17
"""Pixels of the line with the name."""
MARKS = 21
MARGIN = 4
ARROWS = {"low": "triangle-left", "high": "triangle-right"}


@dataclass(frozen=True)
class Rows:
    """Places are pixels from the top. ``under`` are second lines of the names, or nothing.

    ``marks`` is the height of the marks of one row.
    """

    names: Sequence[str]
    under: Sequence[str]
    texts: Sequence[str] = ()
    marks: int = MARKS

    @property
    def head(self) -> int:
        return NAME * (2 if self.under else 1)

    @property
    def step(self) -> int:
        return self.head + self.marks

    @property
    def height(self) -> int:
        return self.step * len(self.names)

    def y(self, row: int, down: float | None = None) -> float:
        """The middle of a row's marks, or so far below its name."""
        return row * self.step + self.head + (self.marks / 2 - MARGIN if down is None else down)

    def bands(self) -> list[dict[str, float]]:
        """From where to where each row's marks reach: a line down the chart leaves out names."""
        tops = [row * self.step + self.head for row in range(len(self.names))]
        return [{"y": top, "below": top + self.marks - MARGIN} for top in tops]

    def lines(self, texts: Sequence[str], line: int = 1) -> list[dict[str, Any]]:
        """Each text with the place of that line of its name."""
        return [
            {"y": row * self.step + line * NAME - MARGIN, "text": text}
            for row, text in enumerate(texts)
        ]


def y_axis(alt: Any, rows: Rows) -> Any:
    """For data with a place in ``y``."""
    scale = alt.Scale(domain=[rows.height, 0], nice=False, zero=False)
    return alt.Y("y:Q", scale=scale, axis=None)


def names(alt: Any, rows: Rows) -> list[Any]:
    """Layers of the names at the left, and of the texts at the right, where there are such."""
    y = y_axis(alt, rows)
    layers = []
    for texts, line, colour in ((rows.names, 1, "ink"), (rows.under, 2, "muted")):
        mark = chart(rows.lines(texts, line)).mark_text(
            align="left", baseline="bottom", font="monospace", fontSize=11, color=COLOURS[colour]
        )
        layers += [mark.encode(x=alt.value(0), y=y, text="text:N")] if texts else []
    if rows.texts:
        said = chart(rows.lines(rows.texts)).mark_text(align="right", baseline="bottom")
        layers.append(said.encode(x=alt.value(WIDTH), y=y, text="text:N"))
    return layers


def arrow_marks(
    alt: Any, arrows: Sequence[Mapping[str, Any]], scale: Any, y: Any, colour: Any
) -> list[Any]:
    """Layers of the arrows where bars are cut; see :func:`dlprof.reports.html.interval.arrows`."""
    return [
        chart([arrow for arrow in arrows if arrow["beyond"] == end])
        .mark_point(shape=shape, filled=True, size=50, opacity=1)
        .encode(x=alt.X("end:Q", scale=scale), y=y, color=colour)
        for end, shape in ARROWS.items()
        if any(arrow["beyond"] == end for arrow in arrows)
    ]


def drawn(alt: Any, rows: Rows, layers: Sequence[Any]) -> Any:
    """The whole chart: names, then ``layers``."""
    return alt.layer(*names(alt, rows), *layers).properties(width=WIDTH, height=rows.height)
