"""The charts of a page: the paths of a session, and the lines of a program over time.

Rows are as high as their text, and everything across is a share of the width. So one chart serves
every screen. The template draws it as SVG.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

from dlprof.judge.rule import SEVERITIES
from dlprof.report.document import Chart, ChartRow, Mark
from dlprof.report.paths import Array, Path
from dlprof.runner.quantity import plain_time

MOST_ROWS = 40
ROW = 36
"""The pixels of a row: its name, and below it what is drawn."""
LEAST_NS, MOST_NS = 1e-3, 1e15
"""A time beyond them is no measurement."""
FAR = 5
"""A bar that reaches this far beyond all times ends at the edge."""
TICKS = ((1,), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 7))
FEWEST_TICKS, MOST_TICKS = 3, 6
SHAPES = {"view": "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", "copy": "M-4-4h8v8h-8z"}
OTHER_SHAPE = "M0-5l5 9h-10z"
BAR = "M-5-2h10v4h-10z"
COLOR_WORDS = {"muted": "suspected", "plain": "no problem seen"}

Scale = Callable[[float], float]
"""From ns to a share of the width in percent."""


def paths_chart(arrays: Sequence[Array], answered: Collection[str]) -> Chart | None:
    """A row for each path; if several arrays were converted, a row for each array.

    ``answered`` are the codes of the answers. None if no path has a time.
    """
    timed = [
        [path for path in array.paths if LEAST_NS < path.cost_ns < MOST_NS] for array in arrays
    ]
    groups = [paths for paths in timed if paths]
    if not groups:
        return None
    is_one = len(groups) == 1
    lines = [[path] for path in groups[0]] if is_one else groups
    shown, left = lines[:MOST_ROWS], len(lines) - MOST_ROWS
    axes = list(zip(*(paths[0].array for paths in groups), strict=True))
    differing = [at for at, values in enumerate(axes) if len(set(values)) > 1]
    place, ticks = _scale([path for paths in shown for path in paths])
    caption = "Time until the result is ready, log scale. A bar is the 95 % interval of the median."
    rows = [
        ChartRow(
            paths[0].code if is_one else " ".join(paths[0].array[at] for at in differing),
            tuple(_point(path, place) for path in paths),
            paths[0].problems if is_one else "",
            _color(paths[0]),
            is_bold=is_one and paths[0].code in answered,
        )
        for paths in shown
    ]
    return Chart(
        tuple(rows),
        tuple((place(at_ns), plain_time(at_ns).replace(".0 ", " ")) for at_ns in ticks),
        f"{caption} The table has {left:,} more." if left > 0 else caption,
        _legend([path for paths in groups for path in paths]),
    )


def _point(path: Path, place: Scale) -> Mark:
    low_ns, high_ns = path.interval_ns
    parts = (path.code, plain_time(path.cost_ns), path.result, path.problems)
    return Mark(
        ", ".join(filter(None, parts)),
        place(low_ns),
        place(high_ns),
        _color(path),
        place(path.cost_ns),
        SHAPES.get(path.result, OTHER_SHAPE),
        path.worst in SEVERITIES[:2],
    )


def _color(path: Path) -> str:
    return path.worst or ("muted" if path.problems else "plain")


def _legend(paths: Sequence[Path]) -> tuple[tuple[str, str, str], ...]:
    results = dict.fromkeys(path.result for path in paths)
    colors = {_color(path) for path in paths}
    shown = [color for color in (*SEVERITIES, *COLOR_WORDS) if color in colors]
    return (
        *((SHAPES.get(result, OTHER_SHAPE), "muted", result) for result in results),
        *((BAR, color, COLOR_WORDS.get(color, color)) for color in shown),
    )


def _scale(paths: Sequence[Path]) -> tuple[Scale, list[float]]:
    """A log scale over all times, from 2 to 96 % of the width, and the times at its ticks."""
    times = [path.cost_ns for path in paths]
    low = 0.9 * max(min(path.interval_ns[0] for path in paths), min(times) / FAR)
    high = 1.1 * min(max(*times, *(path.interval_ns[1] for path in paths)), max(times) * FAR)

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


def timeline(rows: Sequence[ChartRow], end_ns: float, more: str) -> Chart:
    """A row for each line of a program, dark where it took most of the time.

    ``more`` says which lines are left out.
    """
    step = end_ns / MOST_TICKS
    step = math.ceil(step / 10 ** math.floor(math.log10(step))) * 10 ** math.floor(math.log10(step))
    ticks = [number * step for number in range(math.floor(end_ns / step) + 1)]
    caption = "When the lines converted: the stronger the color, the more of that time they took."
    return Chart(
        tuple(rows),
        tuple((100 * ns / end_ns, plain_time(ns) if ns else "0") for ns in ticks),
        f"{caption} {more}".strip(),
    )
