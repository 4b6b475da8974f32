"""The parts of a report, whatever form shows it.

A session, a comparison or a trace becomes one :class:`Document`: finished sentences, cells and
numbers. The terminal, Markdown and HTML lay it out and decide nothing else.

The first screen answers the question. All else is one step away: ``--full`` in the terminal, a fold
in the page.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

Tone = Literal["", "view", "copy", "bad", "dim", "better", "worse"]
"""A renderer may give a tone a color, but color alone never carries meaning."""


@dataclass(frozen=True)
class Cell:
    """A value in a table. ``code`` is set in a fixed width and may be folded."""

    text: str
    tone: Tone = ""
    code: bool = False
    note: str = ""
    """Follows the text, or stands under it in a narrow table; no code."""
    link: str = ""
    """The address of its source."""


@dataclass(frozen=True)
class Column:
    title: str
    right: bool = False
    """Whether it holds numbers."""


@dataclass(frozen=True)
class Table:
    """``rows`` have a cell for each column. ``more`` says what the rows leave out."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    more: str = ""
    is_summary: bool = False
    """Whether a folded section shows the same and more."""
    above: tuple[str, ...] = ()
    """Sentences about nearly all rows."""

    def first(self, most: int, hint: str = "") -> Table:
        """Return the first rows; ``hint`` says how to see the others."""
        hidden = len(self.rows) - most
        more = f"{self.more} … {hidden:,} more{hint}".strip()
        return replace(self, rows=self.rows[:most], more=more) if hidden > 0 else self


@dataclass(frozen=True)
class Answer:
    """One line that answers: ``fastest safe view``, its code, its time, its condition."""

    label: str
    code: str = ""
    value: str = ""
    note: str = ""


@dataclass(frozen=True)
class Problem:
    """One rule at one severity. ``sentence`` has the problem and its cost in 20 words."""

    rule: str
    severity: str
    sentence: str
    more: int = 0
    """Paths with the problem that ``sentence`` does not count."""
    codes: tuple[str, ...] = ()
    """The paths that have it, as a user would write them. The first is the example."""
    advice: tuple[str, ...] = ()
    """Steps to take; each line names its findings if their advice differs."""
    details: tuple[str, ...] = ()
    """One sentence for each finding, behind its number if there are several."""
    evidence: tuple[str, ...] = ()
    expected: str = ""
    """The right behavior, with its source."""
    reproducer: str = ""
    """A script that shows it without dlprof; empty if there is none."""
    commands: tuple[str, ...] = ()
    """Commands that lead on, such as ``dlprof explain DLP018``."""


@dataclass(frozen=True)
class Mark:
    """A point with its bar, or a span; ``x``, ``low`` and ``high`` in percent of the width."""

    title: str
    low: float
    high: float
    color: str
    """The name of a color of the page."""
    x: float | None = None
    """The place of a point; None for a span."""
    opacity: float = 1.0


@dataclass(frozen=True)
class ChartRow:
    name: str
    marks: tuple[Mark, ...]
    value: str = ""
    cells: tuple[Cell, ...] = ()
    """The row of the table beside its bar; see :class:`Chart`."""


@dataclass(frozen=True)
class Chart:
    """``ticks`` have a place in percent and a name.

    With ``columns`` it is a table too: each row has its cells beside its bar.
    """

    rows: tuple[ChartRow, ...]
    ticks: tuple[tuple[float, str], ...]
    caption: str
    columns: tuple[Column, ...] = ()
    above: tuple[str, ...] = ()


@dataclass(frozen=True)
class Lines:
    """Sentences, one a line."""

    lines: tuple[str, ...]


Block = Table | Lines


@dataclass(frozen=True)
class Section:
    """A part with a heading, folded or left out unless it belongs to the first screen."""

    heading: str
    blocks: tuple[Block, ...]
    is_first: bool = False


@dataclass(frozen=True)
class Document:
    """A whole report. ``title`` names its subject, ``context`` the versions, each in one line."""

    title: str
    context: str = ""
    scope: str = ""
    """The array, or the number of sessions."""
    notices: tuple[str, ...] = ()
    """Reasons not to rely on the report, such as times that other programs disturbed."""
    answers: tuple[Answer, ...] = ()
    tables: tuple[Table, ...] = ()
    """The tables of the first screen, usually one."""
    marks: tuple[str, ...] = ()
    """Explanations of the marks in the tables."""
    problems: tuple[Problem, ...] = ()
    """Worst first."""
    chart: Chart | None = None
    sections: tuple[Section, ...] = ()
    commands: tuple[str, ...] = ()
    """Commands that lead on."""

    @property
    def headline(self) -> str:
        """Return title and scope in one line."""
        return "    ".join(filter(None, (self.title, self.scope)))


def facts(items: Iterable[tuple[str, str]]) -> Table:
    """Return a table of names with their values, without a header."""
    rows = tuple((Cell(name, "dim"), Cell(value)) for name, value in items)
    return Table((Column(""), Column("")), rows)
