"""A comparison of two sessions as a document: the answer, what changed, how it was measured."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from dlprof.compare.comparison import GONE, INVALID, NEW, UNMEASURED, Compared, Comparison
from dlprof.compare.comparison import WORSE as WORSE_CASE
from dlprof.compare.differences import tunables_of
from dlprof.compare.times import Time
from dlprof.compare.verdicts import BETTER, LOST, OTHER, STATUS, WORSE, Change
from dlprof.judge.slower import FASTER, SAME, SLOWER, UNSURE, WIDE
from dlprof.report import method
from dlprof.report.comparison_answers import (
    answers_of,
    array_text,
    array_texts,
    code_cells,
    floors_text,
    rank,
    ratio_text,
)
from dlprof.report.document import (
    Answer,
    Cell,
    Column,
    Document,
    Facts,
    Lines,
    Section,
    Table,
    Tone,
    more_rows,
)
from dlprof.runner.floors import Floor
from dlprof.runner.options import TUNABLES
from dlprof.runner.quantity import plain_time
from dlprof.runner.session import Header
from dlprof.text.clean import counted, listed

FIRST_ROWS, ALL_ROWS = 12, 1000
"""Rows of a table on the first screen, and in full. The JSON has all."""
ORDER = (SLOWER, GONE, WORSE_CASE, UNSURE, WIDE, FASTER, NEW, SAME, INVALID, UNMEASURED)
TONES: dict[str, Tone] = {
    SLOWER: "worse",
    GONE: "worse",
    WORSE: "worse",
    FASTER: "better",
    BETTER: "better",
}

CaseChange = tuple[Compared, Change]
Rows = Sequence[tuple[Compared, Time | None]]


def comparison_document(
    comparison: Comparison, names: tuple[str, str] = ("BASE", "HEAD")
) -> Document:
    """What a report of a comparison says; ``names`` are the files or interpreters of the sides."""
    rows = sorted(_rows(comparison), key=_badness)
    changes = sorted(
        ((case, change) for case in comparison.cases for change in case.changes),
        key=lambda one: rank(one[1]),
    )
    short_changes = _changes_table(_alike(changes), FIRST_ROWS)
    all_changes = _changes_table([[one] for one in changes], ALL_ROWS)
    sections: tuple[tuple[str, Sequence[Table | Facts | Lines]], ...] = (
        ("All times", (*_times_table(rows, ALL_ROWS), *_reasons_table(rows, comparison.floors))),
        ("All changed verdicts", all_changes if all_changes != short_changes else ()),
        ("How it was measured", _method(comparison, names)),
    )
    notices = (
        method.simulated_notice(comparison.base) or method.simulated_notice(comparison.head),
        comparison.load and f"{comparison.load[0].upper()}{comparison.load[1:]}.",
    )
    telling = [row for row in rows if _is_telling(comparison, *row)]
    return Document(
        title="BASE and HEAD",
        scope=_scope(comparison.cases),
        context=_sides(comparison, names),
        notices=tuple(filter(None, notices)),
        answers=answers_of(comparison),
        tables=(*short_changes, *_first_times(telling, len(comparison.times))),
        marks=comparison.told[:1],  # how many rounds a gate took, and why it stopped
        sections=tuple(Section(heading, tuple(found)) for heading, found in sections if found),
    )


def _sides(comparison: Comparison, names: tuple[str, str]) -> str:
    """How the versions of the sides differ, or what is the same."""
    same = "BASE and HEAD are the same file" if len({*names}) == 1 else ""
    differ = _differences(comparison, "python", "version") or same or _same_versions(comparison)
    shared = listed(comparison.in_one_place)
    return ", ".join(
        filter(None, (differ, shared and f"both load the Python files of {shared} from one place"))
    )


def refusal_document(reason: str) -> Document:
    """What is said of a gate that measured nothing."""
    return Document("BASE and HEAD", answers=(Answer("not compared", "", note=reason),))


def _rows(comparison: Comparison) -> Iterable[tuple[Compared, Time | None]]:
    """The times, and the cases that have none although one side measured them."""
    for case in comparison.cases:
        yield from ((case, time) for time in case.times)
        if not case.times and case.word in (GONE, NEW, INVALID, UNSURE):
            yield case, None


def _is_telling(comparison: Comparison, case: Compared, time: Time | None) -> bool:
    """Whether the first screen has its row: what is the same, or passes as WIDE, is counted."""
    if time is not None and time.word == WIDE:
        return not comparison.settings.passes(time)
    return _word(case, time) not in (SAME, INVALID)


def _scope(cases: Sequence[Compared]) -> str:
    shared, arrays = array_texts(case.case for case in cases)
    different = len(set(arrays.values()))
    several = f"{len(cases):,} cases of {different} arrays" if different > 1 else ""
    return ", ".join(filter(None, (shared, several)))


def _differences(comparison: Comparison, *kinds: str) -> str:
    return ", ".join(str(one) for one in comparison.differences if one.kind in kinds)


def _same_versions(comparison: Comparison) -> str:
    """That nothing differs, if the versions of all frameworks are known."""
    frameworks = {name for case in comparison.cases for name in case.case.pair}
    are_known = all(
        side.environment.distributions([name])
        for name in frameworks
        for side in (comparison.base, comparison.head)
    )
    return "the same versions on both sides" if are_known and frameworks else ""


def _word(case: Compared, time: Time | None) -> str:
    return time.word if time else case.word


def _badness(row: tuple[Compared, Time | None]) -> tuple[int, float]:
    case, time = row
    return ORDER.index(_word(case, time)), -((time and time.ratio) or 0.0)


def _times_table(rows: Rows, most: int) -> tuple[Table, ...]:
    """The times, worst first."""
    if not rows:
        return ()
    codes = code_cells(case.case for case, _ in rows)
    measures = len({time.measure for _, time in rows if time}) > 1
    ratios = any(time and time.ratio is not None for _, time in rows)
    columns = (
        Column("BASE", right=True),
        Column("HEAD", right=True),
        *([Column("HEAD/BASE", right=True)] if ratios else []),
        Column("result"),
        *([Column("measure")] if measures else []),
        Column("path"),
    )
    found = []
    for case, time in rows[:most]:
        word = _word(case, time)
        cells = (
            Cell(_time(time.base_ns if time else None)),
            Cell(_time(time.head_ns if time else None)),
            *([Cell(ratio_text(time) if time else "-")] if ratios else []),
            Cell(word, TONES.get(word, "")),
            *([Cell(time.measure if time else "")] if measures else []),
            codes[case.case],
        )
        found.append(cells)
    return (Table(columns, tuple(found), more_rows(len(rows), most)),)


def _first_times(telling: Rows, count: int) -> tuple[Table, ...]:
    """The rows of the first screen; how many of all times there are in full."""
    (table,) = _times_table(telling, FIRST_ROWS) or (Table((), ()),)
    more = f"All {count:,} times" if count > 1 else "The time" * (count > len(telling))
    return (replace(table, more=more, is_summary=True),) if telling or count else ()


def _reasons_table(rows: Rows, floors: Sequence[Floor]) -> tuple[Table, ...]:
    """Why a word is what it is, and floors that are not those of all cases."""
    codes = code_cells(case.case for case, _ in rows)
    found: dict[tuple[str, str], list[Cell]] = defaultdict(list)
    for case, time in rows[:ALL_ROWS]:
        own = f"floor {floors_text([time.floor])}" if time and time.floor not in floors else ""
        because = (time.reason or time.note) if time else case.reason
        text = "; ".join(filter(None, (because, own)))
        if text:
            measure = f"{time.measure}: " if time and len(floors) > 1 else ""
            found[_word(case, time), measure + text].append(codes[case.case])
    titles = map(Column, ("result", "path", "because"))
    table = (
        (Cell(word), _and_alike(paths[0], len(paths)), Cell(text))
        for (word, text), paths in found.items()
    )
    return (Table(tuple(titles), tuple(table)),) if found else ()


def _and_alike(code: Cell, count: int) -> Cell:
    """The first of so many paths that share a line."""
    alike = f"+{count - 1} alike" if count > 1 else ""
    return replace(code, note=f"{code.note}  {alike}".strip())


def _time(value_ns: float | None) -> str:
    return "-" if value_ns is None else plain_time(value_ns, 3)


def _alike(changes: Iterable[CaseChange]) -> list[list[CaseChange]]:
    """Cases of one array that changed in the same way share a line."""
    found: dict[tuple[str, ...], list[CaseChange]] = defaultdict(list)
    for case, change in changes:
        key = change.direction, change.severity, _said(case, change), array_text(case.case)
        found[key].append((case, change))
    return list(found.values())


def _said(case: Compared, change: Change) -> str:
    reason = case.reasons[1] if change.what == STATUS else ""
    return f"{change}: {reason}" if reason else str(change)


def _changes_table(changes: Sequence[Sequence[CaseChange]], most: int) -> tuple[Table, ...]:
    if not changes:
        return ()
    codes = code_cells(case.case for line in changes for case, _ in line)
    titles = map(Column, ("", "changed verdict", "path"))
    word = {LOST: "unsure", OTHER: "changed", BETTER: BETTER}
    found = []
    for line in changes[:most]:
        case, change = line[0]
        tone = TONES.get(change.direction, "")
        cell = Cell(word.get(change.direction, change.severity), tone)
        code = _and_alike(codes[case.case], len(line))
        found.append((cell, Cell(_said(case, change)), code))
    return (Table(tuple(titles), tuple(found), more_rows(len(changes), most)),)


def _method(comparison: Comparison, names: tuple[str, str]) -> tuple[Facts | Lines, ...]:
    facts = {
        "BASE": _side(comparison.base, names[0]),
        "HEAD": _side(comparison.head, names[1]),
        "versions": _differences(comparison, "python", "version"),
        "also different": _differences(comparison, "machine", "measuring", "setting"),
        "allocator": _allocator(comparison.head),
        "floor": floors_text(comparison.floors),
        "processes": _processes(comparison),
        "left out in BASE": "; ".join(comparison.base.left_out),
        "left out in HEAD": "; ".join(comparison.head.left_out),
    }
    shown = Facts(tuple((name, value) for name, value in facts.items() if value))
    told = comparison.told[1:]  # the first is a mark
    return (shown, Lines(told)) if told else (shown,)


def _allocator(header: Header) -> str:
    """``steady, GLIBC_TUNABLES=…``; without the variable if it was not set."""
    tunables = tunables_of(header.environment)
    return ", ".join(
        filter(None, (header.request.settings.allocator, tunables and f"{TUNABLES}={tunables}"))
    )


def _processes(comparison: Comparison) -> str:
    """How many went into a time: ``12 a side``, ``8 to 16 a side``."""
    counts = sorted({count for _, time in comparison.times for count in time.processes if count})
    ends = dict.fromkeys((*counts[:1], *counts[-1:]))
    return f"{' to '.join(map(str, ends))} a side" if ends else ""


def _side(header: Header, name: str) -> str:
    rounds = counted(header.rounds, "round")
    stopped = "" if header.complete else "; stopped before its end"
    return f"{name}: {rounds}, {header.created}{stopped}"
