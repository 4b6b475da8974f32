"""A chart for everyone: the picture, what it says in words, and its numbers as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from dlprof.reports.html import svg
from dlprof.reports.html.entry import Entry


@dataclass(frozen=True)
class Line:
    """One line of a figure's table; ``entry`` is where its numbers come from."""

    entry: Entry | None
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Figure:
    """``wide`` where a phone cannot show all of the picture at once."""

    name: str
    title: str
    caption: str
    titles: tuple[str, ...]
    lines: tuple[Line, ...]
    picture: Markup
    wide: bool = False


def figure(
    name: str,
    title: str,
    caption: str,
    chart: Any,
    shown: Iterable[Entry],
    columns: Sequence[tuple[str, Callable[[Entry], str]]],
    wide: bool = False,
) -> Figure:
    """Draw ``chart``; its table has one line for each entry shown, and ``columns``."""
    lines = tuple(Line(entry, tuple(cell(entry) for _, cell in columns)) for entry in shown)
    titles = tuple(title for title, _ in columns)
    picture = svg.draw(chart, name, f"Chart: {title}.")
    return Figure(name, title, caption, titles, lines, picture, wide)


def array_text(entry: Entry) -> str:
    row = entry.row
    return f"{row.shape} {row.dtype} {row.layout} {row.device}"
