"""Colours and axes of the charts. One SVG serves light and dark: its colours are CSS variables.

Vega knows no CSS variables, so each stands for itself as a colour that nobody else uses, and
:func:`dlprof.reports.html.svg.themed` puts the variable in its place.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

VARIABLES = (
    "ink",
    "muted",
    "grid",
    "surface",
    "view",
    "copy",
    "varies",
    "other",
    "export",
    "import",
    "release",
    "waiting",
    "unknown",
)
COLOURS = {name: f"#0a0b{index:02x}" for index, name in enumerate(VARIABLES, start=1)}

VARIES = "view or copy"
OWNERS = ("view", "copy", VARIES, "not known")
OWNER_COLOURS = [COLOURS[name] for name in ("view", "copy", "varies", "other")]
OWNER_SHAPES = ["circle", "square", "diamond", "triangle-up"]
OWNER_DASHES = [[1, 0], [6, 3], [6, 2, 2, 2], [2, 2]]

TIME_TEXT = (
    "datum.value >= 1e9 ? format(datum.value / 1e9, '~g') + ' s' : "
    "datum.value >= 1e6 ? format(datum.value / 1e6, '~g') + ' ms' : "
    "datum.value >= 1e3 ? format(datum.value / 1e3, '~g') + ' us' : "
    "format(datum.value, '~g') + ' ns'"
)
SIZE_TEXT = (
    "datum.value >= 1073741824 ? format(datum.value / 1073741824, '.4~g') + ' GiB' : "
    "datum.value >= 1048576 ? format(datum.value / 1048576, '.4~g') + ' MiB' : "
    "datum.value >= 1024 ? format(datum.value / 1024, '.4~g') + ' KiB' : "
    "format(datum.value, '.4~g') + ' B'"
)

FEW_DECADES = 2
LEAST, MOST = 1e-100, 1e100
"""No time, size or ratio is beyond; an axis to there would have no room for anything else."""
LABEL_PIXELS = 60
"""From label to label of an axis that lies: ``1023 KiB`` is the longest."""
STEPS = (1, 2, 5)


def owner_of(word: str) -> str:
    """The word of a legend for an ownership verdict; where processes disagree, that is known."""
    if word == "varies":
        return VARIES
    return word if word in OWNERS else "not known"


def owner_colour(alt: Any, points: Iterable[Mapping[str, Any]], stroke: int = 0) -> Any:
    """The colour of views and copies, with a legend of those that occur."""
    scale = alt.Scale(domain=OWNERS, range=OWNER_COLOURS)
    return alt.Color("owner:N", scale=scale, legend=_legend(alt, points, stroke))


def owner_shape(alt: Any, points: Iterable[Mapping[str, Any]]) -> Any:
    """The same as a shape: the words must not depend on colour alone."""
    scale = alt.Scale(domain=OWNERS, range=OWNER_SHAPES)
    return alt.Shape("owner:N", scale=scale, legend=_legend(alt, points, 0))


def _legend(alt: Any, points: Iterable[Mapping[str, Any]], stroke: int) -> Any:
    present = {point["owner"] for point in points}
    values = [owner for owner in OWNERS if owner in present]
    return alt.Legend(values=values, symbolStrokeWidth=stroke)


def span(values: Sequence[float], room: float = 1.25) -> tuple[float, float]:
    """A logarithmic axis that holds all positive ``values`` with some room, but for absurd ones."""
    known = [value for value in values if LEAST < value < MOST]
    if not known:
        return 1.0, 10.0
    return min(known) / room, max(known) * room


def ticks(low: float, high: float) -> list[float]:
    """Powers of ten between ``low`` and ``high``; 1, 2, 5 as well where there are few."""
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = STEPS if math.log10(high / low) < FEW_DECADES else STEPS[:1]
    return [
        step * 10.0**exponent
        for exponent in exponents
        for step in steps
        if low <= step * 10.0**exponent <= high
    ]


def spaced(values: Sequence[float], ends: tuple[float, float], pixels: float) -> list[float]:
    """Those of ascending ``values`` whose labels keep clear of each other; the last is kept."""
    low, high = (math.log(end) for end in ends)
    scale = pixels / max(high - low, 1e-9)
    kept: list[float] = []
    for value in reversed(values):
        if not kept or math.log(kept[-1] / value) * scale >= LABEL_PIXELS:
            kept.append(value)
    return kept[::-1]


def time_axis(alt: Any, low: float, high: float, pixels: float = math.inf) -> Any:
    """An axis of times; ``pixels`` is its length, if it lies."""
    return alt.Axis(values=spaced(ticks(low, high), (low, high), pixels), labelExpr=TIME_TEXT)


def config() -> dict[str, Any]:
    """Calm: no frame, a thin grid, muted words."""
    muted, grid, ink = COLOURS["muted"], COLOURS["grid"], COLOURS["ink"]
    return {
        "aria": False,
        "font": "sans-serif",
        "view": {"stroke": None},
        "axis": {
            "domain": False,
            "ticks": False,
            "gridColor": grid,
            "labelColor": muted,
            "labelFontSize": 12,
            "labelPadding": 6,
            "titleColor": muted,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
        },
        "legend": {
            "labelColor": ink,
            "labelFontSize": 12,
            "title": None,
            "orient": "top",
            "direction": "horizontal",
            "offset": 8,
            "symbolStrokeWidth": 2,
            "symbolOpacity": 1,
            "symbolDash": [1, 0],
        },
        "text": {"color": ink, "fontSize": 12},
    }
