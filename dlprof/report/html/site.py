"""A grid of environments as a static site: pages that link to each other and fetch nothing.

The first page has the matrix of producers and consumers, the rules and a search. Each pair has a
page with its history over versions, each rule one with all that show it, and the changes are one
feed. Each page is a :class:`Document`. What does not fit into :data:`LARGEST` is left out and
named.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from dlprof.atlas.cells import Cell as GridCell
from dlprof.atlas.changes import TIME, Change
from dlprof.atlas.grid import Grid, Row
from dlprof.judge import BY_ID, with_name
from dlprof.judge.case_view import WAITS
from dlprof.judge.pages import index
from dlprof.judge.safety import Safety
from dlprof.report import grid_document as grids
from dlprof.report import matrix
from dlprof.report.document import (
    Answer,
    Cell,
    Chart,
    Column,
    Document,
    Level,
    Point,
    Section,
    Table,
    more_rows,
)
from dlprof.report.html import render
from dlprof.report.paths import untimed_place
from dlprof.runner.quantity import MARK, plain_time
from dlprof.runner.session import pair_text
from dlprof.text.clean import counted, listed

HOME, FEED, COLUMNS = "index.html", "changes.html", "environments.html"
LARGEST = 200_000
"""Characters of a page, at most. The limits below keep it."""
MOST_CELLS, MOST_COLUMNS = 900, 30
MOST_ROWS, MOST_CHANGES, MOST_SEARCHED, NEWEST = 300, 400, 1500, 12
MOST_CHARTS, MOST_UNSAFE = 3, 40
UNSAFE = re.compile(r"[^a-z0-9]+")
Pair = tuple[str, str]


@dataclass(frozen=True)
class Site:
    """What the pages say, and where they are."""

    grid: Grid
    changes: Sequence[Change]

    @cached_property
    def addresses(self) -> Mapping[Pair, str]:
        """The page of each pair; a name from a file is made one that any file system takes."""
        found: dict[Pair, str] = {}
        taken: set[str] = set()
        for pair in self.grid.pairs:
            stem = "-".join(["pair", *(UNSAFE.sub("-", name.lower())[:40] for name in pair)])
            name = stem if stem not in taken else f"{stem}-{len(taken)}"
            taken.add(name)
            found[pair] = f"{name}.html"
        return found

    @cached_property
    def by_pair(self) -> Mapping[Pair, list[Change]]:
        found: dict[Pair, list[Change]] = defaultdict(list)
        for one in self.changes:
            found[one.row.pair].append(one)
        return found

    @cached_property
    def by_rule(self) -> Mapping[str, list[tuple[Row, list[int]]]]:
        """By rule the rows that show it, and in which columns of all."""
        found: dict[str, list[tuple[Row, list[int]]]] = defaultdict(list)
        for row in self.grid.rows:
            places: dict[str, list[int]] = defaultdict(list)
            for place, cell in sorted(row.cells.items()):
                for rule in cell.rules:
                    if rule in BY_ID:
                        places[rule].append(place)
            for rule, own in places.items():
                found[rule].append((row, own))
        return dict(sorted(found.items()))


def pages_of(grid: Grid, changes: Sequence[Change]) -> Iterator[tuple[str, str]]:
    """Name and text of each page."""
    site = Site(grid, changes)
    links = (("Matrix", HOME), ("Changes", FEED), ("Environments", COLUMNS))
    for name, document in _documents(site):
        yield name, render(replace(document, links=links))


def _documents(site: Site) -> Iterator[tuple[str, Document]]:
    yield HOME, _home(site)
    yield FEED, _feed(site)
    yield COLUMNS, Document("Environments", tables=(grids.environments_table(site.grid),))
    for pair, own in site.grid.pairs.items():
        yield site.addresses[pair], _pair_page(site, pair, own)
    for rule, rows in site.by_rule.items():
        yield f"{rule}.html", _rule_page(site, rule, rows)


def _home(site: Site) -> Document:
    document = grids.grid_document(site.grid, site.changes)
    newest = [*_entries(site)][:NEWEST]
    rules = tuple(
        (
            Cell(rule, link=f"{rule}.html"),
            Cell(BY_ID[rule].name),
            Cell(index(rule)),
            Cell(str(len({row.pair for row, _ in rows}))),
        )
        for rule, rows in site.by_rule.items()
    )
    titles = (Column("rule"), Column("name"), Column("what it finds"), Column("pairs", right=True))
    sections = (
        Section("Newest changes", (_feed_table(site, newest),), Level.FIRST),
        *((Section("Rules", (Table(titles, rules),), Level.FIRST),) if rules else ()),
        grids.method_section(),
    )
    return Document(
        title="Atlas of conversions",
        context=document.context,
        scope=f"{document.title}, {document.scope}",
        answers=document.answers,
        tables=(matrix_table(site),),
        marks=matrix.marks(map(_chosen, map(choices_of, site.grid.pairs.values()))),
        sections=sections if newest else sections[1:],
        search=tuple(_searched(site))[:MOST_SEARCHED],
    )


def matrix_table(site: Site) -> Table:
    """Producers down, consumers across, as ``dlprof matrix`` has them."""
    producers, consumers = (sorted(set(names)) for names in zip(*site.grid.pairs, strict=True))
    rows = tuple(
        (Cell(producer), *(_matrix_cell(site, (producer, consumer)) for consumer in consumers))
        for producer in producers
    )
    return Table(
        (Column("from \\ to"), *map(Column, consumers)),
        rows,
        "The fastest path of each pair in its newest environment: safe, else of no known fault.",
    )


def _chosen(choices: Sequence[Choice]) -> Choice | None:
    return matrix.chosen((one for one in choices if one.is_offered), choices)


def _matrix_cell(site: Site, pair: Pair) -> Cell:
    own = site.grid.pairs.get(pair)
    if own is None:
        return Cell("-", "dim")
    choices = choices_of(own)
    _, shown = matrix.cell_of(_chosen(choices), (one.result_cell.text for one in choices))
    count = len(grids.alike(site.by_pair.get(pair, ())))
    note = f"({counted(count, 'change')})" if count else ""
    return replace(shown, note=note, link=site.addresses[pair])


class Choice(NamedTuple):
    """A cell of the newest environment: see :class:`dlprof.report.matrix.Choice`."""

    row: Row
    safety: Safety
    is_offered: bool
    is_measured: bool
    is_wrong: bool
    waits: bool
    result: str
    result_cell: Cell
    place: tuple[float, int, int]
    brief_time: str


def _choice(row: Row, cell: GridCell, safety: Safety) -> Choice:
    own, shown = cell.time, grids.result_cell(cell)
    cost_ns = cell.new_ns or (own.median_ns if own is not None else math.inf)
    is_timed = cost_ns < math.inf
    is_sure = own is not None and own.interval_ns is not None and cell.new_ns is None
    order = cell.word("ordering")
    return Choice(
        row,
        safety,
        is_offered=bool(cell.offered and cell.result),
        is_measured=cell.safety.level != "unmeasured",
        is_wrong=cell.word("values") == "wrong",
        waits=order in WAITS,
        result=shown.text,
        result_cell=shown,
        place=(cost_ns, *((0, 0) if is_timed else untimed_place(order, cell.offered))),
        brief_time=f"{'' if is_sure else MARK}{plain_time(cost_ns)}" if is_timed else "",
    )


def choices_of(own: Grid) -> list[Choice]:
    """The cells of a pair in its newest environment, the fastest first; surveyed ones if there are
    no others. What is unsafe in one session is so at each shape, whatever another did not look at.
    """
    newest = len(own.columns) - 1
    found = [(row, row.cells[newest]) for row in own.rows if newest in row.cells]
    found = [one for one in found if not one[0].case.survey] or found
    unsafe = {
        row.case.conversion: cell.safety
        for row, cell in found
        if cell.safety.level == "unsafe" and not row.case.survey
    }
    choices = (
        _choice(row, cell, unsafe.get(row.case.conversion, cell.safety)) for row, cell in found
    )
    return sorted(choices, key=lambda one: one.place)


_Entry = tuple[str, str, grids.Alike]


def _entries(site: Site) -> Iterator[_Entry]:
    """The changes by what they came with, the newest version of each axis first."""
    found: dict[tuple[str, str], list[Change]] = defaultdict(list)
    for one in site.changes:
        found[one.axis, one.since].append(one)
    order = {name: place for place, name in enumerate(site.grid.axes)}

    def rank(key: tuple[str, str]) -> tuple[int, int]:
        axis, value = key
        places = [n for n, facts in enumerate(site.grid.columns) if facts.get(axis) == value]
        return order.get(axis, len(order)), -max(places, default=-1)

    for axis, since in sorted(found, key=rank):
        for group in grids.alike(found[axis, since]):
            yield axis, since, group


def _feed_table(site: Site, entries: Iterable[_Entry]) -> Table:
    rows = []
    for axis, since, group in entries:
        text, path, _ = grids.change_row(group)
        pair = group.first.row.pair
        where = Cell(pair_text(pair), note=group.arrays, link=site.addresses[pair])
        rows.append((Cell(f"{axis} {since}".strip() or "several"), text, path, where))
    return Table(tuple(map(Column, ("with", "what changed", "path", "pair"))), tuple(rows))


def _feed(site: Site) -> Document:
    entries = [*_entries(site)]
    table = _feed_table(site, entries[:MOST_CHANGES])
    return Document(
        title="Changes",
        answers=(grids.answer_of(site.grid, site.changes),),
        tables=(replace(table, more=more_rows(len(entries), MOST_CHANGES)),) if entries else (),
        sections=(replace(grids.method_section(), level=Level.FIRST),),
    )


def _pair_page(site: Site, pair: Pair, own: Grid) -> Document:
    """The history of a pair: its changes, its paths over the environments, and its times."""
    changes = site.by_pair.get(pair, [])
    groups = grids.alike(changes)
    changed = [row for row, _ in grids.changed_rows(changes)]
    known = {id(row) for row in changed}
    rest = [row for row in own.rows if not row.case.survey and id(row) not in known]
    columns = grids.few_columns(own, changed or rest, MOST_COLUMNS)
    most = max(MOST_CELLS // max(len(columns), 1), 10)
    rows = [*changed, *rest]
    columns_left, rows_left = len(own.columns) - len(columns), len(rows) - len(rows[:most])
    counts = ((columns_left, "environment"), (rows_left, "path"))
    left = [counted(count, word) for count, word in counts if count]
    surveyed = sum(row.case.survey for row in own.rows)
    note = f"{counted(surveyed, 'surveyed array')}; those that changed are shown."
    return Document(
        title=pair_text(pair),
        context=", ".join((counted(len(own.columns), "environment"), *own.axes)),
        answers=(grids.answer_of(own, changes),),
        tables=(
            *((grids.changes_table(groups, MOST_ROWS),) if groups else ()),
            *((grids.cells_table(own, rows[:most], columns),) if rows else ()),
        ),
        marks=(
            *((f"Left out for want of change: {', '.join(left)}.",) if left else ()),
            *((note,) if surveyed else ()),
            *grids.marks_of(rows[:most]),
        ),
        sections=(*_unsafe(own), *_charts(own, changes, rest)),
    )


def _unsafe(own: Grid) -> Iterator[Section]:
    """Why paths are unsafe in the newest environment: rules, with a ``?`` where suspected."""
    found: dict[tuple[str, tuple[str, ...]], None] = {}  # code, and rules with their names
    for one in choices_of(own):
        if one.is_measured and one.safety.level == "unsafe":
            told = tuple(with_name(*rule) for rule in one.safety.marked)
            found.setdefault((one.row.case.code, told))
    rows = tuple(
        (Cell(code, code=True), Cell(listed(reasons), "bad"))
        for code, reasons in [*found][:MOST_UNSAFE]
    )
    columns = Column("path"), Column("why")
    table = Table(columns, rows, more_rows(len(found), MOST_UNSAFE))
    if rows:
        yield Section("Unsafe in the newest environment", (table,), Level.FIRST)


def _charts(grid: Grid, changes: Iterable[Change], rest: Sequence[Row]) -> Iterator[Section]:
    """The time over the environments, of paths that changed first."""
    rows = {id(one.row): one.row for one in changes if one.question == TIME}
    timed = sorted(rest, key=lambda row: min(_times(row), default=float("inf")))
    rows |= {id(row): row for row in timed if any(_times(row))}
    places = grids.few_columns(grid, [*rows.values()], MOST_COLUMNS)
    for row in [*rows.values()][:MOST_CHARTS]:
        points = [
            Point(
                *("", time.median_ns, time.median_ns, time.median_ns, cell.result),
                group=grids.head_text(grid, place),
            )
            for place in places
            if (cell := row.cells.get(place)) is not None and (time := cell.time) is not None
        ]
        if len(points) > 1:
            heading = f"{row.case.code} over {' / '.join(grid.axes)}"
            yield Section(heading, (Chart("trend", tuple(points)),), Level.FIRST)


def _times(row: Row) -> Iterator[float]:
    yield from (cell.time.median_ns for cell in row.cells.values() if cell.time is not None)


def _rule_page(site: Site, rule: str, found: Sequence[tuple[Row, list[int]]]) -> Document:
    """All that show a rule, and in how many of the environments."""
    groups: dict[tuple[Pair, str], list[tuple[Row, list[int]]]] = defaultdict(list)
    for row, places in found:
        groups[row.pair, row.case.code].append((row, places))
    rows = []
    for (pair, code), members in [*groups.items()][:MOST_ROWS]:
        having = {place for _, places in members for place in places}
        looked = {place for row, _ in members for place in row.cells}
        shown = f"{len(having)} of {len(looked)}"
        newest = max(having) == max(looked)
        rows.append(
            (
                Cell(pair_text(pair), link=site.addresses[pair]),
                Cell(code, code=True),
                Cell(shown),
                Cell("yes" if newest else "no", "bad" if newest else ""),
            )
        )
    titles = (Column("pair"), Column("path"), Column("environments", right=True))
    table = Table(
        (*titles, Column("in the newest")), tuple(rows), more_rows(len(groups), MOST_ROWS)
    )
    return Document(
        title=f"{rule} {BY_ID[rule].name}",
        context=index(rule),
        answers=(Answer("found", "", note=f"in {counted(len(groups), 'path')}"),),
        tables=(table,),
        marks=(f"`dlprof explain {rule}` explains the rule.",),
    )


def _searched(site: Site) -> Iterator[tuple[str, str]]:
    """What a reader can look for, with its page: pairs, rules, then paths."""
    for pair, address in site.addresses.items():
        yield pair_text(pair), address
    for rule in site.by_rule:
        yield f"{rule} {BY_ID[rule].name}", f"{rule}.html"
    seen: dict[tuple[str, str], None] = {}
    for row in site.grid.rows:
        seen.setdefault((row.case.code[:200], site.addresses[row.pair]))
    yield from seen
