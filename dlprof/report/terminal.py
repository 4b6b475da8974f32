"""A document, or the page of a rule, on a terminal; or as plain text of a given width."""

from __future__ import annotations

import io
import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from dlprof.report.document import (
    Answer,
    Block,
    Cell,
    Chart,
    Document,
    Facts,
    Level,
    Problem,
    Section,
    Source,
    Table,
    Tiles,
)
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
INDENT = 2
GAP = 3
CODE_SHARE = 0.45
"""Of the width, what the code of an answer may take without being folded."""
WORD = 12
"""A column of texts this short is as wide as they are; no word this short is broken."""
MARKS = (" ,([{", ".=)]}-", "_")
"""Code is folded after these, the first rather than the others."""
TEXT_SHARE, CODE_WIDTH = 0.36, 20
"""Of the width, what a text in a table may take before code is folded; and the least of code."""
PLACE_WIDTH, PLACE_SHARE, NAME_WIDTH = 16, 0.2, 28
"""Columns that a place may take at least before it is folded, and their share of the width. A name
in it loses nothing if it is not longer than :data:`NAME_WIDTH`."""


def render(
    document: Document, width: int = 100, color: bool = False, level: Level = Level.FIRST
) -> str:
    """The first screen, or all, as text of ``width`` columns; with ANSI colors if ``color``."""
    return printed(Group(*_parts(document, width, level)), width, color)


def printed(renderable: RenderableType | str, width: int = 100, color: bool = False) -> str:
    """Text of ``width`` columns, no blanks at line ends."""
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
    )
    console.print(renderable)
    lines = (line.rstrip() for line in target.getvalue().splitlines())
    return "\n".join(lines) + "\n"


def _parts(document: Document, width: int, level: Level) -> Iterator[RenderableType]:
    is_full = level is Level.FULL
    title, context = Text(document.headline, style="bold"), Text(document.context, style="dim")
    room = width - title.cell_len - context.cell_len
    if room >= GAP:
        yield Text.assemble(title, " " * room, context)
    else:
        yield from (title, context)
    if document.answers:
        yield Text()
        yield _answers(document.answers, width)
        yield from (Text() for _ in document.notices[:1])
    yield from (Text(notice, style="yellow") for notice in document.notices)
    tables = document.tables_at(level)
    for table in tables:
        yield from () if table.carries_on else (Text(),)
        yield _table(table, width, table.carries_on, " (--full)" if table.is_summary else "")
    if tables or not document.tables:
        yield from (_flush(Text(mark, style="dim")) for mark in document.marks)
    for section in document.shown(Level.FIRST):
        yield from _section(section, width)
    if document.problems:
        yield Text()
        yield _problems(document.problems, None if is_full else document.most_problems, is_full)
    for section in document.shown(level) if is_full else ():
        if section.level is Level.FULL:
            yield from _section(section, width)
    if document.commands:
        yield Text()
        line = " · ".join(document.commands)
        # A command that is broken over two lines cannot be copied.
        yield Text(line if len(line) <= width else "\n".join(document.commands), style="dim")


def _section(section: Section, width: int) -> Iterator[RenderableType]:
    yield Text(f"\n{section.heading}", style="bold")
    for at, block in enumerate(section.blocks):
        if at:
            yield Text()
        yield _block(block, width)


def _answers(answers: Sequence[Answer], width: int) -> RenderableType:
    grid = _grid()
    grid.add_column(no_wrap=max(len(answer.label) for answer in answers) <= TEXT_SHARE * width)
    longest = max(len(answer.code or answer.note) for answer in answers)
    others = [(a.label, a.value, a.note if a.code else "") for a in answers]
    widest = sum(max(map(len, column)) for column in zip(*others, strict=True))
    is_narrow = longest + widest + 3 * GAP > width
    if is_narrow:  # a note stands under its code
        longest = max(longest, *(len(answer.note) for answer in answers))
    grid.add_column(overflow="fold", no_wrap=longest <= CODE_SHARE * width)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column()
    for answer in answers:
        code = Text(answer.code, style="bold") if answer.code else Text(answer.note)
        beside = answer.note if answer.code and not is_narrow else ""
        grid.add_row(answer.label, code, answer.value, beside)
        if is_narrow and answer.code and answer.note:
            grid.add_row("", Text(answer.note))
    return _flush(grid)


def _grid() -> Grid:
    return Grid(
        box=None, padding=(0, GAP - 1, 0, 0), show_edge=False, pad_edge=False, show_header=False
    )


