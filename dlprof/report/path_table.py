"""Tables of paths: of one array on the first screen and in full, of several arrays and pairs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from dlprof.judge import FAULTS
from dlprof.judge.slower import is_too_fast_to_copy
from dlprof.report.answers import LEVELS, best, waited
from dlprof.report.document import Answer, Cell, Column, Level, Lines, Section, Table, Tone
from dlprof.report.paths import KINDS, Array, Path, lines_of, plainest, queued_work
from dlprof.runner.quantity import (
    MARK,
    bound_text,
    is_wide,
    legend,
    plain_time,
    significant,
    time_text,
)
from dlprof.text.clean import counted, listed

FIRST_TIMED, FIRST_OTHERS = 4, 2
"""Lines of the first screen: of measured paths, or of others if none was measured."""
CONDITION = "!"
"""Behind a result that is safe under a condition."""
FEW = 8
"""So many pairs have their code on the first screen."""
LEAST_BYTES = 64 * 2**10
"""A bandwidth of fewer bytes says more about the call than about the copy."""

Line = Sequence[Path]
"""Paths that share a line of the first screen."""


def short_table(array: Array) -> tuple[Table, tuple[str, ...]]:
    """The first screen's table, and what its marks mean.

    Paths with the same result and problems, and about the same time, share a line. If no path was
    measured, the first ones stand with their reasons.
    """
    measured = [path for path in array.paths if path.is_measured]
    is_timed = any(path.is_timed for path in measured) or not measured
    lines = lines_of(measured)
    shown = _shown(array, lines)
    rows = [_row(line, plainest(line).problems) for line in shown]
    if not measured:
        shown = [[path] for path in array.paths[:FIRST_OTHERS]]
        rows = [_row(line, line[0].reason.partition(":")[0], "dim") for line in shown]
    left = len(array.paths) - sum(map(len, shown))
    more = f"… {counted(left, 'more path')}" if left else ""
    return Table(_columns(is_timed), tuple(rows), more, is_summary=True), marks_of(
        [p for one in shown for p in one]
    )


def _columns(is_timed: bool) -> tuple[Column, ...]:
    first = Column("time", right=True) if is_timed else Column("queued work")
    return first, Column("result"), Column("path"), Column("problem")


def _shown(array: Array, lines: list[list[Path]]) -> list[list[Path]]:
    """The fastest lines; those of the answers are always among them."""
    answers = [best(array, kind) for kind in KINDS]
    answers += [] if answers[1] else [waited(array)]
    asked = [line for line in lines if any(one in line for one in answers if one)]
    rest = [line for line in lines if line not in asked]
    shown = [*asked, *rest[: FIRST_TIMED - len(asked)]]
    return [line for line in lines if line in shown]


def _row(line: Line, problem: str, tone: Tone = "") -> tuple[Cell, ...]:
    path = plainest(line)
    alike = f"+{len(line) - 1} alike" if len(line) > 1 else ""
    cost = path.brief_time if path.is_timed else queued_work(path)
    code = Cell(path.code, code=True, note=alike)
    return Cell(cost), path.result_cell, code, Cell(problem, tone)


def marks_of(paths: Sequence[Path]) -> tuple[str, ...]:
    """Explain the marks of these paths in one line."""
    meanings = {
        f"{MARK} not certain": any(path.brief_time.startswith(MARK) for path in paths),
        "* depends on the address of the array": any(
            path.result_cell.text.endswith("*") for path in paths
        ),
        "? seen only in similar paths": any(path.safety.suspected for path in paths),
    }
    found = " · ".join(mark for mark, is_shown in meanings.items() if is_shown)
    return (found,) if found else ()


def _full_time(path: Path) -> str:
    """Format the time with its interval or its range."""
    ready = path.case.ready or path.case.result.ready_time
    return "" if path.case.result.untimed else time_text(ready, not path.is_certain)


def _host_time(path: Path) -> str:
    host = path.case.result.host_time
    return "" if host is None else plain_time(host.median_ns)


def _first_call(path: Path) -> str:
    """The first call, if it was the first conversion of its process."""
    first = path.case.result.first_in_process_ns
    return "" if first is None else plain_time(first)


def _device_time(path: Path) -> str:
    found = path.case.result.device_time
    if found is None or found.warm is None:
        return ""
    if found.warm.median_ns < (found.resolution_ns or 0.0):
        return f"<{bound_text(found.resolution_ns or 0.0)}"
    return plain_time(found.warm.median_ns, 3)


def _speed(path: Path) -> str:
    """The bandwidth, if one number stands for the time of a whole copy."""
    cost, ready = path.case.result.copy_cost, path.case.ready
    if cost is None or ready is None or path.case.kind != "copy" or not cost.gb_per_s:
        return ""
    fits = path.case.is_known and not is_wide(ready) and path.case.size_bytes >= LEAST_BYTES
    return significant(cost.gb_per_s) if fits and not is_too_fast_to_copy(path.case) else ""


def _peak(path: Path) -> str:
    """Memory at the peak beyond the source, in arrays of its size."""
    arrays = path.case.peak_arrays
    return "" if arrays is None else f"{max(arrays, 0.0):.2f}"


COLUMNS: tuple[tuple[str, Callable[[Path], str]], ...] = (
    ("time", _full_time),
    ("call returns", _host_time),
    ("first call", _first_call),
    ("on device", _device_time),
    ("behind queued work", queued_work),
    ("GB/s", _speed),
    ("peak arrays", _peak),
)


def full_section(array: Array, heading: str) -> Section:
    """All measured paths, without columns that have no value; then the reasons of the others."""
    paths = [path for path in array.paths if path.is_measured]
    blocks: list[Table | Lines] = []
    if paths:
        known = [(title, show) for title, show in COLUMNS if any(map(show, paths))]
        numbers = (Column(title, right=True) for title, _ in known)
        titles = (Column("path"), Column("result"), *numbers, Column("problem"))
        rows = (
            (
                *(Cell(path.code, code=True), path.result_cell),
                *(Cell(show(path) or "-") for _, show in known),
                Cell(path.problems),
            )
            for path in paths
        )
        blocks.append(Table(titles, tuple(rows), legend(map(_full_time, paths))))
    lost = [f"{one.result}: {one.code}: {one.reason}" for one in array.paths if one not in paths]
    blocks += [Lines(text) for text in (marks_of(paths), tuple(lost)) if text]
    return Section(heading, tuple(blocks))


def shapes_table(arrays: Sequence[Array]) -> Table:
    """One line for each array of a pair: the fastest view and copy that may be written."""
    names = ("pair", "shape", "dtype", "layout", "device")
    axes = zip(*(one.name for one in arrays), strict=True)
    varying = [at for at, values in enumerate(axes) if len(set(values)) > 1]
    rows = []
    for array in arrays:
        cells = [Cell(array.name[at]) for at in varying]
        for kind in KINDS:
            path = best(array, kind)
            cells.append(Cell((path.brief_time or "yes") if path else "-"))
            cells.append(Cell(path.code, code=True) if path else Cell("none", "bad"))
        rows.append(tuple(cells))
    titles = [Column(names[at], right=names[at] == "shape") for at in varying]
    for kind in KINDS:
        titles += [Column(kind, right=True), Column("path")]
    return Table(tuple(titles), tuple(rows))


# Several pairs side by side


def standing_for(array: Array) -> Path | None:
    """The path that stands for an array: the fastest safe one, else one that is not wrong."""
    fit = [path for kind in KINDS if (path := best(array, kind)) is not None]
    if fit:
        return min(fit, key=lambda path: (LEVELS.index(path.safety.level), path.place))
    known = (path for path in array.paths if path.is_measured and not path.case.is_wrong)
    return next(known, None)


def condition_marks(chosen: Iterable[Path | None]) -> tuple[str, ...]:
    """The condition of these paths, if one has any."""
    rules = {rule for path in chosen if path is not None for rule in path.safety.conditions}
    told = [f"{FAULTS[rule].condition} ({rule})" for rule in sorted(rules)]
    return (f"{CONDITION} Safe only if you {' or '.join(told)}.",) if told else ()


def pair_answers(arrays: Sequence[Array]) -> tuple[Answer, ...]:
    """How many pairs share memory, copy, or have no path."""
    counts = Counter(_pair_cell(array)[0] for array in arrays)
    what = "pairs" if len({array.name[1:] for array in arrays}) == 1 else "pairs and arrays"
    found = (Answer("share memory", note=f"{counts.pop('view', 0)} of {len(arrays)} {what}"),)
    rest = ", ".join(f"{count} {word}" for word, count in counts.most_common())
    return (*found, Answer("others", note=rest)) if rest else found


def pair_table(arrays: Sequence[Array]) -> Table:
    """Producers down and consumers across; if arrays differ, a line for each pair and array."""
    if len({array.name[1:] for array in arrays}) > 1:
        return shapes_table(arrays)
    found = {array.pair: array for array in arrays}
    producers, consumers = (dict.fromkeys(pair[at] for pair in found) for at in (0, 1))
    rows = tuple(
        (Cell(one), *(_pair_cell(found.get((one, other)))[1] for other in consumers))
        for one in producers
    )
    return Table((Column("from \\ to"), *map(Column, consumers)), rows)


def pair_sections(arrays: Sequence[Array]) -> Iterator[Section]:
    """The code in each cell, and the reason of each pair without a path."""
    rows, reasons = [], defaultdict[str, list[str]](list)
    several = len({array.text for array in arrays}) > 1
    for array in arrays:
        where = f"{array.pair_text}  {array.text}" if several else array.pair_text
        path = standing_for(array)
        if path is None:
            why = Counter(path.reason for path in array.paths).most_common(1)[0][0]
            reasons[why].append(where)
        else:
            rows.append((Cell(where), *_row([path], "")[:3]))
    is_timed = any(path.is_timed for array in arrays for path in array.paths)
    columns = (Column("pair"), *_columns(is_timed)[:3])
    if rows:
        level = Level.FIRST if len(rows) <= FEW else Level.FULL
        yield Section("Fastest paths", (Table(columns, tuple(rows)),), level)
    if reasons:
        lost = tuple(f"{listed(places)}: {why}" for why, places in reasons.items())
        yield Section("No path", (Lines(lost),))


def _pair_cell(array: Array | None) -> tuple[str, Cell]:
    """The result of the fastest path; without one the most common result of all."""
    if array is None:
        return "", Cell("-", "dim")
    path = standing_for(array)
    if path is None:
        word = Counter(one.result for one in array.paths).most_common(1)[0][0]
        return word, Cell(word, "dim" if word == "refused" else "bad")
    if path.safety.level == "unsafe":
        return "unsafe", Cell(path.brief_time, "bad", note="unsafe")
    mark = CONDITION if path.safety.conditions else ""
    waits = " waits" if path.case.waits_for is not None else ""
    shown = path.result_cell
    return path.result, Cell(path.brief_time, shown.tone, note=f"{shown.text}{mark}{waits}")
