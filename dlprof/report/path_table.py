"""The paths of an array in tables: the short one of the first screen, and all that is known."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from dlprof.judge import FAULTS
from dlprof.judge.rule import SEVERITIES
from dlprof.judge.slower import is_too_fast_to_copy
from dlprof.report.answers import best, waited
from dlprof.report.document import Cell, Column, Lines, Section, Table
from dlprof.report.paths import KINDS, MORE, NOT_ALL, Array, Path, lines_of, plainest, queued_work
from dlprof.runner.quantity import (
    MARK,
    bound_text,
    is_wide,
    legend,
    plain_time,
    ratio_text,
    significant,
    time_text,
)
from dlprof.runner.session import Note, TimeMeasure
from dlprof.text.clean import counted, first_line, first_words, listed


class Room(NamedTuple):
    """Lines of the first screen."""

    timed: int
    lost: int
    """Of paths without a time."""
    problems: int | None = None
    """None for all."""


ROOMS = tuple(
    Room(*room)
    for room in (
        *((9, 3), (8, 3), (7, 3), (6, 3), (6, 2), (6, 1), (5, 1), (5, 1, 5), (5, 1, 4), (5, 1, 3)),
        *((4, 1, 3), (4, 1, 2), (3, 1, 2), (3, 1, 1)),
    )
)
"""From the most lines to the least. The table matters more than problems that can be counted."""
MOST_COPIES = 3
"""Lines of copies: views answer the question, and there is always another copy."""
MOST_WORDS = 8
LEAST_SHARE = 0.005
LEAST_BYTES = 64 * 2**10
"""A bandwidth of fewer bytes tells of the call, not of the copy."""
LEAST_MADE_BYTES = 1 << 20
"""Of fewer bytes the calls cost more than the memory."""


def short_tables(array: Array, room: Room | None) -> tuple[tuple[Table, ...], tuple[str, ...]]:
    """What has a time, then what has none, and what the marks mean.

    Paths with the same result and problems, and about the same time, share a line. Without ``room``
    every path that was measured has one.
    """
    measured = [path for path in array.paths if path.is_measured]
    is_timed = any(path.is_timed for path in array.paths)
    if room is None:
        room = Room(len(measured), len(array.paths))
        lines = shown = [[path] for path in sorted(measured, key=lambda path: path.place)]
    else:
        lines = lines_of(measured)
        shown = _shown(lines, room.timed, [*_asked(array, lines)][: room.timed])
    lost = _lost([path for path in array.paths if not path.is_measured])
    left = sum(len(line) for line in lines if line not in shown)
    lost_left = sum(len(line) for line in lost[room.lost :])
    more = [
        _more(left, "slower path" if is_timed and lines[: len(shown)] == shown else "other path"),
        _more(lost_left, "more path", " without a time" if is_timed else " without an answer"),
    ]
    tables = [
        _summary(TIMED if is_timed else UNTIMED, shown, more[0]),
        _summary(UNMEASURED, lost[: room.lost], more[1]),
    ]
    marks = marks_of([path for line in shown for path in line])
    known = [table for table in tables if table.rows]
    return tuple(replace(table, carries_on=table is not known[0]) for table in known), marks


def _more(count: int, what: str, which: str = "") -> str:
    return f"{counted(count, what)}{which}" if count else ""


def marks_of(timed: Sequence[Path]) -> tuple[str, ...]:
    """What the mark before a time and the star behind a result mean here."""
    found = []
    disturbed = any(path.case.ready is not None and path.case.ready.is_disturbed for path in timed)
    alone = any(path.is_known and not path.is_certain for path in timed)
    kept = [path.case.new_ns is None for path in timed if path.case.is_cached_copy]
    causes = [
        cause
        for cause, is_one in (
            ("Other programs disturbed this time. The path itself may take less.", disturbed),
            ("Only one process measured this time. Another process may differ.", alone),
            ("This is the time of a new array: the framework keeps results.", False in kept),
        )
        if is_one
    ]
    if causes:
        found.append(f"{MARK} {' Or: '.join(causes)}")
    if True in kept:
        found.append(f"{MORE} This is the time of an array that was converted before.")
    if any(path.is_part for path in timed):
        found.append(f"{NOT_ALL}: The time is too short for them. The rest may be copied later.")
    if unknown := [path for path in timed if path.result == "?"]:
        why = next(filter(None, map(_why_unowned, unknown)), "")
        told = f": {first_line(why)}" if why else "."
        found.append(f"? It is not known whether the result is a view or a copy{told}")
    starred = [path for path in timed if path.elsewhere]
    if starred:
        other = {"copy": "copies", "refused": "fails"}
        words = sorted({word for path in starred for word in path.elsewhere} & other.keys())
        found.append(
            f"* The result depends on the address of {starred[0].source}: at other addresses the"
            f" path {' or '.join(other[word] for word in words) or 'gives a view'}."
        )
    suspected = sorted({rule for path in timed for rule in path.safety.suspected})
    if suspected:
        found.append(f"{', '.join(suspected)}? Seen only in similar paths.")
    return tuple(found)


def _asked(array: Array, lines: Sequence[list[Path]]) -> Iterator[list[Path]]:
    """What a reader looks for, the most important first: the answers, or the fastest of their kind
    where none is safe; then the first line of each of the worst problems.
    """
    for kind in KINDS:
        answer = best(array, kind) or (waited(array) if kind == "copy" else None)
        found = (
            line for line in lines if answer in line or (not answer and line[0].result == kind)
        )
        yield from islice(found, 1)
    firsts = [line[0] for line in lines if line[0].worst is not None]
    worst = min((one.worst for one in firsts if one.worst), key=SEVERITIES.index, default=None)
    for rule in dict.fromkeys(one.rules[0] for one in firsts if one.worst == worst):
        yield next(line for line in lines if rule in line[0].rules)


def _shown(lines: Sequence[list[Path]], most: int, asked: Sequence[list[Path]]) -> list[list[Path]]:
    """What is asked for, and the first of the others, in the order of ``lines``."""
    copies = 0
    found = [at for at, line in enumerate(lines) if line in asked]
    for at, line in enumerate(lines):
        is_copy = line[0].case.kind == "copy"
        copies += is_copy
        if at not in found and len(found) < most and not (is_copy and copies > MOST_COPIES):
            found.append(at)
    return [lines[at] for at in sorted(found)]


def _code(line: Sequence[Path]) -> Cell:
    """The code that a line shows, and how many others share the line."""
    return Cell(
        plainest(line).code, code=True, note=f"+{len(line) - 1} alike" if len(line) > 1 else ""
    )


def _lost(paths: Sequence[Path]) -> list[list[Path]]:
    """Crashes and time-outs first, then refusals; the same reason once."""
    groups: dict[tuple[str, str], list[Path]] = defaultdict(list)
    for path in sorted(paths, key=lambda path: (path.result == "refused", path.result)):
        groups[path.result, path.reason].append(path)
    return list(groups.values())


def _reason(line: Sequence[Path]) -> Cell:
    why = first_words(line[0].reason, MOST_WORDS)
    return Cell(" ".join((*line[0].rules, why)), "dim")


def _cost(line: Sequence[Path]) -> Cell:
    path = plainest(line)
    return Cell(path.brief_time if path.is_timed else queued_work(path))


Line = Sequence[Path]
"""Paths that share a line of the first screen."""
Shown = tuple[Column, Callable[[Line], Cell]]
"""A column of it, and what stands there of a line."""
TIMED: tuple[Shown, ...] = (
    (Column("time", right=True), _cost),
    (Column("result"), lambda line: plainest(line).result_cell),
    (Column("path"), _code),
    (Column("problem"), lambda line: Cell(plainest(line).problems)),
)
UNTIMED: tuple[Shown, ...] = ((Column("queued work"), _cost), *TIMED[1:])
"""Without times the first question is what the call does behind queued work."""
UNMEASURED: tuple[Shown, ...] = (
    (Column("result"), lambda line: line[0].result_cell),
    (Column("path"), _code),
    (Column("reason"), _reason),
)


def _summary(columns: Sequence[Shown], lines: Sequence[Line], left: str) -> Table:
    rows = tuple(tuple(show(line) for _, show in columns) for line in lines)
    titles = tuple(column for column, _ in columns)
    return Table(titles, rows, f"… and {left}" if left else "", is_summary=True)


def _full_time(path: Path) -> str:
    """With its interval, its modes or its range."""
    return "" if path.case.result.untimed else time_text(_ready(path), not path.is_certain)


def _ready(path: Path) -> TimeMeasure | None:
    return path.case.ready or path.case.result.ready_time


def _host_time(path: Path) -> str:
    host = path.case.result.host_time
    return "" if host is None else plain_time(host.median_ns)


def _first_call(path: Path) -> str:
    """The first call, where it was the first conversion of its process."""
    first = path.case.result.first_in_process_ns
    return "" if first is None else plain_time(first)


def _device_time(path: Path) -> str:
    found = path.case.result.device_time
    if found is None or found.warm is None or found.warm.median_ns is None:
        return ""
    if found.warm.median_ns < (found.resolution_ns or 0.0):
        return f"<{bound_text(found.resolution_ns or 0.0)}"
    return plain_time(found.warm.median_ns, 3)


def _speed(path: Path) -> str:
    """GB/s of a copy, where one number stands for its time."""
    cost, ready = path.case.result.copy_cost, path.case.ready
    if path.case.kind != "copy" or cost is None or cost.gb_per_s is None or ready is None:
        return ""
    is_one = path.is_known and not is_wide(ready) and path.case.size_bytes >= LEAST_BYTES
    if is_too_fast_to_copy(path.case):
        return "unknown"
    return ratio_text(cost.gb_per_s) if is_one else ""


def _share_of_memcpy(path: Path) -> str:
    """Where one number stands for the time."""
    cost, ready = path.case.result.copy_cost, path.case.ready
    share = cost.share_of_memcpy if cost is not None and path.case.kind == "copy" else None
    if is_too_fast_to_copy(path.case):
        return NOT_ALL
    if share is None or ready is None or not path.is_known or is_wide(ready):
        return ""
    return f"{100 * share:.0f} %" if share >= LEAST_SHARE else "<1 %"


def _peak(path: Path) -> str:
    """Memory at the peak beyond the source, in arrays of its size."""
    arrays = path.case.peak_arrays
    return "" if arrays is None else f"{max(arrays, 0.0):.2f}"


def _of_making(path: Path) -> str:
    """The time as a share of what it takes to make such an array: what reading it once is worth."""
    made = path.case.result.create_ns
    if not made or not path.is_known or path.case.size_bytes < LEAST_MADE_BYTES:
        return ""
    return f"{significant(100 * path.cost_ns / made, 2)} %"


Show = Callable[[Path], str]
TIMES: tuple[tuple[str, Show], ...] = (
    ("time", _full_time),
    ("call returns", _host_time),
    ("first call", _first_call),
    ("on device", _device_time),
    ("behind queued work", queued_work),
)
MEMORY: tuple[tuple[str, Show], ...] = (
    ("GB/s", _speed),
    ("of memcpy", _share_of_memcpy),
    ("of creation", _of_making),
    ("peak arrays", _peak),
)


def full_section(array: Array, heading: str) -> Section:
    """All measured paths in two tables, times and memory; then why others have no answer."""
    timed = [path for path in array.paths if path.is_measured]
    tables = (
        (
            replace(
                _full_table(timed, TIMES, Column("problem"), lambda path: Cell(path.problems)),
                more=legend(_ready(path) for path in timed if not path.case.result.untimed),
            ),
            _full_table(timed, MEMORY, Column("result"), lambda path: path.result_cell),
        )
        if timed
        else ()
    )
    lost = tuple(
        f"{path.result}: {path.code}: {path.reason}" for path in array.paths if not path.is_measured
    )
    blocks = (Lines(text) for text in (marks_of(timed), lost) if text)
    return Section(heading, (*tables, *blocks))


def _full_table(
    paths: Sequence[Path],
    columns: Sequence[tuple[str, Show]],
    column: Column,
    cell: Callable[[Path], Cell],
) -> Table:
    """Columns in which nothing is known are left out."""
    known = [(title, show) for title, show in columns if any(map(show, paths))]
    titles = (*(Column(title, right=True) for title, _ in known), column, Column("path"))
    rows = tuple(
        (*(Cell(show(path) or "-") for _, show in known), cell(path), Cell(path.code, code=True))
        for path in paths
    )
    return Table(titles, rows)


def shapes_table(arrays: Sequence[Array]) -> Table:
    """One line for each array of a pair: the fastest view and copy that may be written."""
    names = ("pair", "shape", "dtype", "layout", "device")
    varying = [
        at
        for at, values in enumerate(zip(*(one.name for one in arrays), strict=True))
        if len(set(values)) > 1
    ]
    titles = [Column(names[at], right=names[at] == "shape") for at in varying]
    rows = []
    for array in arrays:
        cells = [Cell(array.name[at]) for at in varying]
        for kind in KINDS:
            path = best(array, kind)
            cells.append(Cell((path.brief_time or "yes") if path else "-"))
            cells.append(Cell(path.code, code=True) if path else Cell("none", "bad"))
        rows.append(tuple(cells))
    for kind in KINDS:
        titles += [Column(kind, right=True), Column("path")]
    return Table(tuple(titles), tuple(rows))


def _why_unowned(path: Path) -> str:
    """Why the instrument did not tell a view from a copy, if it raised."""
    return next((one.reason for one in path.case.result.notes if one.instrument == "ownership"), "")


def notes_section(arrays: Sequence[Array]) -> tuple[Section, ...]:
    """One line for each note, with the paths that share it."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for array in arrays:
        for path in array.paths:
            for note in _notes(path):
                found[note][path.code] = None
    lines = tuple(f"{listed(codes)}: {note}" for note, codes in found.items())
    return (Section("Notes", (Lines(lines),)),) if lines else ()


def _notes(path: Path) -> Iterator[str]:
    result, safety = path.case.result, path.safety
    if result.case.setup:
        yield f"needs {' / '.join(result.case.setup.strip().splitlines())}"
    for rule in safety.suspected:
        yield f"{rule}? Others into this framework break the rule, and this path may break it too."
    if safety.unknown and path.is_measured:
        yield f"not called safe: {safety.unknown}"
    for rule in safety.conditions:
        yield f"safe only if you {FAULTS[rule].condition} ({rule})"
    if path.is_measured and result.reason:
        yield f"{result.status}: {path.reason}"
    if result.in_company is not None:
        status, reason = result.in_company.status, result.in_company.reason
        yield f"after other cases: {'' if status == 'ok' else f'{status}: '}{reason}"
    if result.interrupted:
        yield f"interrupted: {result.interrupted}"
    named = (Note(one.reason, one.instrument.replace("_", " ")) for one in result.notes)
    yield from (first_line(str(one)) for one in named)
