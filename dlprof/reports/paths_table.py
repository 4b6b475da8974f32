"""The paths of an array in tables: the short one of the first screen, and all that is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from dlprof.reports import cells
from dlprof.reports.answers import KINDS, best
from dlprof.reports.document import Cell, Column, Lines, Section, Table
from dlprof.reports.paths import NEAR, Array, Path

MOST_LINES, LEAST_LINES = 9, 4
"""Lines of paths with a time on the first screen."""
ROOM = 12
"""Lines that these and the problems share; a problem takes one or two."""
MOST_COPIES = 3
"""Of them lines of copies: views answer the question, and there is always another copy."""
MOST_REFUSED = 3
MOST_WORDS = 8

FIRST = (Column("time", right=True), Column("result"), Column("path"), Column("problem"))
LOST = (Column("result"), Column("path"), Column("reason"))


def short_tables(array: Array, problems: int) -> tuple[tuple[Table, ...], tuple[str, ...]]:
    """What has a time, then what has none, and what their marks mean.

    Paths with the same result and problems, and about the same time, share a line. The more
    ``problems`` stand below, the fewer lines there are.
    """
    lines = list(_lines([path for path in array.paths if path.is_timed]))
    shown = _shown(lines, min(MOST_LINES, max(LEAST_LINES, ROOM - 2 * problems)))
    left = [path for line in lines if line not in shown for path in line]
    timed = Table(FIRST, tuple(map(_row, shown)), _counted(left) if left else "")
    lost = _lost_table([path for path in array.paths if not path.is_timed])
    tables = tuple(table for table in (timed, lost) if table.rows)
    return tables, marks_of([path for line in shown for path in line])


def marks_of(timed: Sequence[Path]) -> tuple[str, ...]:
    """What the mark before a time and the star behind a result mean here."""
    found = []
    if any(path.case.ready is not None and path.case.ready.is_disturbed for path in timed):
        found.append(
            f"{cells.MARK} Other programs disturbed this time. The path itself takes less."
        )
    if any(path.is_known and not path.is_certain for path in timed):
        found.append(f"{cells.MARK} One process measured this time. Another process may differ.")
    starred = [path for path in timed if path.elsewhere]
    if starred:
        words = sorted({word for path in starred for word in path.elsewhere} & {"copy", "refused"})
        other = {"copy": "a copy", "refused": "refused", "view": "a view"}
        found.append(
            f"* The result depends on the address of {starred[0].source}: elsewhere it is"
            f" {' or '.join(other[word] for word in words) or 'a view'}."
        )
    return tuple(found)


def _lines(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """Paths that share a line, by the time of the first."""
    groups: dict[tuple[str, str], list[list[Path]]] = {}
    for path in paths:
        found = groups.setdefault((_result(path), cells.problem_cell(path).text), [])
        if found and path.cost_ns <= NEAR * found[-1][0].cost_ns:
            found[-1].append(path)
        else:
            found.append([path])
    yield from sorted((line for lines in groups.values() for line in lines), key=_rank)


def _result(path: Path) -> str:
    return cells.result_cell(path).text


def _rank(line: Sequence[Path]) -> float:
    """By time; of about the same time, what has no problem first."""
    return line[0].cost_ns / (1.0 if line[0].rules else NEAR)


def _shown(lines: Sequence[list[Path]], most: int) -> list[list[Path]]:
    copies = 0
    found: list[list[Path]] = []
    for line in lines:
        is_copy = line[0].case.owner == "copy"
        copies += is_copy
        if len(found) < most and not (is_copy and copies > MOST_COPIES):
            found.append(line)
    return found


def _row(line: Sequence[Path]) -> tuple[Cell, ...]:
    first, *others = sorted(line, key=lambda path: (len(path.code), path.cost_ns))
    fastest = min(line, key=lambda path: path.cost_ns)
    return (
        Cell(cells.brief_time(fastest)),
        cells.result_cell(first),
        Cell(first.code, code=True, note=_alike(others)),
        cells.problem_cell(first),
    )


def _alike(others: Sequence[Path]) -> str:
    return f"+{len(others)} alike" if others else ""


def _counted(paths: Sequence[Path]) -> str:
    """``… 12 more slower copies (--full)``."""
    plural = {"copy": "copies", "view": "views"}
    counts = Counter(path.result for path in paths)
    told = [
        f"{count} slower {plural.get(word, word) if count > 1 else word}"
        for word, count in counts.most_common()
    ]
    return f"… and {', '.join(told)} (--full)"


def _lost_table(lost: Sequence[Path]) -> Table:
    """Crashes and time-outs first, then refusals; the same reason once."""
    ranked = sorted(lost, key=lambda path: (path.result == "refused", path.result))
    groups: dict[tuple[str, str], list[Path]] = {}
    for path in ranked:
        groups.setdefault((path.result, reason(path)), []).append(path)
    rows = []
    for (_, why), paths in list(groups.items())[:MOST_REFUSED]:
        first, *others = sorted(paths, key=lambda path: len(path.code))
        code = Cell(first.code, code=True, note=_alike(others))
        told = " ".join((*first.rules, shortened(why)))
        rows.append((cells.result_cell(first), code, Cell(told, "dim")))
    left = sum(len(paths) for paths in list(groups.values())[MOST_REFUSED:])
    return Table(LOST, tuple(rows), f"… and {left} more without a time (--full)" if left else "")


def reason(path: Path) -> str:
    """Why there is no ready time."""
    result = path.case.result
    if result.reason is not None:
        return _line_of(result.reason)
    notes = [note for note in result.notes if note.startswith("ready_time: ")]
    found = (notes or result.notes or ["no reason given"])[0]
    return _line_of(found.removeprefix("ready_time: "))


def _line_of(text: str) -> str:
    """The first line; one that ends in a colon only announces the next."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return "no reason given"
    told, *more = lines
    while more and told.endswith(":"):
        told += f" {more.pop(0)}"
    return f"{told} …" if more else told


