"""Sessions side by side: BASE and HEAD as document, checks and JSON, and many environments."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from pydantic_core import to_json

from dlprof.compare.comparison import (
    DONE,
    GONE,
    NEW,
    REGRESSION,
    REGRESSIONS,
    UNMEASURED,
    WORSE,
    Compared,
    Comparison,
    exit_code,
    is_one_gate,
    load_notice,
)
from dlprof.compare.environments import BY_ADDRESS, Environments, PathRow, read_cells
from dlprof.compare.environments import Cell as EnvironmentCell
from dlprof.compare.times import FASTER, INVALID, SAME, SLOWER, UNSURE, WIDE, Time
from dlprof.compare.verdicts import BETTER, LOST, OTHER, STATUS, Change
from dlprof.compare.verdicts import WORSE as WORSE_CHANGE
from dlprof.jobs.bisect import Tried
from dlprof.judge.rule import SEVERITIES
from dlprof.measuring.judged import MET, MISSED
from dlprof.report.checks import CheckOutcome, JUnitCase, expectation_checks
from dlprof.report.document import (
    Answer,
    Cell,
    Column,
    Document,
    Lines,
    Section,
    Table,
    Tone,
    facts,
)
from dlprof.report.paths import TONES as RESULT_TONES
from dlprof.runner.axes import shape_text
from dlprof.runner.quantity import plain_time
from dlprof.runner.session import SIMULATED, CaseRecord, ExpectationRecord, Header, pair_text
from dlprof.text.clean import counted, listed

SCHEMA, ENVIRONMENTS_SCHEMA = "dlprof.comparison/1", "dlprof.environments/1"
ORDER = (SLOWER, GONE, WORSE, UNSURE, WIDE, FASTER, NEW, SAME, INVALID, UNMEASURED)
TONES: dict[str, Tone] = {
    SLOWER: "worse",
    GONE: "worse",
    WORSE_CHANGE: "worse",
    FASTER: "better",
    BETTER: "better",
}
DIRECTIONS = (WORSE_CHANGE, LOST, OTHER, BETTER)
STAR = f"{BY_ADDRESS} The address of the array decides: at others it is a copy, or refused."

CaseTime = tuple[Compared, Time | None]


def comparison_document(
    comparison: Comparison, names: tuple[str, str] = ("BASE", "HEAD")
) -> Document:
    """Report a comparison; ``names`` are the files or interpreters of the sides."""
    shared, arrays = _arrays(comparison)
    codes = {case: Cell(case.code, code=True, note=array) for case, array in arrays.items()}
    times = sorted(_times(comparison), key=_badness)
    telling = [entry for entry in times if _is_telling(comparison, *entry)]
    tables, sections = [], []
    if any(case.changes for case in comparison.cases):
        tables.append(_changes_table(comparison, codes))
    if times:
        more = f"All {counted(len(comparison.times), 'time')}"
        first, whole = (_times_table(comparison, codes, part) for part in (telling, times))
        tables.append(replace(first, more=more, is_summary=True))
        sections.append(Section("All times", (whole,)))
    # How many rounds a gate took, and why it stopped, is a mark of the first screen.
    lines = [Lines(comparison.method[1:])] if comparison.method[1:] else []
    sections.append(Section("How it was measured", (_method(comparison, names), *lines)))
    sides = {} if comparison.method else {"BASE": comparison.base, "HEAD": comparison.head}
    loads = [load_notice(name, header) for name, header in sides.items()]
    several = len({*arrays.values()}) > 1
    return Document(
        title="BASE and HEAD",
        context=_differences(comparison, "version"),
        scope=_joined(shared, counted(len(comparison.cases)) if several else ""),
        notices=tuple(filter(None, [SIMULATED if comparison.base.simulated else "", *loads])),
        answers=comparison_answers(comparison),
        tables=tuple(tables),
        marks=comparison.method[:1],
        sections=tuple(sections),
    )


def as_json(comparison: Comparison, code: int) -> str:
    """Return the comparison as ``dlprof.comparison/1``; see docs/compare.md."""
    header = set(Header.model_fields)
    content = {
        "schema": SCHEMA,
        "answers": [sentence(answer) for answer in comparison_answers(comparison)],
        "exit_code": code,
        "reason": comparison.nothing or comparison.incomparable or comparison.inconclusive,
        "base": comparison.base.model_dump(by_alias=True, include=header),
        "head": comparison.head.model_dump(by_alias=True, include=header),
        "differences": comparison.differences,
        "floors": comparison.criteria.floors,
        "wide_limit": comparison.criteria.wide_limit,
        "cases": comparison.cases,
    }
    return _json(content)


def _json(content: dict[str, Any]) -> str:
    return to_json(content, indent=1, by_alias=True, inf_nan_mode="null").decode() + "\n"


# Answers


def comparison_answers(comparison: Comparison) -> tuple[Answer, ...]:
    """Return the answer first, then the reasons why it is not sure."""
    if comparison.nothing:
        return (Answer("nothing to compare", note=comparison.nothing),)
    answers = [*_regressions(comparison)]
    judges_times = bool(comparison.criteria.floors)
    may_be = f"HEAD may be {'slower' if judges_times else 'worse'}"
    why_not = (comparison.incomparable if judges_times else "") or comparison.inconclusive
    if why_not:
        unknown = may_be.replace("HEAD may be", "not known whether HEAD is")
        answers.append(Answer("incomplete" if answers else unknown, note=why_not))
    elif not answers:
        answers.append(_no_regression(comparison, may_be))
    return (*answers, *_doubts(comparison))


def sentence(answer: Answer) -> str:
    """Return an answer as one sentence."""
    details = _joined(answer.code, answer.value, answer.note)
    text = ": ".join(filter(None, (answer.label, details)))
    return f"{text[:1].upper()}{text[1:]}."


def _regressions(comparison: Comparison) -> Iterator[Answer]:
    slower = [entry for entry in comparison.times if entry[1].word == SLOWER]
    if slower:
        case, time = max(slower, key=lambda entry: abs(math.log(entry[1].ratio or 1.0)))
        measure = "" if time.measure == "ready" else time.measure
        note = _joined(_interval_text(time), measure, _more(slower))
        value = f"{_number(time.ratio or 1.0)} times as long"
        yield Answer("HEAD is slower", _name(comparison, case), value, note)
    worse = sorted(comparison.having(WORSE), key=lambda case: min(map(_rank, case.changes)))
    yield from _answers(comparison, "HEAD is worse", worse)
    yield from _answers(comparison, "gone in HEAD", comparison.having(GONE))
    missed = [record for record in comparison.head.expectations if record.verdict == MISSED]
    if missed:
        yield Answer("HEAD breaks the scenario", note=_expected(missed))


def _no_regression(comparison: Comparison, may_be: str) -> Answer:
    words = Counter(time.word for _, time in comparison.times)
    words = words or Counter(case.word for case in comparison.cases)
    counts = _joined(*(f"{words[word]:,} {word.lower()}" for word in ORDER if words[word]))
    if exit_code(comparison) != DONE:
        return Answer(may_be, note=counts)
    if not comparison.times:
        return Answer("HEAD is not worse", note="verdicts were compared, and no times")
    is_all = {*words} <= {SAME, FASTER}
    return Answer("HEAD is not slower" if is_all else "no slowdown found", note=counts)


def _doubts(comparison: Comparison) -> Iterator[Answer]:
    wide = [entry for entry in comparison.times if entry[1].word == WIDE]
    if wide:
        case, time = max(wide, key=lambda entry: (entry[1].is_likely_slower, entry[1].bound or 0.0))
        value = f"at most {_number(time.bound or 1.0)} times as long"
        label = "likely slower" if time.is_likely_slower else "wide"
        yield Answer(label, _name(comparison, case), value, _more(wide))
    unsure = sum(time.word == UNSURE for _, time in comparison.times)
    if unsure:
        gate = "dlprof gate measures both sides in turns and tells more"
        is_gate = comparison.method or is_one_gate(comparison.base, comparison.head)
        advice = "a larger --budget may tell" if is_gate else gate
        yield Answer("unsure", note=f"{unsure:,} of {len(comparison.times):,} times; {advice}")
    untimed = [case for case in comparison.having(UNSURE) if not case.times]
    yield from _answers(comparison, "unsure", untimed)
    if not (comparison.incomparable and comparison.criteria.floors):
        yield from _answers(comparison, "not compared", comparison.having(INVALID))
    unchecked = [
        record for record in comparison.head.expectations if record.verdict not in (MET, MISSED)
    ]
    if unchecked:
        yield Answer("not checked", note=_expected(unchecked))


def _answers(comparison: Comparison, label: str, cases: Sequence[Compared]) -> Iterator[Answer]:
    if cases:
        note = _joined(cases[0].reason, _more(cases))
        yield Answer(label, _name(comparison, cases[0]), note=note)


def _rank(change: Change) -> tuple[int, int]:
    """Sort by direction, worse first, then by severity."""
    return DIRECTIONS.index(change.direction), SEVERITIES.index(change.severity)


def _expected(records: Iterable[ExpectationRecord]) -> str:
    return "expected " + listed(
        f"{record.text} ({record.reason})" if record.reason else record.text for record in records
    )


def _joined(*notes: str) -> str:
    return ", ".join(note for note in notes if note)


def _more(cases: Sequence[object]) -> str:
    return f"+{len(cases) - 1:,} more" if len(cases) > 1 else ""


# Names and numbers


def _fields(case: CaseRecord) -> tuple[str, ...]:
    return pair_text(case.pair), shape_text(case.shape), case.dtype, case.layout, case.device


def _arrays(comparison: Comparison) -> tuple[str, dict[CaseRecord, str]]:
    """Return the fields that all cases share, and the other fields of each: ``64x64, float32``."""
    fields = {case.case: _fields(case.case) for case in comparison.cases}
    shared = [len(set(values)) == 1 for values in zip(*fields.values(), strict=True)]
    first = next(iter(fields.values()), ())
    texts = {
        case: _joined(*(text for text, same in zip(values, shared, strict=True) if not same))
        for case, values in fields.items()
    }
    return _joined(*(text for text, same in zip(first, shared, strict=True) if same)), texts


def _name(comparison: Comparison, case: Compared) -> str:
    """Return the code, and the array if there are several."""
    array = _arrays(comparison)[1][case.case]
    return f"{case.case.code} ({array})" if array else case.case.code


def _ratio_text(time: Time) -> str:
    """Return ``1.10 (1.08-1.13)``: HEAD over BASE, with its interval if that is known."""
    if time.ratio is None:
        return "-"
    interval = _interval_text(time)
    return f"{_number(time.ratio)} ({interval})" if interval else _number(time.ratio)


def _interval_text(time: Time) -> str:
    """Return the interval that decided on the word, or the bound of WIDE."""
    if time.word == WIDE and time.bound is not None:
        return f"at most {_number(time.bound)}"
    interval = time.interval if time.word == SAME else time.corrected
    return "-".join(map(_number, interval)) if interval else ""


def _number(ratio: float) -> str:
    """Format a ratio: two decimals, none from 10 on, two digits below 0.1."""
    if ratio >= 10:  # noqa: PLR2004 - see above
        return f"{ratio:,.0f}"
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.2g}"  # noqa: PLR2004 - see above


def _differences(comparison: Comparison, *kinds: str) -> str:
    return _joined(*(str(entry) for entry in comparison.differences if entry.kind in kinds))


# Tables of two sides


def _times(comparison: Comparison) -> Iterator[CaseTime]:
    """Yield the times, and the cases that only one side measured."""
    for case in comparison.cases:
        yield from ((case, time) for time in case.times)
        if not case.times and case.word in (GONE, NEW, INVALID, UNSURE):
            yield case, None


def _is_telling(comparison: Comparison, case: Compared, time: Time | None) -> bool:
    """Whether the first screen shows the time: not if it is the same or passes as WIDE."""
    if time is not None and time.word == WIDE:
        return not comparison.criteria.passes(time)
    return _word(case, time) not in (SAME, INVALID)


def _word(case: Compared, time: Time | None) -> str:
    return time.word if time else case.word


def _badness(entry: CaseTime) -> tuple[int, float]:
    case, time = entry
    return ORDER.index(_word(case, time)), -((time and time.ratio) or 0.0)


def _times_table(
    comparison: Comparison, codes: dict[CaseRecord, Cell], times: Sequence[CaseTime]
) -> Table:
    in_turns = bool(comparison.method) or is_one_gate(comparison.base, comparison.head)
    ratio = "ratio, median of rounds" if in_turns else "HEAD/BASE"
    rows = []
    for case, time in times:
        word = _word(case, time)
        result = word if time is None or time.measure == "ready" else f"{word} {time.measure}"
        sides = (None, None) if time is None else (time.base_ns, time.head_ns)
        times_ns = (Cell("-" if side is None else plain_time(side, 3)) for side in sides)
        cells = (Cell(_ratio_text(time) if time else "-"), Cell(result, TONES.get(word, "")))
        rows.append((*times_ns, *cells, codes[case.case]))
    right = [Column(title, right=True) for title in ("BASE", "HEAD", ratio)]
    columns = (*right, Column("result"), Column("path"))
    return Table(columns, tuple(rows))


def _changes_table(comparison: Comparison, codes: dict[CaseRecord, Cell]) -> Table:
    """Return the changed verdicts, worst first; cases that changed in the same way share a row."""
    alike: dict[tuple[str, str, str], list[CaseRecord]] = defaultdict(list)
    changes = [(change, case) for case in comparison.cases for change in case.changes]
    for change, case in sorted(changes, key=lambda item: _rank(item[0])):
        reason = case.reasons[1] if change.what == STATUS else ""
        text = f"{change}: {reason}" if reason else str(change)
        alike[change.direction, change.severity, text].append(case.case)
    words = {LOST: "unsure", OTHER: "changed", BETTER: BETTER}
    rows = []
    for (direction, severity, text), cases in alike.items():
        code = codes[cases[0]]
        note = "  ".join(filter(None, (code.note, _more(cases))))
        word = Cell(words.get(direction, severity), TONES.get(direction, ""))
        rows.append((word, Cell(text), replace(code, note=note)))
    return Table((Column(""), Column("changed verdict"), Column("path")), tuple(rows))


def _method(comparison: Comparison, names: tuple[str, str]) -> Table:
    items = {
        "versions": _differences(comparison, "version"),
        "also different": _differences(comparison, "machine", "measuring", "condition", "setting"),
    }
    headers = {"BASE": comparison.base, "HEAD": comparison.head}
    for (side, header), name in zip(headers.items(), names, strict=True):
        stopped = "" if header.complete else "; stopped before its end"
        items[side] = f"{name}: {counted(header.rounds, 'round')}, {header.created}{stopped}"
        items[f"left out in {side}"] = "; ".join(header.left_out)
    return facts((name, value) for name, value in items.items() if value)


# Checks of continuous integration


def comparison_checks(comparison: Comparison, unsure: int | None = None) -> tuple[JUnitCase, ...]:
    """Return one check for whether the sides could be compared, one for each case and expectation.

    ``unsure`` is the exit code of a doubt; with None only a failed comparison fails.
    """
    by_code: dict[int | None, CheckOutcome] = {REGRESSION: "failed", None: "skipped"}
    strict = by_code.get(unsure, "error")
    lenient: CheckOutcome = "skipped" if unsure == 0 else strict
    outcomes: dict[str, CheckOutcome] = {
        **dict.fromkeys(REGRESSIONS, "failed"),
        **dict.fromkeys((SAME, FASTER), "passed"),
        **dict.fromkeys((UNSURE, WIDE), lenient),
        INVALID: strict,
    }
    not_comparable = comparison.incomparable if comparison.times else ""
    inconclusive = comparison.inconclusive if unsure is not None else ""
    why_not = comparison.nothing or not_comparable or inconclusive
    answers = [*map(sentence, comparison_answers(comparison))]
    answers += [SIMULATED] if comparison.base.simulated else []
    whole: CheckOutcome = "error" if why_not else "passed"
    kind, text = "not compared" if why_not else "", "\n".join(answers)
    checks = [
        JUnitCase("BASE and HEAD", "can be compared", whole, kind, why_not, text),
        *expectation_checks(comparison.head, strict),
    ]
    too_wide = [case for case, _ in comparison.too_wide]
    for case in comparison.cases:
        passes = case.word == WIDE and case not in too_wide
        outcome = "passed" if passes else outcomes.get(case.word, "skipped")
        times = [f"{time.measure}: {time.word} {_ratio_text(time)}" for time in case.times]
        line = f"{case.word}: {case.reason or ', '.join(times)}"
        word = "" if outcome == "passed" else case.word
        text = "\n".join([line, *times, *map(str, case.changes)])
        suite = ", ".join(_fields(case.case))
        checks.append(JUnitCase(suite, case.case.code, outcome, word, line, text))
    return tuple(checks)


# Many environments


def environments_document(matrix: Environments) -> Document:
    """Show the paths that differ between environments first, and in full every path."""
    differ, same = matrix.rows[: matrix.different], matrix.rows[matrix.different :]
    has_star = any(BY_ADDRESS in cell.word for row in matrix.rows for cell in row.cells.values())
    names = list(dict.fromkeys(name for column in matrix.columns for name in column))
    columns = (tuple(Cell(column.get(name, "-")) for name in names) for column in matrix.columns)
    return Document(
        title=counted(len(matrix.columns), "environment"),
        scope=counted(matrix.sessions, "session"),
        answers=(_difference(matrix),),
        tables=tuple(map(_paths_table, matrix.split_pairs(differ))),
        marks=(STAR,) if has_star else (),
        sections=(
            Section("Paths that are the same", tuple(map(_paths_table, matrix.split_pairs(same)))),
            Section("Environments", (Table(tuple(map(Column, names)), tuple(columns)),)),
        ),
    )


def _difference(matrix: Environments) -> Answer:
    cases = counted(len(matrix.rows), "case")
    if not matrix.different:
        return Answer("no difference", note=f"in {cases}")
    return Answer("differences", note=f"{matrix.different:,} of {cases}")


def _paths_table(matrix: Environments) -> Table:
    """Return the rows of one pair. Arrays of a path with the same results share a row."""
    places = [*range(len(matrix.columns))]
    alike: dict[tuple[Any, ...], list[PathRow]] = {}
    for row in matrix.rows:
        words = tuple((place, cell.word, cell.rules) for place, cell in row.cells.items())
        alike.setdefault((row.case.code, words), []).append(row)
    several = len({_array(row) for row in matrix.rows}) > 1
    heads = (matrix.label(place).replace(", ", " ") for place in places)
    rows = []
    for first, *peers in alike.values():
        note = (
            _joined(_array(first), f"and {len(peers)} equivalent" if peers else "")
            if several
            else ""
        )
        cells = (_result_cell(first.cells.get(place)) for place in places)
        rows.append((Cell(first.case.code, code=True, note=note), *cells))
    return Table((Column(pair_text(matrix.rows[0].case.pair)), *map(Column, heads)), tuple(rows))


def _array(row: PathRow) -> str:
    layout = "" if row.case.layout == "C" else f" {row.case.layout}"
    return f"{row.case.dtype} {shape_text(row.case.shape)}{layout}"


def _result_cell(cell: EnvironmentCell | None) -> Cell:
    if cell is None:
        return Cell("-", "dim")
    time = "" if cell.median_ns is None else plain_time(cell.median_ns)
    is_bad = cell.rules or cell.word in ("wrong", "crash", "hangs")
    tone: Tone = "bad" if is_bad else RESULT_TONES.get(cell.word.rstrip(BY_ADDRESS), "")
    return Cell(time, tone, note=" ".join((cell.word, *cell.rules)))


def environments_json(matrix: Environments) -> str:
    """Return ``dlprof.environments/1``: the columns, and the rows with their cells."""
    rows = [
        {
            "case": row.case,
            "differs": index < matrix.different,
            "cells": {place: cell._asdict() for place, cell in sorted(row.cells.items())},
        }
        for index, row in enumerate(matrix.rows)
    ]
    head = {"schema": ENVIRONMENTS_SCHEMA, "sessions": matrix.sessions, "axes": matrix.axes}
    return _json({**head, "columns": matrix.columns, "rows": rows})


def bisect_document(
    trials: Sequence[Tried], package: str, statement: str, pair: tuple[str, str]
) -> Document:
    """Show the releases that were tried, and the first that gives another result."""
    words = {True: Cell("good"), False: Cell("changed", "worse"), None: Cell("not known", "dim")}
    first_bad = next(trial.version for trial in trials if trial.is_good is False)
    rows = []
    for trial in trials:
        cases = read_cells(trial.session) if trial.session is not None else ()
        result = next((_result_cell(cell) for _, cell in cases), Cell(trial.reason or "?"))
        rows.append((Cell(f"{package} {trial.version}"), result, words[trial.is_good]))
    return Document(
        title=pair_text(pair),
        scope=statement,
        context=f"{counted(len(trials), 'release')} tried",
        answers=(Answer("first changed in", f"{package} {first_bad}"),),
        tables=(Table((Column("release"), Column("result"), Column("")), tuple(rows)),),
    )
