"""A chart with a row for each case: its name in a line of its own above its marks.

So a chart is narrow enough for a phone, and a name is whole on every screen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dlprof.reports.html.svg import chart
from dlprof.reports.html.theme import COLOURS

WIDTH = 400
NAME = 17
"""Pixels of the line with the name."""
MARKS = 21
MARGIN = 4


@dataclass(frozen=True)
class Rows:
    """Places are pixels from the top. ``marks`` is the height of the marks of one row."""

    names: tuple[str, ...]
    texts: tuple[str, ...] = ()
    marks: int = MARKS

    @property
    def step(self) -> int:
        return NAME + self.marks

    @property
    def height(self) -> int:
        return self.step * len(self.names)

    def y(self, row: int, down: float | None = None) -> float:
        """The middle of a row's marks, or so far below its name."""
        return row * self.step + NAME + (self.marks / 2 - MARGIN if down is None else down)


def y_axis(alt: Any, rows: Rows) -> Any:
    """For data with a place in ``y``."""
    scale = alt.Scale(domain=[rows.height, 0], nice=False, zero=False)
    return alt.Y("y:Q", scale=scale, axis=None)


def names(alt: Any, rows: Rows) -> list[Any]:
    """The layer of names at the left, and that of texts at the right where there are some."""
    y = y_axis(alt, rows)
    places = [row * rows.step + NAME - MARGIN for row in range(len(rows.names))]
    named = chart([{"y": at, "text": name} for at, name in zip(places, rows.names, strict=True)])
    layers = [
        named.mark_text(
            align="left", baseline="bottom", font="monospace", fontSize=11, color=COLOURS["ink"]
        ).encode(x=alt.value(0), y=y, text="text:N")
    ]
    if rows.texts:
        said = chart([{"y": at, "text": text} for at, text in zip(places, rows.texts, strict=True)])
        layers.append(
            said.mark_text(align="right", baseline="bottom", fontSize=12).encode(
                x=alt.value(WIDTH), y=y, text="text:N"
            )
        )
    return layers


def drawn(alt: Any, rows: Rows, layers: Sequence[Any]) -> Any:
    """The whole chart: names, then ``layers``."""
    return alt.layer(*names(alt, rows), *layers).properties(width=WIDTH, height=rows.height)
