"""What a report says, before it is known who shows it.

A session or a comparison becomes one :class:`Document`. It holds finished sentences,
cells and numbers: all that is decided. The terminal, Markdown, HTML, JUnit and the GitHub
summary render it and decide nothing. Each sentence stands once, where the document is made.

``FIRST`` is the first screen, which answers the question. ``FULL`` is one step away: ``--full`` in
the terminal, a fold in the page.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal

from dlprof.judge.rule import Severity

Verdict = Literal["passed", "failed", "error", "skipped"]
"""Of a check: ``error`` has no answer and must not pass; ``skipped`` may pass."""
Tone = Literal["", "view", "copy", "bad", "dim", "better", "worse"]
"""What a cell is about. A renderer may give it a color, but color alone never carries meaning."""


class Level(Enum):
    """How near to the first look something stands."""

    FIRST = "first"
    FULL = "full"


@dataclass(frozen=True)
class Cell:
    """A value in a table, fit to be shown. ``code`` is set in a fixed width and may be folded."""

    text: str
    tone: Tone = ""
    code: bool = False
    note: str = ""
    """Follows the text, and is no code."""
    link: str = ""
    """The page that says more."""
    under: str = ""
    """Follows the text, or stands under it where a row has no room."""

    @property
    def line(self) -> str:
        return f"{self.text} {self.under}".strip()


@dataclass(frozen=True)
class Column:
    title: str
    right: bool = False
    """Whether it holds numbers."""
    is_place: bool = False
    """Whether it holds files and functions. Where a row has no room, names lose their middle."""
    is_whole: bool = False
    """Whether a long name of a place goes on in the next line instead."""
    is_under: bool = False
    """Whether it, as the last, stands under the column before it where a row has no room."""


@dataclass(frozen=True)
class Table:
    """``rows`` have a cell for each column. ``more`` is a line for what the rows leave out."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    more: str = ""
    is_summary: bool = False
    """Whether a section of ``FULL`` says the same and more."""
    carries_on: bool = False
    """Whether it goes on with the table before it, whose heading serves both."""


@dataclass(frozen=True)
class Answer:
    """One line that answers: ``fastest safe view``, its code, its time, its condition."""

    label: str
    code: str
    value: str = ""
    note: str = ""
    result: int | None = None
    """The place of the result that it names, where that is one: ``code`` may say more."""


@dataclass(frozen=True)
class Problem:
    """One rule at one severity: what happens, what it costs, what to do, in one sentence.

    ``sentence`` has at most 20 words. The rest is for those who open it.
    """

    rule: str
    severity: Severity
    sentence: str
    more: int = 0
    """Paths with the problem that ``sentence`` does not count."""
    codes: tuple[str, ...] = ()
    """The paths that have it, as a user would write them."""
    advice: tuple[str, ...] = ()
    """What to do; each line names its findings where their advice differs."""
    evidence: tuple[str, ...] = ()
    expected: str = ""
    """What should happen instead, with the source of that."""
    reproducer: str = ""
    """A script that shows it without dlprof; empty where there is none."""
    commands: tuple[str, ...] = ()
    """What to run next, such as ``dlprof explain DLP018``."""


@dataclass(frozen=True)
class Point:
    """A path in a chart; times in ns. Without a time it is not drawn."""

    label: str
    time_ns: float
    low_ns: float
    high_ns: float
    kind: str
    """``view``, ``copy`` …: drawn as a shape."""
    severity: Severity | None = None
    """Of the worst problem: drawn as color and ring."""
    mark: str = ""
    """What stands beside it, such as the ids of rules."""
    group: str = ""
    """What was converted, where there are several arrays; or the date in a history."""
    is_answer: bool = False
    """Whether an answer of the document names it."""
    rules: tuple[str, ...] = ()
    """What was found of it."""
    suspected: tuple[str, ...] = ()
    """What was found of its like."""


MOST_POINTS = 2000
"""More points than a reader can tell apart; the tables have the others."""


@dataclass(frozen=True)
class Chart:
    """``paths``: one point per path, on a log axis. ``trend``: one point per session, in order."""

    kind: Literal["paths", "trend"]
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Lane:
    """What is drawn in one row of a timeline: begin, end and share of that time, from 0 to 1."""

    label: str
    kind: str
    """``view``, ``copy`` …"""
    spans: tuple[tuple[float, float, float], ...]
    value: str = ""
    """Stands behind the lane, such as its whole time."""


@dataclass(frozen=True)
class Timeline:
    """When something took time, from 0 to ``end_ns``. ``more`` says which lanes are left out."""

    lanes: tuple[Lane, ...]
    end_ns: float
    more: str = ""


@dataclass(frozen=True)
class Tile:
    """What became of one array. ``letter`` says it without the color of ``tone``."""

    letter: str
    tone: Tone
    title: str
    """The array, the word and the rules."""
    is_framed: bool = False
    """Whether a rule names it."""


@dataclass(frozen=True)
class Band:
    """A row of tiles for each name of paths, one for each of ``columns``; None if not tried."""

    heading: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, tuple[Tile | None, ...]], ...]


@dataclass(frozen=True)
class Tiles:
    """Paths by arrays, as a picture."""

    bands: tuple[Band, ...]
    caption: str
    """What the letters mean."""