def shortened(text: str) -> str:
    words = text.split()
    return text if len(words) <= MOST_WORDS else f"{' '.join(words[:MOST_WORDS])} …"


Show = Callable[[Path], str]

TIMES: tuple[tuple[str, Show], ...] = (
    ("time", cells.full_time),
    ("call returns", cells.host_time),
    ("first call", cells.first_call),
    ("on device", cells.device_time),
    ("behind queued work", cells.waiting),
)
MEMORY: tuple[tuple[str, Show], ...] = (
    ("GB/s", cells.speed),
    ("of memcpy", cells.share_of_memcpy),
    ("of making", cells.of_making),
    ("peak arrays", cells.peak),
    ("page faults", cells.page_faults),
)


def full_section(array: Array, heading: str) -> Section:
    """All paths with a time, in two tables: times, and what became of the memory."""
    timed = [path for path in array.paths if path.is_timed]
    lost = [path for path in array.paths if not path.is_timed]
    blocks = (
        [
            _table(timed, TIMES, (Column("problem"), cells.problem_cell)),
            _table(timed, MEMORY, (Column("result"), cells.result_cell)),
        ]
        if timed
        else []
    )
    lines = [f"{path.result}: {path.code}: {reason(path)}" for path in lost]
    return Section(heading, (*blocks, *([Lines(tuple(lines))] if lines else [])))


def _table(
    paths: Sequence[Path],
    columns: Sequence[tuple[str, Show]],
    last: tuple[Column, Callable[[Path], Cell]],
) -> Table:
    """Columns in which nothing is known are left out."""
    known = [(title, show) for title, show in columns if any(show(path) for path in paths)]
    titles = [Column("path"), *(Column(title, right=True) for title, _ in known), last[0]]
    rows = [
        (Cell(path.code, code=True), *(Cell(show(path) or "-") for _, show in known), last[1](path))
        for path in paths
    ]
    return Table(tuple(titles), tuple(rows))


def shapes_table(arrays: Sequence[Array]) -> Table:
    """One line for each array of a pair: the fastest path that may be written, and its times."""
    names = ("pair", "shape", "dtype", "layout", "device")
    varying = [
        at
        for at, values in enumerate(zip(*(one.name for one in arrays), strict=True))
        if len(set(values)) > 1
    ]
    titles = [Column(names[at], right=names[at] == "shape") for at in varying]
    rows = []
    for array in arrays:
        found = {kind: best(array, kind) for kind in KINDS}
        known = [path for path in found.values() if path is not None]
        first = min(known, key=lambda path: path.cost_ns, default=None)
        times = [cells.brief_time(path) if path else "-" for path in found.values()]
        rows.append(
            (
                *(Cell(array.name[at]) for at in varying),
                *map(Cell, times),
                Cell(first.code, code=True) if first else Cell("none", "bad"),
            )
        )
    titles += [Column("view", right=True), Column("copy", right=True), Column("fastest path")]
    return Table(tuple(titles), tuple(rows))