def _table(table: Table, width: int, headless: bool = False, hint: str = "") -> RenderableType:
    """Code gets what numbers and texts leave; ``hint`` says how to see what the rows leave out."""
    more = [Text(table.more + hint, style="dim")] if table.more else []
    if not table.rows:
        return _flush(Group(*more))
    pieces = _pieces(table, width)
    if len(pieces) > 1:
        told = [part for one in pieces for part in (Text(), _table(one, width))]
        return Group(*told[1:], _flush(Group(*more)))
    grid = _grid()
    grid.show_header, grid.header_style = not headless, "dim"
    longest = _longest(table, is_stacked=False)
    is_wide = sum(longest) + (GAP - 1) * (len(longest) - 1) > width - INDENT
    is_stacked = is_wide and any(cell.under for row in table.rows for cell in row)
    longest = _longest(table, is_stacked)
    notes = [Text()] * len(table.rows)
    if is_wide and table.columns[-1].is_under:
        notes = [_cell(row[-1]) for row in table.rows]
        rows = tuple(row[:-1] for row in table.rows)
        table = replace(table, columns=table.columns[:-1], rows=rows)
        longest = [*longest[:-2], max(longest[-2:])]
    if is_wide:
        table, longest = _with_folded_titles(table, longest, is_stacked)
    codes = {at for row in table.rows for at, cell in enumerate(row) if cell.code}
    place = max(PLACE_WIDTH, round(PLACE_SHARE * width))
    places = {at for at, column in enumerate(table.columns) if is_wide and column.is_place}
    whole = list(longest)
    others = [
        length if column.right else min(length, round(TEXT_SHARE * width))
        for at, (column, length) in enumerate(zip(table.columns, longest, strict=True))
        if at not in codes | places
    ]
    room = width - INDENT - sum(others) - (GAP - 1) * (len(longest) - 1)
    for at in places:
        names = (len(name) for row in table.rows for name in row[at].text.split())
        wanted = max(place, min(max(names, default=0), NAME_WIDTH))
        most = max(room - CODE_WIDTH * len(codes), PLACE_WIDTH)
        longest[at] = min(longest[at], wanted, most)
        room -= longest[at]
    room = max(room // max(len(codes), 1), CODE_WIDTH)
    spare = sum(max(room - longest[at], 0) for at in codes)  # for names of files and functions
    for at in places:
        wider = min(spare // len(places), whole[at] - longest[at])
        longest[at], room = longest[at] + wider, room - wider
    folds = {**dict.fromkeys(codes, room), **{at: longest[at] for at in places}}
    for at, column in enumerate(table.columns):
        words = [word for row in table.rows for word in _cell(row[at]).plain.split(" ")]
        word = max((length for length in map(len, words) if length <= WORD), default=0)
        grid.add_column(
            column.title,
            justify="right" if column.right else "left",
            no_wrap=column.right,
            overflow="ellipsis" if column.right else "fold",
            width=min(longest[at], folds[at]) if at in folds else None,
            min_width=longest[at] if column.right or longest[at] <= WORD else word,
        )
    for row, note in zip(table.rows, notes, strict=True):
        texts = [_cell(cell, is_stacked) for cell in row]
        cells = [_folded(one, folds[at]) if at in codes else one for at, one in enumerate(texts)]
        for at in places:
            cells[at] = _place(row[at].text, longest[at], table.columns[at].is_whole)
        grid.add_row(*cells[:-1], Text("\n").join([cells[-1], note]) if note else cells[-1])
    return _flush(Group(grid, *more))


def _place(names: str, width: int, is_whole: bool) -> Text:
    """Names in lines of ``width``. One that is longer loses its middle, or is folded."""
    lines = textwrap.wrap(names, width, break_long_words=False, break_on_hyphens=False)
    if is_whole:
        return Text("\n").join(_folded(Text(line), width) for line in lines)
    head = (width - 1) // 2
    return Text(
        "\n".join(
            line if len(line) <= width else f"{line[:head]}…{line[head + 1 - width :]}"
            for line in lines
        )
    )


def _pieces(table: Table, width: int) -> list[Table]:
    """A table of words that has too many columns as several, each with the first column."""
    first, *others = _longest(table, is_stacked=True)
    room = width - INDENT - first
    if max(others, default=0) > WORD or sum(others) + (GAP - 1) * len(others) <= room:
        return [table]
    pieces: list[list[int]] = []
    left = 0
    for at, length in enumerate(others, 1):
        if length + GAP - 1 > left:
            pieces.append([0])
            left = room
        pieces[-1].append(at)
        left -= length + GAP - 1
    return [
        replace(
            table,
            columns=tuple(table.columns[at] for at in piece),
            rows=tuple(tuple(row[at] for at in piece) for row in table.rows),
            more="",
        )
        for piece in pieces
    ]


def _with_folded_titles(
    table: Table, longest: Sequence[int], is_stacked: bool
) -> tuple[Table, list[int]]:
    """With titles of numbers in several lines, if they are wider than the numbers; and the widths
    of the columns.
    """
    bare = replace(table, columns=tuple(replace(one, title="") for one in table.columns))
    titles = [
        "\n".join(textwrap.wrap(column.title, max(cells, 1), break_long_words=False))
        if column.right
        else column.title
        for column, cells in zip(table.columns, _longest(bare, is_stacked), strict=True)
    ]
    columns = (replace(one, title=title) for one, title in zip(table.columns, titles, strict=True))
    table = replace(table, columns=tuple(columns))
    found = zip(table.columns, longest, _longest(table, is_stacked), strict=True)
    return table, [new if column.right else old for column, old, new in found]


def _longest(table: Table, is_stacked: bool) -> list[int]:
    """The most characters of a line in each column."""
    return [
        max(
            [
                *map(len, column.title.split("\n")),
                *(
                    Text(line).cell_len
                    for row in table.rows
                    for line in _cell(row[at], is_stacked).plain.splitlines()
                ),
            ]
        )
        for at, column in enumerate(table.columns)
    ]


def _folded(code: Text, width: int) -> Text:
    """Code in lines of ``width``, which end after a mark instead of within a name."""
    text, cuts, begin = code.plain, [], 0
    while len(text) - begin > width:
        part = text[begin : begin + width]
        after = [max(map(part.rfind, marks)) + 1 for marks in MARKS]
        begin += next((at for at in after if at > width // 2), max(after) or width)
        cuts.append(begin)
    return Text("\n").join(line for line in code.divide(cuts)) if cuts else code


def _cell(cell: Cell, is_stacked: bool = False) -> Text:
    parts = filter(None, (cell.text, cell.under))
    text = Text(("\n" if is_stacked else " ").join(parts), style=STYLES.get(cell.tone, ""))
    note = re.sub("(?<! ) (?! )", "\u00a0", cell.note)  # words stay together, parts need not
    return Text.assemble(text, "  ", (note, "dim")) if note else text


def _problems(problems: Sequence[Problem], most: int | None, is_full: bool) -> RenderableType:
    grid = _grid()
    left = problems[most:] if most is not None else ()
    for _ in range(2):
        grid.add_column(no_wrap=True)
    grid.add_column()
    for problem in problems[:most]:
        style = STYLES[problem.severity]
        paths = counted(problem.more, "more path")
        more = f" ({paths}: --full)" if problem.more and not is_full else ""
        grid.add_row(Text(problem.severity, style=style), problem.rule, problem.sentence + more)
        for line in problem.evidence if is_full else ():
            grid.add_row("", "", Text(line, style="dim"))
        for line in problem.advice if is_full else ():
            grid.add_row("", "", line)
    if not left:
        return _flush(grid)
    counts = Counter(problem.severity for problem in left)
    told = ", ".join(
        f"{count} {severity}{'s' * (count > 1 and severity != 'info')}"
        for severity, count in counts.items()
    )
    what = counted(len(left), "more problem")
    return _flush(Group(grid, Text(f"… and {what} ({told}): --full", style="dim")))


def _block(block: Block, width: int) -> RenderableType:
    if isinstance(block, Table):
        return _table(block, width)
    if isinstance(block, Chart | Tiles):
        return Text()
    if isinstance(block, Facts):
        grid = _grid()
        grid.add_column(no_wrap=True, style="dim")
        grid.add_column()
        for name, value in block.items:
            grid.add_row(name, value)
        return _flush(grid)
    if isinstance(block, Source):
        return _source(block, width)
    return _flush(Group(*map(Text, block.lines)))


def _source(source: Source, width: int) -> RenderableType:
    """Code gets what the numbers leave, and loses its end where that is too little."""
    rows = [
        (line.time, line.calls, line.result.text, str(line.number or "")) for line in source.lines
    ]
    longest = [max(map(len, column)) for column in zip(*rows, strict=True)]
    grid = _grid()
    is_word = (False, False, True, False)
    for length, is_left in zip(longest, is_word, strict=True):
        grid.add_column(justify="left" if is_left else "right", no_wrap=True, width=length)
    room = width - INDENT - sum(longest) - len(longest) * (GAP - 1)
    grid.add_column(no_wrap=True, overflow="ellipsis", width=max(room, CODE_WIDTH))
    for line, (time, calls, _, number) in zip(source.lines, rows, strict=True):
        text = Text(line.text, style="" if line.time else "dim")
        grid.add_row(time, calls, _cell(line.result), number, text)
    return _flush(grid)


def _flush(part: RenderableType) -> Padding:
    return Padding(part, (0, 0, 0, INDENT))


WIDEST = 100
BLANKS = re.compile(r"\n{3,}")


def render_page(page: str, width: int = WIDEST, color: bool = False) -> str:
    """The Markdown of a rule, laid out to be read, without its marks."""
    from rich.markdown import Markdown  # with a parser and Pygments, which reports do not need

    text = f"#{page}" if page.startswith("# ") else page  # Rich centers a title
    laid_out = Markdown(text, code_theme="ansi_dark", hyperlinks=False)
    return BLANKS.sub("\n\n", printed(laid_out, min(width, WIDEST), color))
