"""Many sessions side by side: a row for each path and array, a column for each environment.

An environment is the machine, Python, and the frameworks that were measured, with their versions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from dlprof.compare.comparison import Key, key, machine_name
from dlprof.compare.times import LIMIT
from dlprof.errors import SessionError, UsageError
from dlprof.judge import cases_in
from dlprof.judge.case_view import is_known
from dlprof.runner import session_file
from dlprof.runner.session import CaseRecord, Header, Session

MACHINE, PYTHON, DEVICE = "machine", "Python", "CUDA device"
MISSING = "not installed"
BY_ADDRESS = "*"
"""Marks a result that depends on the address of the array."""

Facts = Mapping[str, str]
Skipped = Callable[[str], None]


class Cell(NamedTuple):
    """The result of a path in one environment, and its ready time in ns, if it was measured."""

    word: str
    rules: tuple[str, ...] = ()
    """Rules that make the path unsafe."""
    median_ns: float | None = None
    interval_ns: tuple[float, float] | None = None


@dataclass(frozen=True)
class PathRow:
    """A path with its array; ``cells`` are by the place of their column."""

    case: CaseRecord
    cells: dict[int, Cell]

    def differs(self, columns: Sequence[Facts]) -> bool:
        """Whether environments give different results, or one machine different times."""
        results = {(cell.word, cell.rules) for cell in self.cells.values() if cell.word != "?"}
        return len(results) > 1 or self.time_differs(columns)

    def time_differs(self, columns: Sequence[Facts]) -> bool:
        """Whether times of one machine and one Python differ by more than noise."""
        groups: dict[tuple[str | None, ...], list[tuple[float, float, float]]] = {}
        for place, cell in self.cells.items():
            if cell.median_ns is not None and cell.interval_ns is not None:
                facts = tuple(columns[place].get(name) for name in (MACHINE, PYTHON, DEVICE))
                groups.setdefault(facts, []).append((cell.median_ns, *cell.interval_ns))
        for times in groups.values():
            (fast_ns, _, fast_end), (slow_ns, slow_begin, _) = min(times), max(times)
            if slow_begin > fast_end and slow_ns >= LIMIT * fast_ns:
                return True
        return False


@dataclass(frozen=True)
class Environments:
    """``columns`` are environments in the order of their versions. Rows that differ come first."""

    columns: tuple[Facts, ...]
    rows: tuple[PathRow, ...]
    different: int
    """The number of rows that differ."""
    sessions: int

    @property
    def axes(self) -> tuple[str, ...]:
        """The facts that tell columns apart. Of facts that change together, only the first."""
        found: dict[tuple[int, ...], str] = {}
        frameworks = {framework for row in self.rows for framework in row.case.pair}
        names = {name for facts in self.columns for name in facts}
        for name in sorted(names, key=lambda name: (name not in frameworks, name)):
            values = [facts.get(name, MISSING) for facts in self.columns]
            if len({*values}) > 1:
                found.setdefault(tuple(values.index(value) for value in values), name)
        return tuple(found.values())

    def split_pairs(self, rows: Sequence[PathRow]) -> Iterator[Environments]:
        """Yield the ``rows`` of each pair, with the columns that have a cell in them."""
        for pair in dict.fromkeys(row.case.pair for row in rows):
            pair_rows = [row for row in rows if row.case.pair == pair]
            places = sorted({place for row in pair_rows for place in row.cells})
            moved = [
                PathRow(row.case, {places.index(place): cell for place, cell in row.cells.items()})
                for row in pair_rows
            ]
            columns = tuple(self.columns[place] for place in places)
            yield Environments(columns, tuple(moved), len(moved), self.sessions)

    def label(self, column: int) -> str:
        """Return what tells a column from the others: ``numpy 2.4.6, jax 0.10.2``."""
        facts = self.columns[column]
        values = ((name, facts.get(name, MISSING)) for name in self.axes)
        return ", ".join(value if name == MACHINE else f"{name} {value}" for name, value in values)


def version_key(text: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key of versions: 0.4.9 before 0.4.10, and 2.0rc1 before 2.0."""
    parts = re.findall(r"\d+|[a-z]+", text.lower().partition("+")[0])
    found = [
        (2, int(part[:9]), "") if part.isdigit() else (1 if part == "post" else -1, 0, part)
        for part in parts
    ]
    return (*found, (0, 0, ""))


def read_environments(places: Iterable[Path], skipped: Skipped) -> Environments:
    """Read session files, and folders of them.

    A file of a folder that is not a session is ``skipped``. Raises :class:`SessionError` for a
    named file, and :class:`UsageError` if there is no session. The newest session of an environment
    counts.
    """
    # Without their results thousands of sessions fit into memory.
    found = [
        (session.model_copy(update={"results": [], "findings": []}), [*read_cells(session)])
        for session in _sessions(places, skipped)
    ]
    found.sort(key=lambda entry: entry[0].created)
    names = tuple({name for _, cells in found for case, _ in cells for name in case.pair})
    facts = [_facts(session, names) for session, _ in found]
    columns = sorted(
        {tuple(mapping.items()) for mapping in facts},
        key=lambda items: [(name, version_key(value), value) for name, value in sorted(items)],
    )
    rows: dict[Key, PathRow] = {}
    for (_, cells), mapping in zip(found, facts, strict=True):
        place = columns.index(tuple(mapping.items()))
        for case, cell in cells:
            rows.setdefault(key(case), PathRow(case, {})).cells[place] = cell
    if not rows:
        raise UsageError("no session holds a conversion: there is nothing to show")
    environments = tuple(map(dict, columns))
    ordered = sorted(rows.values(), key=lambda row: not row.differs(environments))
    different = sum(row.differs(environments) for row in ordered)
    return Environments(environments, tuple(ordered), different, len(found))


def _sessions(places: Iterable[Path], skipped: Skipped) -> Iterator[Session]:
    for place in places:
        if not place.is_dir():
            yield session_file.load(place)
            continue
        files = sorted(path for path in place.rglob("*.json") if path.name[0] != ".")
        if not files:
            raise UsageError(f"the folder {place} has no session: name session files")
        for path in files:
            try:
                yield session_file.load(path)
            except SessionError as error:
                skipped(str(error))


def _facts(header: Header, frameworks: tuple[str, ...]) -> Facts:
    """Return what tells environments apart, without packages that were not measured."""
    environment = header.environment
    packages = sorted((environment.packages or {}).items())
    return {
        MACHINE: machine_name(environment),
        PYTHON: ".".join((environment.python or "?").split(".")[:2]),
        DEVICE: "simulated" if header.simulated else "real",
        **{name: str(version) for name, version in packages if name.startswith(frameworks)},
    }


def read_cells(session: Session) -> Iterator[tuple[CaseRecord, Cell]]:
    """Yield the cases of a session with their cells."""
    cases = cases_in(session.results)
    for case in cases.cases:
        word, safety = case.outcome, cases.safety(case)
        is_view_by_chance = case.by_address is not None and case.by_address.says("dependent")
        if word in ("view", "copy") and is_view_by_chance:
            word = f"view{BY_ADDRESS}"
        is_unsafe = safety.level == "unsafe" and not safety.needs_wait
        cell = Cell(word, safety.rules if is_unsafe else ())
        if case.ready is not None and is_known(case.ready):
            cell = cell._replace(median_ns=case.ready.median_ns, interval_ns=case.ready.ci95_ns)
        yield case.result.case, cell
