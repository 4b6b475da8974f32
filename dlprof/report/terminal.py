"""A document, or the page of a rule, as text of a given width."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from dlprof.probes.base import FLAGS, LAYOUTS
from dlprof.report.document import Answer, Cell, Document, Problem, Section, Table
from dlprof.text.clean import counted

STYLES = {
    "view": "green",
    "copy": "yellow",
    "bad": "red",
    "dim": "dim",
    "better": "green",
    "worse": "red",
    "error": "red",
    "warning": "yellow",
    "info": "cyan",
}
INDENT, GAP = 2, 2
WORD = 12
"""A column of texts this short is never broken."""
CODE_WIDTH = 26
"""The least columns of code."""
MARKS = " ,([{.=)]}-/_"
"""Code is folded after these."""
TEXT_SHARE = 0.32
"""The largest share of the width for text next to code."""
FIRST_ROWS, SECTION_ROWS, FIRST_PROBLEMS = 12, 5, 2
"""Limits of the first screen, which has every error."""
FULL = " --full"
BLANKS = re.compile(r"\n{3,}")


def render(document: Document, width: int = 100, color: bool = False, full: bool = False) -> str:
    """Return the first screen, or all if ``full``, as text of ``width`` columns.

    ``color`` adds ANSI colors.
    """
    return printed(Group(*_parts(document, width, full)), width, color)


def render_page(page: str, width: int = 100, color: bool = False) -> str:
    """Lay out the Markdown of a rule, without its marks."""
    from rich.markdown import Markdown  # with a parser and Pygments, which reports do not need

    text = f"#{page}" if page.startswith("# ") else page  # Rich centers a title
    laid_out = Markdown(text, code_theme="ansi_dark", hyperlinks=False)
    return BLANKS.sub("\n\n", printed(laid_out, min(width, 100), color))


def printed(renderable: RenderableType | str, width: int = 100, color: bool = False) -> str:
    """Return text of ``width`` columns without blanks at line ends."""
    target = io.StringIO()
    console = Console(
        file=target,
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        highlight=False,
        emoji=False,
        markup=False,
        force_jupyter=False,  # it would display the text besides writing it
    )
    console.print(renderable)
    return "\n".join(line.rstrip() for line in target.getvalue().splitlines()) + "\n"


class Code:
    """Code in a cell, which is folded after a mark instead of within a name."""

    def __init__(self, code: Text, note: str = "") -> None:
        self.code = code
        self.note = Text(f"  {note}" if note else "", style="dim")

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        length = self.code.cell_len + self.note.cell_len
        return Measurement(min(length, CODE_WIDTH), length)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width, code, begin, cuts = options.max_width, self.code.plain, 0, []
        while len(code) - begin > width:
            mark = max(code.rfind(mark, begin, begin + width) for mark in MARKS) + 1
            begin = mark if mark > begin + width // 2 else begin + width
            cuts.append(begin)
        *lines, last = self.code.divide(cuts)
        yield from lines
        fits = last.cell_len + self.note.cell_len <= width
        yield Text.assemble(last, "" if fits else "\n", self.note)


def _parts(document: Document, width: int, is_full: bool) -> Iterator[RenderableType]:
    title, context = Text(document.headline, style="bold"), Text(document.context, style="dim")
    room = width - title.cell_len - context.cell_len
    yield from [Text.assemble(title, " " * room, context)] if room > GAP else [title, context]
    if document.answers:
        yield Text()
        yield _answers(document.answers)
    if document.notices:
        yield Text()
        yield from (Text(notice, style="yellow") for notice in document.notices)
    tables = [table for table in document.tables if not (is_full and table.is_summary)]
    if not is_full:
        tables = [table.first(FIRST_ROWS, " (--full)") for table in tables]
    for table in tables:
        yield Text()
        yield _table(table, width, " (--full)" if table.is_summary else "")
    yield from [Text()] if document.marks and not tables else []
    yield from (_flush(Text(mark, style="dim")) for mark in document.marks)
    for section in document.sections:
        yield from _section(section, width, is_full) if section.is_first else ()
    if document.problems:
        yield Text()
        yield _problems(document.problems, tables, is_full)
    for section in document.sections if is_full else ():
        yield from () if section.is_first else _section(section, width, is_full)
    if document.commands:
        yield Text()
        commands = [text for text in document.commands if not (is_full and text.endswith(FULL))]
        line = " · ".join(commands)
        # A command that is broken over two lines cannot be copied.
        yield Text(line if len(line) <= width else "\n".join(commands), style="dim")


def _section(section: Section, width: int, is_full: bool) -> Iterator[RenderableType]:
    yield Text(f"\n{section.heading}", style="bold")
    for index, block in enumerate(section.blocks):
        if index:
            yield Text()
        if isinstance(block, Table):
            yield _table(block if is_full else block.first(SECTION_ROWS, " (--full)"), width)
        else:
            yield _flush(Group(*map(Text, block.lines)))


def _answers(answers: Sequence[Answer]) -> RenderableType:
    """Return one line for each answer, with its note under its code."""
    grid = _grid()
    for answer in answers:
        code = Code(Text(answer.code, style="bold")) if answer.code else Text(answer.note)
        grid.add_row(answer.label, code, answer.value)
        if answer.code and answer.note:
            grid.add_row("", answer.note, "")
    grid.columns[0].no_wrap = all(answer.code for answer in answers)
    grid.columns[2].no_wrap = True
    grid.columns[2].justify = "right"
    return _flush(grid)


def _grid() -> Grid:
    return Grid(
        box=None, padding=(0, GAP, 0, 0), show_edge=False, pad_edge=False, show_header=False
    )


def _table(table: Table, width: int, hint: str = "") -> RenderableType:
    """Lay out a table; ``hint`` says how to see the rows that it leaves out."""
    more = [Text(table.more + hint, style="dim")] if table.more else []
    above = [Text(line) for line in table.above]
    if not table.rows:
        return _flush(Group(*more))
    grid = _filled(table)
    if _width(grid).maximum > width - INDENT:
        grid = _filled(table, round(TEXT_SHARE * width))
    if _width(grid).minimum > width - INDENT and len(table.columns) > 3:  # noqa: PLR2004 - to halve
        half = (len(table.columns) + 1) // 2
        places = ([*range(half)], [0, *range(half, len(table.columns))])
        first, second = (_table(_columns(table, indices), width) for indices in places)
        return Group(_flush(Group(*above)), first, Text(), second, _flush(Group(*more)))
    return _flush(Group(*above, grid, *more))


def _width(grid: Grid) -> Measurement:
    """Return the least and the most columns that a table takes."""
    console = Console(width=1000)
    return Measurement.get(console, console.options, grid)


def _columns(table: Table, indices: Sequence[int]) -> Table:
    rows = tuple(tuple(row[index] for index in indices) for row in table.rows)
    return Table(tuple(table.columns[index] for index in indices), rows)


def _filled(table: Table, most: int | None = None) -> Grid:
    """Return a Rich table. ``most`` narrows it, and limits the columns of text next to code."""
    is_narrow = most is not None
    has_code = any(cell.code for row in table.rows for cell in row)
    grid = _grid()
    grid.show_header = any(column.title for column in table.columns)
    grid.header_style = "dim"
    for index, column in enumerate(table.columns):
        cells = [row[index] for row in table.rows]
        is_code = any(cell.code for cell in cells)
        is_word = column.right or max(len(cell.text) + len(cell.note) for cell in cells) <= WORD
        grid.add_column(
            "\n".join(column.title.split()) if column.right and is_narrow else column.title,
            justify="right" if column.right else "left",
            vertical="top",
            no_wrap=is_word and not is_code,
            overflow="fold",
            max_width=most if has_code and not (is_code or is_word) else None,
        )
    for row in table.rows:
        grid.add_row(*(_cell(cell, is_narrow) for cell in row))
    return grid


def _cell(cell: Cell, is_narrow: bool) -> RenderableType:
    style = STYLES.get(cell.tone, "")
    if cell.code:
        return Code(Text(cell.text, style=style), cell.note)
    parts = filter(None, (cell.text, cell.note))
    return Text(("\n" if is_narrow else " ").join(parts), style=style)


def _problems(
    problems: Sequence[Problem], tables: Sequence[Table], is_full: bool
) -> RenderableType:
    grid = _grid()
    errors = sum(problem.severity == "error" for problem in problems)
    shown = problems if is_full else problems[: max(FIRST_PROBLEMS, errors)]
    for problem in shown:
        more = f" ({counted(problem.more, 'more path')})" if problem.more else ""
        severity = Text(problem.severity, style=STYLES[problem.severity])
        if not is_full:
            sentence = problem.sentence + more + _example(problem, tables)
            grid.add_row(severity, problem.rule, sentence)
        else:
            is_one = len(problem.details) == 1  # it says more than the headline
            sentence, *details = (problem.sentence,) * (not is_one) + problem.details
            grid.add_row(severity, problem.rule, sentence)
            for line in problem.advice:
                grid.add_row("", "", line)
            for line in (*details, *problem.evidence):
                grid.add_row("", "", Text(line, style="dim"))
    for column in grid.columns[:2]:
        column.no_wrap = True
    counts = Counter(problem.severity for problem in problems[len(shown) :])
    hidden = ", ".join(f"{count} {severity}" for severity, count in counts.items())
    hint = [Text(f"… and {hidden} (--full)", style="dim")] if hidden else []
    named = " ".join(re.findall(r"\([^)]*\)", " ".join(problem.sentence for problem in shown)))
    words = {*re.findall(r"[\w-]+", named)}
    meanings = [
        Text(f"{name}: {meaning}", style="dim")
        for name, meaning in {**LAYOUTS, **FLAGS}.items()
        if name in words
    ]
    return _flush(Group(grid, *meanings, *hint))


def _example(problem: Problem, tables: Sequence[Table]) -> str:
    """Return `` Such as x.numpy().``, the plainest path with the problem, if no row shows that."""
    rows = [row for table in tables for row in table.rows]
    marked = [row for row in rows if any(problem.rule in cell.text for cell in row)]
    codes = {cell.text for row in marked for cell in row if cell.code}
    named = not problem.codes or problem.codes[0] in problem.sentence
    if named or not rows or problem.codes[0] in codes:
        return ""
    return f" {'Path:' if len(problem.codes) == 1 else 'Such as'} {problem.codes[0]}."


def _flush(part: RenderableType) -> Padding:
    return Padding(part, (0, 0, 0, INDENT))
