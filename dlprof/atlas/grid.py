"""Many sessions as one grid: a row for each path and array, a column for each environment.

An environment is the machine, Python, and the frameworks that were measured, with their versions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from dlprof.atlas.cells import BY_ADDRESS, OR, Cell, SessionCells, read
from dlprof.compare.matching import code_key
from dlprof.errors import SessionError, UsageError
from dlprof.history.series import machine_of
from dlprof.history.store import Folder
from dlprof.judge.safety import Safety
from dlprof.runner.session import CaseRecord, Header

MACHINE, PYTHON, DEVICE = "machine", "Python", "CUDA device"
MISSING = "not installed"
PARTS = re.compile(r"\d+|[a-z]+")
DIFFERS = Safety("unmeasured", unknown="it differs between environments")
JOB = ".job.json"
"""The end of a file that says how a session beside it was made."""

Facts = Mapping[str, str]
Skipped = Callable[[str], None]


@dataclass(frozen=True)
class Row:
    """A conversion of an array."""

    case: CaseRecord
    cells: dict[int, Cell]
    """By the place of the column."""

    @property
    def pair(self) -> tuple[str, str]:
        return self.case.pair


@dataclass(frozen=True)
class Grid:
    """``columns`` are environments, by what they hold; in the order of their versions."""

    columns: tuple[Facts, ...]
    rows: tuple[Row, ...]
    sessions: int
    span: tuple[str, str]
    """When the first and the last session began."""

    @cached_property
    def axes(self) -> tuple[str, ...]:
        """What tells columns apart. Of axes that change together the first is named."""
        names = dict.fromkeys(name for facts in self.columns for name in facts)
        found: dict[tuple[int, ...], str] = {}
        for name in sorted(names, key=self._rank):
            values = [facts.get(name, MISSING) for facts in self.columns]
            places = {value: place for place, value in reversed([*enumerate(values)])}
            pattern = tuple(places[value] for value in values)
            if len(places) > 1:
                found.setdefault(pattern, name)
        return tuple(found.values())

    def _rank(self, name: str) -> tuple[bool, bool, str]:
        """Frameworks first, then what does their work; machines, which may tell it all, last."""
        frameworks = {framework for row in self.rows for framework in row.pair}
        return name in (MACHINE, PYTHON, DEVICE), name not in frameworks, name

    @cached_property
    def pairs(self) -> Mapping[tuple[str, str], Grid]:
        """For each pair its rows, and the columns that have a cell of them."""
        found: dict[tuple[str, str], list[Row]] = {}
        for row in self.rows:
            found.setdefault(row.pair, []).append(row)
        return {pair: self._of(rows) for pair, rows in found.items()}

    def _of(self, rows: Sequence[Row]) -> Grid:
        kept = sorted({place for row in rows for place in row.cells})
        at = {place: new for new, place in enumerate(kept)}
        moved = tuple(
            Row(row.case, {at[place]: cell for place, cell in row.cells.items()}) for row in rows
        )
        columns = tuple(self.columns[place] for place in kept)
        return Grid(columns, moved, self.sessions, self.span)

    def by(self, axis: str) -> Grid:
        """The grid with one column for each value on an axis.

        A cell has the answers that all its columns share. Its time is the middle one, if they are
        of one machine.
        """
        places: dict[str, list[int]] = {}
        for place, facts in enumerate(self.columns):
            places.setdefault(facts.get(axis, MISSING), []).append(place)
        order = versions_in_order(places)
        rows = []
        for row in self.rows:
            found = [[n for n in places[value] if n in row.cells] for value in order]
            cells = {at: self._merged(row, each) for at, each in enumerate(found) if each}
            rows.append(Row(row.case, cells))
        return Grid(tuple({axis: value} for value in order), tuple(rows), self.sessions, self.span)

    def _merged(self, row: Row, places: Sequence[int]) -> Cell:
        cells = [row.cells[place] for place in places]
        answers = [set(words) - {""} for words in zip(*(cell.words for cell in cells), strict=True)]
        words = tuple(known.pop() if len(known) == 1 else "" for known in answers)
        times = sorted(cell.time for cell in cells if cell.time is not None)
        is_one = len({self.columns[place].get(MACHINE) for place in places}) == 1
        time = times[(len(times) - 1) // 2] if times and is_one else None
        judged = {cell.safety for cell in cells}
        safety = judged.pop() if len(judged) == 1 else DIFFERS
        return Cell(words, cells[0].reason, cells[0].rules, time, safety=safety)

    def label(self, column: int) -> str:
        """``numpy 2.4.6, jax 0.10.2``: what tells a column from the others."""
        facts = self.columns[column]
        return ", ".join(fact_text(name, facts.get(name, MISSING)) for name in self.axes)


def fact_text(name: str, value: str) -> str:
    """``jax 0.10.2``; a machine is its own name."""
    return value if name == MACHINE else f"{name} {value}"


def version_key(text: str) -> tuple[tuple[int, int, str], ...]:
    """The order of versions: 0.4.9 before 0.4.10, and 2.0rc1 before 2.0."""
    parts = PARTS.findall(text.lower().partition("+")[0])
    found = [
        (2, int(part[:9]), "") if part.isdigit() else (1 if part == "post" else -1, 0, part)
        for part in parts
    ]
    return (*found, (0, 0, ""))


def _sessions(named: Iterable[Path | Folder], skipped: Skipped) -> Iterator[SessionCells]:
    """What the named files and the files of named folders hold."""
    for place in named:
        if isinstance(place, Path) and not place.is_dir():
            yield read(place)
            continue
        count = 0
        for path, content in _files_in(place):
            count += 1
            try:
                yield read(path, content)
            except SessionError as error:
                skipped(str(error))
        if not count:
            shown = place if isinstance(place, Path) else place.shown
            raise UsageError(f"the folder {shown} has no session: name session files")


def _files_in(place: Path | Folder) -> Iterator[tuple[str, bytes | None]]:
    """The files of a folder that may be sessions; their contents if they are elsewhere."""
    if isinstance(place, Path):
        try:
            found = sorted(one for one in place.rglob("*.json*") if is_of_session(one.name))
        except OSError as error:
            raise UsageError(f"cannot read the folder {place}: {error.strerror}") from None
        yield from ((str(path), None) for path in found)
    else:
        left = dict.fromkeys(sorted(filter(is_of_session, place.names() or ())))
        for name, content in place.read_all([*left]):
            del left[name]
            yield f"{place.shown}/{name}", content
        yield from ((f"{place.shown}/{name}", None) for name in left)  # and reading says why


def is_of_session(name: str) -> bool:
    """Whether a file may hold a session, by its name."""
    is_json = name.endswith((".json", ".json.gz", ".json.xz"))
    return is_json and not name.endswith(JOB) and name[0] != "."


def grid_of(named: Iterable[Path | Folder], skipped: Skipped) -> Grid:
    """The grid of session files and folders.

    A file of a folder that is no session is ``skipped``. Raises :class:`SessionError` for a named
    one, and :class:`UsageError` if nothing is left.
    """
    count, builder = 0, _Builder()
    for session in _sessions(named, skipped):
        builder.add(session)
        count += 1
    if not builder.rows:
        raise UsageError("no session holds a conversion: there is nothing to show")
    return builder.grid(count)


class _Builder:
    """Takes sessions one by one: in memory are the cells alone, and equal ones once."""

    def __init__(self) -> None:
        self.rows: dict[tuple[object, ...], Row] = {}
        self._places: dict[tuple[tuple[str, str], ...], int] = {}
        self._cells: dict[Cell, Cell] = {}
        self._created: list[str] = []
        self._newest: dict[tuple[int, int], str] = {}

    def add(self, session: SessionCells) -> None:
        header = session.header
        facts = tuple(_facts(header).items())
        place = self._places.setdefault(facts, len(self._places))
        self._created.append(header.created)
        for case, cell in session.cells:
            key = (*code_key(case), case.survey)
            row = self.rows.get(key)
            if row is None:
                row = self.rows[key] = Row(case, {})
            is_older = self._newest.get((id(row), place), "") > header.created
            if not is_older:
                self._newest[id(row), place] = header.created
                row.cells[place] = self._cells.setdefault(cell, cell)

    def grid(self, sessions: int) -> Grid:
        """The grid; environments that differ in nothing that was measured are one column."""
        frameworks = tuple({name for row in self.rows.values() for name in row.pair})
        kept: dict[tuple[tuple[str, str], ...], list[int]] = {}
        for facts, place in self._places.items():
            own = tuple(
                (name, value)
                for name, value in facts
                if name in (MACHINE, PYTHON, DEVICE) or name.startswith(frameworks)
            )
            kept.setdefault(own, []).append(place)
        order = sorted(kept, key=lambda facts: [(n, version_key(v), v) for n, v in sorted(facts)])
        target = {place: at for at, facts in enumerate(order) for place in kept[facts]}
        rows = tuple(self._merged(row, target) for row in self.rows.values())
        span = min(self._created, default=""), max(self._created, default="")
        return Grid(tuple(map(dict, order)), rows, sessions, span)

    def _merged(self, row: Row, target: Mapping[int, int]) -> Row:
        """The row by the columns of the grid; of several sessions of one the newest counts."""
        by_age = sorted(row.cells, key=lambda place: self._newest[id(row), place])
        cells = {target[place]: row.cells[place] for place in by_age}
        results = {cell.result for cell in cells.values()}
        met = {word for words in results & {*BY_ADDRESS} for word in words.split(OR)}
        return Row(row.case, {place: _known(cell, met) for place, cell in cells.items()})


def _known(cell: Cell, met: Collection[str]) -> Cell:
    """The cell without a result that may be the address's doing: elsewhere in its row the address
    was seen to decide between the results that were ``met``.
    """
    is_by_address = cell.by_chance and cell.result in met
    return cell._replace(words=("", *cell.words[1:])) if is_by_address else cell


def _facts(header: Header) -> dict[str, str]:
    environment = header.environment
    return {
        MACHINE: machine_of(environment).name,
        PYTHON: ".".join((environment.python or "?").split(".")[:2]),
        DEVICE: "simulated" if header.simulated else "real",
        **{name: str(version) for name, version in sorted((environment.packages or {}).items())},
    }


def versions_in_order(values: Iterable[str]) -> Sequence[str]:
    return sorted(set(values), key=lambda value: (version_key(value), value))
