"""A comparison of two sessions as a document: the answer, what changed, how it was measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dlprof.analysis.quantity import plain_time
from dlprof.analysis.slower import FASTER, SAME, SLOWER, UNSURE
from dlprof.compare.comparison import GONE, INVALID, NEW, Compared, Comparison
from dlprof.compare.outcome import Outcome
from dlprof.compare.times import Time
from dlprof.compare.verdicts import BETTER, LOST, OTHER, WORSE, Change
from dlprof.reports.comparison_answers import (
    answers_of,
    array_text,
    floor_text,
    floors_text,
    has_own_floor,
    is_by_verdicts,
    is_excused,
    left_out_texts,
    ratio_text,
)
from dlprof.reports.document import (
    Answer,
    Cell,
    Column,
    Document,
    Facts,
    Lines,
    Section,
    Table,
    Tone,
)
from dlprof.session.model import Header
from dlprof.text.clean import first_line

FIRST_ROWS, ALL_ROWS = 12, 1000
"""Rows of a table on the first screen, and in full; the JSON has them all."""
ORDER = (SLOWER, GONE, UNSURE, INVALID, FASTER, NEW, SAME)
DIRECTIONS = (WORSE, LOST, OTHER, BETTER)
TONES: dict[str, Tone] = {
    SLOWER: "worse",
    GONE: "worse",
    WORSE: "worse",
    FASTER: "better",
    BETTER: "better",
}
EXCUSED = "*"

Rows = Sequence[tuple[Compared, Time]]


@dataclass(frozen=True)
class Names:
    """What the two sides are called: as a rule the names of their files."""

    base: str = "BASE"
    head: str = "HEAD"


def comparison_document(
    comparison: Comparison, outcome: Outcome, names: Names = Names()
) -> Document:
    """What a report of a comparison says."""
    # A gate that was asked for verdicts only measures one round, whose times say nothing.
    timed = comparison.cases if outcome.times or not comparison.measured_here else ()
    rows = sorted(((case, time) for case in timed for time in case.times), key=_badness)
    changes = sorted(
        ((case, change) for case in comparison.cases for change in case.changes),
        key=lambda one: (DIRECTIONS.index(one[1].direction), one[1].severity),
    )
    excused = any(is_excused(comparison, time) for _, time in rows)
    return Document(
        title=_title(comparison.cases),
        context=_differences(comparison, "python", "version") or "the same versions on both sides",
        notices=tuple(_notices(comparison)),
        answers=answers_of(comparison, outcome),
        tables=(
            *_times_table(comparison, rows, FIRST_ROWS),
            *_changes_table(changes, FIRST_ROWS),
        ),
        marks=(
            *((f"{EXCUSED} slower than the floor of all cases",) if excused else ()),
            *comparison.told[:1],  # how many rounds a gate took, and why it stopped
        ),
        sections=(
            *_section("All times", _times_table(comparison, rows, ALL_ROWS, full=True)),
            *_section(
                "All changes of verdicts",
                _changes_table(changes, ALL_ROWS) if len(changes) > FIRST_ROWS else (),
            ),
            *_section("How it was measured", _method(comparison, names)),
        ),
    )


def refusal_document(reason: str) -> Document:
    """What is said of a gate that measured nothing."""
    return Document("BASE and HEAD", answers=(Answer("not compared", "", note=reason),))


def _title(cases: Sequence[Compared]) -> str:
    arrays = {array_text(case.case) for case in cases}
    what = arrays.pop() if len(arrays) == 1 else f"{len(cases):,} cases of {len(arrays)} arrays"
    return f"BASE and HEAD    {what}"


def _differences(comparison: Comparison, *kinds: str) -> str:
    return ", ".join(str(one) for one in comparison.differences if one.kind in kinds)


def _notices(comparison: Comparison) -> list[str]:
    invalid = comparison.invalid
    found = [f"times cannot be compared: {invalid}" if invalid else "", comparison.load or ""]
    return [notice for notice in found if notice]


def _badness(row: tuple[Compared, Time]) -> tuple[int, float]:
    _, time = row
    return ORDER.index(time.word), -(time.ratio or 0.0)


def _section(heading: str, blocks: Iterable[Table | Facts | Lines]) -> tuple[Section, ...]:
    found = tuple(blocks)
    return (Section(heading, found),) if found else ()


def _more(count: int, shown: int) -> str:
    return f"… {count - shown:,} more" if count > shown else ""


def _times_table(
    comparison: Comparison, rows: Rows, most: int, full: bool = False
) -> tuple[Table, ...]:
    """The times, worst first; with ``full`` also why a word is what it is."""
    several = len({array_text(case.case) for case, _ in rows}) > 1
    measures = len({time.measure for _, time in rows}) > 1
    floors = full and any(has_own_floor(comparison, time) for _, time in rows)
    columns = [
        Column("BASE", right=True),
        Column("HEAD", right=True),
        Column("HEAD/BASE (interval)", right=True),
        Column("result"),
        *([Column("measure")] if measures else []),
        Column("path"),
        *([Column("array")] if several else []),
        *([Column("floor")] if floors else []),
        *([Column("processes", right=True), Column("because")] if full else []),
    ]
    found = []
    for case, time in rows[:most]:
        mark = f" {EXCUSED}" if is_excused(comparison, time) else ""
        base, head = time.processes
        cells = [
            Cell(_time(time.base_ns)),
            Cell(_time(time.head_ns)),
            Cell(ratio_text(time)),
            Cell(time.word + mark, TONES.get(time.word, "")),
            *([Cell(time.measure)] if measures else []),
            Cell(case.case.code, code=True),
            *([Cell(array_text(case.case), "dim")] if several else []),
        ]
        cells += [Cell(floor_text(time.floor))] if floors else []
        cells += [Cell(f"{base} + {head}"), Cell(time.reason or time.note)] if full else []
        found.append(tuple(cells))
    return (Table(tuple(columns), tuple(found), _more(len(rows), most)),) if found else ()


def _time(value_ns: float | None) -> str:
    return "-" if value_ns is None else plain_time(value_ns, 3)


def _changes_table(changes: Sequence[tuple[Compared, Change]], most: int) -> tuple[Table, ...]:
    several = len({array_text(case.case) for case, _ in changes}) > 1
    titles = ("", "change of verdict", "path", *(["array"] if several else []))
    found = []
    for case, change in changes[:most]:
        word = {WORSE: change.severity, LOST: "unsure", OTHER: "changed"}
        reason = case.reasons[1] if change.what == "status" else None
        told = f"{change}: {first_line(reason)}" if reason else str(change)
        array = [Cell(array_text(case.case), "dim")] if several else []
        cell = Cell(word.get(change.direction, BETTER), TONES.get(change.direction, ""))
        found.append((cell, Cell(told), Cell(case.case.code, code=True), *array))
    table = Table(tuple(map(Column, titles)), tuple(found), _more(len(changes), most))
    return (table,) if found else ()


def _method(comparison: Comparison, names: Names) -> tuple[Facts | Lines, ...]:
    untimed = sum(not (case.times or is_by_verdicts(case)) for case in comparison.cases)
    facts = {
        "BASE": _side(comparison.base, names.base),
        "HEAD": _side(comparison.head, names.head),
        "versions": _differences(comparison, "python", "version"),
        "also different": _differences(comparison, "machine", "measuring", "setting"),
        "floor": floors_text(comparison.floors),
        "without a time": f"{untimed:,} cases, on either side" if untimed else "",
    }
    lines = Lines((*comparison.told[1:], *left_out_texts(comparison)))
    shown = Facts(tuple((name, value) for name, value in facts.items() if value))
    return (shown, lines) if lines.lines else (shown,)


def _side(header: Header, name: str) -> str:
    rounds = f"{header.rounds} round{'s' if header.rounds != 1 else ''}"
    stopped = "" if header.complete else "; stopped before its end"
    return f"{name}: {rounds}, {header.created}{stopped}"
