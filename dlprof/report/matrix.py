"""Several pairs side by side: the result and the time of the fastest path of each."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from dlprof.judge import FAULTS
from dlprof.report.answers import LEVELS, best
from dlprof.report.document import Answer, Cell, Column, Level, Section, Table
from dlprof.report.paths import KINDS, Array, Path, queued_work
from dlprof.text.clean import listed

CONDITION = "!"
"""Behind a result that is safe under a condition."""
FEW = 8
"""So many pairs have their code on the first screen."""


def fastest(array: Array) -> Path | None:
    """The path that stands for an array: the fastest safe one, else one that is not wrong."""
    fit = [path for kind in KINDS if (path := best(array, kind)) is not None]
    if fit:
        return min(fit, key=lambda path: (LEVELS.index(path.safety.level), path.place))
    known = (path for path in array.paths if path.is_measured and not path.case.is_wrong)
    return next(known, None)


def marks(chosen: Iterable[Path | None]) -> tuple[str, ...]:
    """The condition of these paths, if one has any."""
    rules = {rule for path in chosen if path is not None for rule in path.safety.conditions}
    told = [f"{FAULTS[rule].condition} ({rule})" for rule in sorted(rules)]
    return (f"{CONDITION} Safe only if you {' or '.join(told)}.",) if told else ()


def answers(arrays: Sequence[Array]) -> tuple[Answer, ...]:
    """How many pairs share memory, copy, or have no path; and the slowest of them."""
    counts = Counter(_cell(array)[0] for array in arrays)
    what = "pairs" if len({array.name[1:] for array in arrays}) == 1 else "pairs and arrays"
    views, copies = (counts.pop(kind, 0) for kind in KINDS)
    rest = ", ".join(f"{count} {word}" for word, count in counts.most_common())
    found = [
        Answer("share memory", note=f"{views} of {len(arrays)} {what}"),
        Answer("copy", note=str(copies)),
        *([Answer("neither", note=rest)] if rest else []),
    ]
    paths = [path for array in arrays if (path := fastest(array)) is not None]
    writable = [path for path in paths if path.safety.level in LEVELS and path.is_timed]
    if writable:
        slowest = max(writable, key=lambda path: (path.is_known, path.cost_ns))
        found.append(Answer("slowest", slowest.code, slowest.brief_time, slowest.pair_text))
    return tuple(found)


def tables(arrays: Sequence[Array]) -> tuple[Table, ...]:
    """Producers down and consumers across.

    If the arrays differ: pairs down, arrays across, and a table for each value of what else
    differs.
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
    """The code in each cell, and the reason of each pair without a path."""
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
        yield Section("Fastest paths", (Table(columns, tuple(rows)),), level)
    if reasons:
        lost = [(Cell(listed(places)), Cell(why)) for why, places in reasons.items()]
        yield Section("No path", (Table((Column("pair"), Column("reason")), tuple(lost)),))


def _cell(array: Array | None) -> tuple[str, Cell]:
    """The result of the fastest path; without one the most common result of all."""
    if array is None:
        return "", Cell("-", "dim")
    path = fastest(array)
    if path is None:
        word = Counter(one.result for one in array.paths).most_common(1)[0][0]
        return word, Cell(word, "dim" if word == "refused" else "bad")
    if path.safety.level == "unsafe":
        return "unsafe", Cell(path.brief_time, "bad", note="unsafe")
    mark = CONDITION if path.safety.conditions else ""
    waits = " waits" if path.case.waits_for is not None else ""
    shown = path.result_cell
    return path.result, Cell(path.brief_time, shown.tone, note=f"{shown.text}{mark}{waits}")


def _table(title: str, cells: dict[tuple[str, str], Array]) -> Table:
    columns = tuple(dict.fromkeys(column for _, column in cells))
    rows = tuple(
        (Cell(row), *(_cell(cells.get((row, column)))[1] for column in columns))
        for row in dict.fromkeys(row for row, _ in cells)
    )
    return Table((Column(title), *map(Column, columns)), rows)
