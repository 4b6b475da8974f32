"""Several pairs side by side: what the fastest path of each gives, and what it takes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

from dlprof.judge import FAULTS
from dlprof.judge.safety import Safety
from dlprof.report.answers import LEVELS, best
from dlprof.report.document import Answer, Cell, Column, Level, Section, Table
from dlprof.report.paths import KINDS, Array, Path, queued_work
from dlprof.text.clean import listed

CONDITION = "!"
"""Behind a result that is safe under a condition."""
FEW, FEW_REASONS = 8, 3
"""So many pairs have their code on the first screen, and so many reasons stand there."""


class Choice(Protocol):
    """What a matrix chooses among: the paths of a session, or the cells of an atlas."""

    @property
    def safety(self) -> Safety: ...
    @property
    def place(self) -> tuple[float, int, int]: ...
    @property
    def is_measured(self) -> bool: ...
    @property
    def is_wrong(self) -> bool: ...
    @property
    def result(self) -> str: ...
    @property
    def result_cell(self) -> Cell: ...
    @property
    def brief_time(self) -> str: ...
    @property
    def waits(self) -> bool: ...


C = TypeVar("C", bound=Choice)


def chosen(offered: Iterable[C], every: Iterable[C]) -> C | None:
    """The fastest path that may be written: safe, else right. Of none it is the first measured."""
    fit = [path for path in offered if path.safety.level in LEVELS]
    if fit:
        return min(fit, key=lambda path: (LEVELS.index(path.safety.level), path.place))
    return next((path for path in every if path.is_measured and not path.is_wrong), None)


def cell_of(path: Choice | None, results: Iterable[str]) -> tuple[str, Cell]:
    """What the chosen path gives in a word; of none the most common of all ``results``."""
    if path is None:
        word = Counter(results).most_common(1)[0][0]
        return word, Cell(word, "dim" if word == "refused" else "bad")
    if path.safety.level == "unsafe":
        return "unsafe", Cell(path.brief_time, "bad", under="unsafe")
    shown, waits = path.result_cell, " waits" if path.waits else ""
    mark = CONDITION if path.safety.conditions else ""
    return path.result, Cell(path.brief_time, shown.tone, under=f"{shown.text}{mark}{waits}")


def fastest(array: Array) -> Path | None:
    """The path that stands for an array."""
    offered = [path for kind in KINDS if (path := best(array, kind)) is not None]
    return chosen(offered, array.paths)


def marks(chosen: Iterable[Choice | None]) -> tuple[str, ...]:
    """What the mark of a condition means in the cells of these paths."""
    rules = {rule for path in chosen if path is not None for rule in path.safety.conditions}
    told = [f"{FAULTS[rule].condition} ({rule})" for rule in sorted(rules)]
    return (f"{CONDITION} Safe only if you {' or '.join(told)}.",) if told else ()


def answers(arrays: Sequence[Array]) -> tuple[Answer, ...]:
    """How many pairs share memory, copy, or have no path; and the slowest of them."""
    counts = Counter(_cell(array)[0] for array in arrays)
    what = "pairs" if len({array.name[1:] for array in arrays}) == 1 else "pairs and arrays"
    views, copies = (counts.pop(kind, 0) for kind in KINDS)
    named = {"?": "unknown"}
    rest = ", ".join(f"{count} {named.get(word, word)}" for word, count in counts.most_common())
    found = [
        Answer("share memory", "", "", f"{views} of {len(arrays)} {what}"),
        Answer("copy", "", "", str(copies)),
        *([Answer("neither", "", "", rest)] if rest else []),
    ]
    paths = [path for array in arrays if (path := fastest(array)) is not None]
    writable = [path for path in paths if path.safety.level in LEVELS]
    if any(path.is_timed for path in writable):
        slowest = max(writable, key=lambda path: (path.is_known, path.cost_ns))
        found.append(Answer("slowest", slowest.code, slowest.brief_time, slowest.pair_text))
    return tuple(found)


def tables(arrays: Sequence[Array]) -> tuple[Table, ...]:
    """Producers down and consumers across. Where the arrays differ: pairs down, arrays across, and
    a table for each value of what else differs.
    """
    axes = list(zip(*(array.name[1:] for array in arrays), strict=True))
    differs = [at for at, values in enumerate(axes, 1) if len(set(values)) > 1]
    if not differs:
        return (_table("from \\ to", {array.pair: array for array in arrays}),)
    across, *rest = differs
    groups: dict[str, dict[tuple[str, str], Array]] = defaultdict(dict)
    for array in arrays:
        title = " ".join(array.name[at] for at in rest)
        groups[title][array.pair_text, array.name[across]] = array
    return tuple(_table(title or "pair", found) for title, found in groups.items())


def sections(arrays: Sequence[Array]) -> Iterator[Section]:
    """The code in each cell, and why others have none."""
    rows, reasons = [], defaultdict[str, list[str]](list)
    several = len({array.text for array in arrays}) > 1
    for array in arrays:
        where = f"{array.pair_text}  {array.text}" if several else array.pair_text
        path = fastest(array)
        if path is None:
            why = Counter(path.reason for path in array.paths).most_common(1)[0][0]
            reasons[why].append(where)
            continue
        code = Cell(path.code, code=True)
        first = path.brief_time if path.is_timed else queued_work(path)
        rows.append((Cell(where), Cell(first), path.result_cell, code))
    is_timed = any(path.is_timed for array in arrays for path in array.paths)
    first_column = Column("time", right=True) if is_timed else Column("queued work")
    columns = (Column("pair"), first_column, Column("result"), Column("path"))
    if rows:
        level = Level.FIRST if len(rows) <= FEW else Level.FULL
        yield Section(
            "Fastest paths" if is_timed else "Paths", (Table(columns, tuple(rows)),), level
        )
    if reasons:
        lost = [(Cell(listed(places)), Cell(why)) for why, places in reasons.items()]
        level = Level.FIRST if len(lost) <= FEW_REASONS else Level.FULL
        yield Section("No path", (Table((Column("pair"), Column("reason")), tuple(lost)),), level)


def _cell(array: Array | None) -> tuple[str, Cell]:
    """What the fastest path of an array gives."""
    if array is None:
        return "", Cell("-", "dim")
    return cell_of(fastest(array), (path.result for path in array.paths))


def _table(title: str, cells: dict[tuple[str, str], Array]) -> Table:
    columns = tuple(dict.fromkeys(column for _, column in cells))
    rows = tuple(
        (Cell(row), *(_cell(cells.get((row, column)))[1] for column in columns))
        for row in dict.fromkeys(row for row, _ in cells)
    )
    return Table((Column(title), *map(Column, columns)), rows)
