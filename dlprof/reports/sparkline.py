"""A trend in one line of characters."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import pairwise

BARS = "▁▂▃▄▅▆▇█"
DIGITS = "01234567"
LEAST_SPAN = 1.25
"""The highest over the lowest, at least: what differs by less is drawn almost level, not as noise
blown up to the full height."""


def sparkline(values: Sequence[float | None], width: int, marks: str = BARS) -> str:
    """``▁▁▁▇▇``: positive values from left to right, a blank for None.

    More than ``width`` values are put together, each mark the median of its part.
    """
    parts = [_middle(part) for part in _parts(values, width)]
    known = [part for part in parts if part is not None]
    if not known:
        return " " * len(parts)
    low = min(known)
    span = max(*known, low * LEAST_SPAN) - low
    return "".join(" " if part is None else _mark(part - low, span, marks) for part in parts)


def _mark(above: float, span: float, marks: str) -> str:
    return marks[min(int(above / span * len(marks)), len(marks) - 1)] if span > 0 else marks[0]


def _parts(values: Sequence[float | None], width: int) -> list[Sequence[float | None]]:
    count = min(len(values), width)
    edges = [len(values) * place // count for place in range(count + 1)] if count else []
    return [values[start:end] for start, end in pairwise(edges)]


def _middle(part: Sequence[float | None]) -> float | None:
    known = [value for value in part if value is not None]
    return statistics.median(known) if known else None
