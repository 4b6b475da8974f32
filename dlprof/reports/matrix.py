"""Several pairs side by side: what the fastest path of each gives, and what it takes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from dlprof.reports.answers import KINDS, LEVELS, best
from dlprof.reports.document import Answer, Cell, Column, Level, Section, Table
from dlprof.reports.paths import Array, Path
from dlprof.text.clean import listed

AXES = ("shape", "dtype", "layout", "device")
"""What may differ between the arrays of a pair; the first that does becomes the columns."""
FEW = 8
"""So many pairs have their code on the first screen."""
ARROW = " → "


def fastest(array: Array) -> Path | None:
    """The fastest path that may be written: safe, else right. Of none it is the fastest timed."""
    offered = [path for kind in KINDS if (path := best(array, kind)) is not None]
    for level in LEVELS:
        found = [path for path in offered if path.safety.level == level]
        if found:
            return min(found, key=lambda path: path.cost_ns)
    return next((path for path in array.paths if path.is_timed and not path.case.is_wrong), None)


def answers(arrays: Sequence[Array]) -> tuple[Answer, ...]:
    """How many pairs share memory, copy, or have no path; and the slowest of them."""
    counts = Counter(_word(array) for array in arrays)
    what = "pairs" if all(len(set(values)) == 1 for values in _axes(arrays)) else "pairs and arrays"
    views, copies = (counts.pop(kind, 0) for kind in KINDS)
    rest = ", ".join(f"{count} {word}" for word, count in counts.most_common())
    found = [
        Answer("share memory", "", "", f"{views} of {len(arrays)} {what}"),
        Answer("copy", "", "", str(copies)),
        *([Answer("neither", "", "", rest)] if rest else []),
    ]
    writable = [
        (path, array)
        for array in arrays
        if (path := fastest(array)) is not None and path.safety.level in LEVELS
    ]
    if writable:
        path, array = max(writable, key=lambda one: (one[0].is_known, one[0].cost_ns))
        found.append(Answer("slowest", path.code, path.brief_time, array.pair))
    return tuple(found)


def tables(arrays: Sequence[Array]) -> tuple[Table, ...]:
    """Producers down and consumers across. Where the arrays differ: pairs down, arrays across, and
    a table for each value of what else differs.
    """
    differs = [at for at, values in enumerate(_axes(arrays), 1) if len(set(values)) > 1]
    if not differs:
        return (_square(arrays),)
    across, *rest = differs
    groups: dict[tuple[str, ...], list[Array]] = defaultdict(list)
    for array in arrays:
        groups[tuple(array.name[at] for at in rest)].append(array)
    return tuple(_wide(found, across, " ".join(key)) for key, found in groups.items())


def sections(arrays: Sequence[Array]) -> Iterator[Section]:
    """The code in each cell, and why others have none."""
    rows, reasons = [], defaultdict[str, list[str]](list)
    several = len({array.text for array in arrays}) > 1
    for array in arrays:
        where = f"{array.pair}  {array.text}" if several else array.pair
        path = fastest(array)
        if path is None:
            reasons[_reason(array)].append(where)
            continue
        code = Cell(path.code, code=True)
        rows.append((Cell(where), Cell(path.brief_time), path.result_cell, code))
    columns = (Column("pair"), Column("time", right=True), Column("result"), Column("path"))
    if rows:
        level = Level.FIRST if len(rows) <= FEW else Level.FULL
        yield Section("Fastest paths", (Table(columns, tuple(rows)),), level)
    if reasons:
        lost = [(Cell(listed(places)), Cell(why)) for why, places in reasons.items()]
        yield Section("No path", (Table((Column("pair"), Column("reason")), tuple(lost)),))


def _axes(arrays: Sequence[Array]) -> list[tuple[str, ...]]:
    return list(zip(*(array.name[1:] for array in arrays), strict=True))


def _word(array: Array) -> str:
    """What the fastest path gives, or why there is none that may be written."""
    path = fastest(array)
    if path is None:
        statuses = Counter(one.result for one in array.paths)
        return statuses.most_common(1)[0][0]
    return "unsafe" if path.safety.level == "unsafe" else path.result


def _reason(array: Array) -> str:
    reasons = Counter(path.reason for path in array.paths)
    return reasons.most_common(1)[0][0]


def _cell(array: Array | None) -> Cell:
    if array is None:
        return Cell("-", "dim")
    word, path = _word(array), fastest(array)
    if path is None:
        return Cell(word, "dim" if word == "refused" else "bad")
    if word == "unsafe":
        return Cell(f"{path.brief_time} unsafe", "bad")
    shown = path.result_cell
    waits = " waits" if path.case.waits else ""
    return Cell(f"{path.brief_time} {shown.text}{waits}", shown.tone)


def _square(arrays: Sequence[Array]) -> Table:
    cells = {array.pair.partition(ARROW)[::2]: array for array in arrays}
    producers = dict.fromkeys(producer for producer, _ in cells)
    consumers = tuple(dict.fromkeys(consumer for _, consumer in cells))
    rows = tuple(
        (Cell(one), *(_cell(cells.get((one, other))) for other in consumers)) for one in producers
    )
    return Table((Column("from \\ to"), *map(Column, consumers)), rows)


def _wide(arrays: Sequence[Array], across: int, title: str) -> Table:
    cells = {(array.pair, array.name[across]): array for array in arrays}
    columns = tuple(dict.fromkeys(array.name[across] for array in arrays))
    rows = tuple(
        (Cell(pair), *(_cell(cells.get((pair, column))) for column in columns))
        for pair in dict.fromkeys(array.pair for array in arrays)
    )
    return Table((Column(title or "pair"), *map(Column, columns)), rows)