@dataclass(frozen=True)
class SourceLine:
    """A line of code; ``number`` is 0 for lines that are left out. ``heat`` is a share of 1."""

    number: int
    text: str
    time: str = ""
    calls: str = ""
    result: Cell = Cell("")
    heat: float = 0.0


@dataclass(frozen=True)
class Source:
    """Lines of a file with what they took."""

    lines: tuple[SourceLine, ...]


@dataclass(frozen=True)
class Check:
    """One question that continuous integration sees answered: a test case of JUnit.

    ``kind`` is the word or the rule by which it did not pass, ``said`` one line, ``text`` more.
    ``reason`` is what ``said`` adds to the kind, if it begins with that.
    """

    suite: str
    name: str
    outcome: Verdict = "passed"
    kind: str = ""
    said: str = ""
    text: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Facts:
    """Names with their values: an environment, a method."""

    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Lines:
    """Sentences, one a line."""

    lines: tuple[str, ...]


Block = Table | Chart | Tiles | Facts | Lines | Source


@dataclass(frozen=True)
class Section:
    """A part with a heading. What is ``FULL`` is folded or left out at first."""

    heading: str
    blocks: tuple[Block, ...]
    level: Level = Level.FULL


@dataclass(frozen=True)
class Document:
    """``title`` names what was looked at, ``context`` how (versions, machine), each in one line."""

    title: str
    context: str = ""
    scope: str = ""
    """How much of that was looked at: the array, or how many sessions."""
    notices: tuple[str, ...] = ()
    """What keeps the reader from relying on it, such as times that other programs disturbed."""
    answers: tuple[Answer, ...] = ()
    tables: tuple[Table, ...] = ()
    """Of the first screen: usually one."""
    marks: tuple[str, ...] = ()
    """What the marks in the tables mean."""
    problems: tuple[Problem, ...] = ()
    """Worst first."""
    most_problems: int | None = None
    """For how many the first screen has room; None for all."""
    chart: Chart | Timeline | Tiles | None = None
    sections: tuple[Section, ...] = ()
    commands: tuple[str, ...] = ()
    """What leads on."""

    @property
    def headline(self) -> str:
        """Title and scope in one line."""
        return "    ".join(filter(None, (self.title, self.scope)))

    def tables_at(self, level: Level) -> tuple[Table, ...]:
        """As many rows as a reader looks through; of ``FULL`` what no section says again."""
        if level is Level.FULL:
            return tuple(one for one in self.tables if not one.is_summary)
        return tuple(_first_rows(one, FIRST_SCREEN, " (--full)") for one in self.tables)

    def shown(self, level: Level) -> Iterator[Section]:
        """The sections of the first screen, or all."""
        return (one for one in self.sections if level is Level.FULL or one.level is Level.FIRST)


FIRST_SCREEN, SUMMARY, PAGE = 60, 200, 1500
"""The most rows of a table."""
MOST_LINES, MOST_CODES = 200, 20
"""Of a list, and of the paths of a problem."""


def fitted(document: Document, rows: int) -> Document:
    """What there is room for, whatever the size of the session; a line says how much is left."""
    return replace(
        document,
        answers=_first_answers(document.answers),
        tables=tuple(_first_rows(one, rows) for one in document.tables),
        problems=tuple(
            replace(
                one,
                codes=first_of(one.codes, MOST_CODES),
                advice=first_of(one.advice, MOST_LINES),
                evidence=first_of(one.evidence, MOST_LINES),
            )
            for one in document.problems
        ),
        sections=tuple(
            replace(one, blocks=tuple(_fitted(block, rows) for block in one.blocks))
            for one in document.sections
        ),
    )


def first_of(lines: tuple[str, ...], most: int) -> tuple[str, ...]:
    return (*lines[:most], *filter(None, [more_rows(len(lines), most)]))


def more_rows(count: int, shown: int) -> str:
    """The line under so many of ``count`` rows or lines; empty if that is all."""
    return f"… {count - shown:,} more" if count > shown else ""


def _first_rows(table: Table, rows: int, hint: str = "") -> Table:
    """``hint`` says how to see the others."""
    more = more_rows(len(table.rows), rows)
    told = " ".join(filter(None, (table.more, f"{more}{hint}")))
    return replace(table, rows=table.rows[:rows], more=told) if more else table


def _fitted(block: Block, rows: int) -> Block:
    if isinstance(block, Table):
        return _first_rows(block, rows)
    if isinstance(block, Source) and (more := more_rows(len(block.lines), rows)):
        return replace(block, lines=(*block.lines[:rows], SourceLine(0, more)))
    if isinstance(block, Lines):
        return replace(block, lines=first_of(block.lines, MOST_LINES))
    if isinstance(block, Facts) and (more := more_rows(len(block.items), MOST_LINES)):
        return replace(block, items=(*block.items[:MOST_LINES], ("…", more.removeprefix("… "))))
    return block


def _first_answers(answers: tuple[Answer, ...]) -> tuple[Answer, ...]:
    more = more_rows(len(answers), MOST_LINES).removeprefix("… ")
    return (*answers[:MOST_LINES], *([Answer("…", "", note=more)] if more else []))
