"""A comparison of two sessions as document, checks and JSON: is HEAD slower than BASE, or worse?"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

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
    load_notice,
)
from dlprof.compare.times import FASTER, INVALID, SAME, SLOWER, UNSURE, WIDE, Time
from dlprof.compare.verdicts import BETTER, LOST, OTHER, STATUS, Change
from dlprof.compare.verdicts import WORSE as WORSE_CHANGE
from dlprof.judge.rule import SEVERITIES
from dlprof.measuring.judged import MET, MISSED
from dlprof.report.checks import Check, Verdict, expectation_checks
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
from dlprof.runner.axes import shape_text
from dlprof.runner.quantity import plain_time
from dlprof.runner.session import SIMULATED, CaseRecord, ExpectationRecord, Header, pair_text
from dlprof.text.clean import counted, listed

SCHEMA = "dlprof.comparison/1"
ORDER = (SLOWER, GONE, WORSE, UNSURE, WIDE, FASTER, NEW, SAME, INVALID, UNMEASURED)
TONES: dict[str, Tone] = {
    SLOWER: "worse",
    GONE: "worse",
    WORSE_CHANGE: "worse",
    FASTER: "better",
    BETTER: "better",
}
DIRECTIONS = (WORSE_CHANGE, LOST, OTHER, BETTER)

CaseTime = tuple[Compared, Time | None]


def comparison_document(
    comparison: Comparison, names: tuple[str, str] = ("BASE", "HEAD")
) -> Document:
    """Report a comparison; ``names`` are the files or interpreters of the sides."""
    shared, arrays = _arrays(comparison)
    codes = {case: Cell(case.code, code=True, note=array) for case, array in arrays.items()}
    times = sorted(_times(comparison), key=_badness)
    telling = [one for one in times if _is_telling(comparison, *one)]
    tables, sections = [], []
    if any(case.changes for case in comparison.cases):
        tables.append(_changes_table(comparison, codes))
    if times:
        more = f"All {counted(len(comparison.times), 'time')}"
        tables.append(replace(_times_table(telling, codes), more=more, is_summary=True))
        sections.append(Section("All times", (_times_table(times, codes, has_reasons=True),)))
    # How many rounds a gate took, and why it stopped, is a mark of the first screen.
    lines = [Lines(comparison.method[1:])] if comparison.method[1:] else []
    sections.append(Section("How it was measured", (_method(comparison, names), *lines)))
    sides = {"BASE": comparison.base, "HEAD": comparison.head}
    loads = [load_notice(name, header) for name, header in sides.items()]
    several = len({*arrays.values()}) > 1
    return Document(
        title="BASE and HEAD",
        context=_context(comparison, names),
        scope=_joined(shared, counted(len(comparison.cases)) if several else ""),
        notices=(*_simulated(comparison), *filter(None, [] if comparison.method else loads)),
        answers=answers_of(comparison),
        tables=tuple(tables),
        marks=comparison.method[:1],
        sections=tuple(sections),
    )


def _simulated(comparison: Comparison) -> list[str]:
    return [SIMULATED] if comparison.base.simulated else []


def as_json(comparison: Comparison, code: int) -> str:
    """Return the comparison as ``dlprof.comparison/1``; see docs/compare.md."""
    header = set(Header.model_fields)
    content = {
        "schema": SCHEMA,
        "answers": [sentence(answer) for answer in answers_of(comparison)],
        "exit_code": code,
        "reason": comparison.nothing or comparison.incomparable or comparison.inconclusive,
        "base": comparison.base.model_dump(by_alias=True, include=header),
        "head": comparison.head.model_dump(by_alias=True, include=header),
        "differences": comparison.differences,
        "floors": comparison.criteria.floors,
        "wide_limit": comparison.criteria.wide_limit,
        "cases": comparison.cases,
    }
    return to_json(content, indent=1, by_alias=True, inf_nan_mode="null").decode() + "\n"


# Answers


def answers_of(comparison: Comparison) -> tuple[Answer, ...]:
    """Return the answer first, then what keeps it from being sure."""
    if comparison.nothing:
        return (Answer("nothing to compare", "", note=comparison.nothing),)
    found = [*_regressions(comparison)]
    judges_times = bool(comparison.criteria.floors)
    may_be = f"HEAD may be {'slower' if judges_times else 'worse'}"
    why_not = (comparison.incomparable if judges_times else "") or comparison.inconclusive
    if why_not:
        found.append(Answer("incomplete" if found else may_be, "", note=why_not))
    elif not found:
        found.append(_no_regression(comparison, may_be))
    return (*found, *_doubts(comparison))


def sentence(answer: Answer) -> str:
    """Return an answer as one sentence."""
    said = ": ".join(filter(None, (answer.label, _joined(answer.code, answer.value, answer.note))))
    return f"{said[:1].upper()}{said[1:]}."


def _regressions(comparison: Comparison) -> Iterator[Answer]:
    slower = [one for one in comparison.times if one[1].word == SLOWER]
    if slower:
        yield _of_times(comparison, "HEAD is slower", slower)
    worse = sorted(comparison.having(WORSE), key=lambda case: min(map(_rank, case.changes)))
    yield from _of_cases(comparison, "HEAD is worse", worse)
    yield from _of_cases(comparison, "gone in HEAD", comparison.having(GONE))
    missed = [one for one in comparison.head.expectations if one.verdict == MISSED]
    if missed:
        yield Answer("HEAD breaks the scenario", "", note=_expected(missed))


def _no_regression(comparison: Comparison, may_be: str) -> Answer:
    words = Counter(time.word for _, time in comparison.times)
    words = words or Counter(case.word for case in comparison.cases)
    told = _joined(*(f"{words[word]:,} {word.lower()}" for word in ORDER if words[word]))
    if exit_code(comparison) != DONE:
        return Answer(may_be, "", note=told)
    if not comparison.times:
        return Answer("HEAD is not worse", "", note="verdicts were compared, and no times")
    is_all = {*words} <= {SAME, FASTER}
    return Answer("HEAD is not slower" if is_all else "no slowdown found", "", note=told)


def _doubts(comparison: Comparison) -> Iterator[Answer]:
    wide = [one for one in comparison.times if one[1].word == WIDE]
    if wide:
        case, time = max(wide, key=lambda one: (one[1].is_likely_slower, one[1].bound or 0.0))
        value = f"at most {_number(time.bound or 1.0)} times as long"
        label = "likely slower" if time.is_likely_slower else "wide"
        yield Answer(label, _name(comparison, case), value, _more(wide))
    unsure = [time for _, time in comparison.times if time.word == UNSURE]
    if unsure:
        advice = "a larger --budget may tell"
        if not comparison.method:
            advice = "dlprof gate measures both sides in turns and tells more"
        note = f"{len(unsure):,} of {len(comparison.times):,} times; {advice}"
        yield Answer("unsure", "", note=note)
    untimed = [case for case in comparison.having(UNSURE) if not case.times]
    yield from _of_cases(comparison, "unsure", untimed)
    if not (comparison.incomparable and comparison.criteria.floors):
        yield from _of_cases(comparison, "not compared", comparison.having(INVALID))
    unchecked = [one for one in comparison.head.expectations if one.verdict not in (MET, MISSED)]
    if unchecked:
        yield Answer("not checked", "", note=_expected(unchecked))


def _of_times(comparison: Comparison, label: str, found: Sequence[tuple[Compared, Time]]) -> Answer:
    """Return the time that changed most, and how many more there are."""
    case, time = max(found, key=lambda one: abs(math.log(one[1].ratio or 1.0)))
    note = _joined(
        _interval_text(time), "" if time.measure == "ready" else time.measure, _more(found)
    )
    return Answer(
        label, _name(comparison, case), f"{_number(time.ratio or 1.0)} times as long", note
    )


def _of_cases(comparison: Comparison, label: str, cases: Sequence[Compared]) -> Iterator[Answer]:
    if cases:
        note = _joined(cases[0].reason, _more(cases))
        yield Answer(label, _name(comparison, cases[0]), note=note)


def _rank(change: Change) -> tuple[int, int]:
    """Sort what is worse first, and of that the most severe."""
    return DIRECTIONS.index(change.direction), SEVERITIES.index(change.severity)


def _expected(records: Iterable[ExpectationRecord]) -> str:
    return "expected " + listed(
        f"{one.text} ({one.reason})" if one.reason else one.text for one in records
    )


def _joined(*notes: str) -> str:
    return ", ".join(note for note in notes if note)


def _more(cases: Sequence[object]) -> str:
    return f"+{len(cases) - 1:,} more" if len(cases) > 1 else ""


# Names and numbers


def _fields(case: CaseRecord) -> tuple[str, ...]:
    return pair_text(case.pair), shape_text(case.shape), case.dtype, case.layout, case.device


def _arrays(comparison: Comparison) -> tuple[str, dict[CaseRecord, str]]:
    """Return what all pairs and arrays share, and of each the rest: ``64x64, float32``."""
    fields = {one.case: _fields(one.case) for one in comparison.cases}
    shared = [len(set(values)) == 1 for values in zip(*fields.values(), strict=True)]
    first = next(iter(fields.values()), ())
    rest = {
        case: ", ".join(text for text, same in zip(found, shared, strict=True) if not same)
        for case, found in fields.items()
    }
    return ", ".join(text for text, same in zip(first, shared, strict=True) if same), rest


def _name(comparison: Comparison, case: Compared) -> str:
    """Return the code, with what tells its array from the others."""
    array = _arrays(comparison)[1][case.case]
    return f"{case.case.code} ({array})" if array else case.case.code


def _ratio_text(time: Time) -> str:
    """Return ``1.10 (1.08-1.13)``: HEAD over BASE, with its interval if that is known."""
    if time.ratio is None:
        return "-"
    interval = _interval_text(time)
    return f"{_number(time.ratio)} ({interval})" if interval else _number(time.ratio)


def _interval_text(time: Time) -> str:
    """Return the interval that decided on the word; of WIDE its bound."""
    if time.word == WIDE and time.bound is not None:
        return f"at most {_number(time.bound)}"
    interval = time.interval if time.word == SAME else time.corrected
    return "-".join(map(_number, interval)) if interval else ""


def _number(ratio: float) -> str:
    """Format a ratio: two decimals, none from 10 on, two digits below 0.1."""
    if ratio >= 10:  # noqa: PLR2004 - as said
        return f"{ratio:,.0f}"
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.2g}"  # noqa: PLR2004 - as said


def _context(comparison: Comparison, names: tuple[str, str]) -> str:
    """Return how the versions of the sides differ, or that the sides are the same file."""
    same = "BASE and HEAD are the same file" if len({*names}) == 1 else ""
    return _differences(comparison, "version") or same


def _differences(comparison: Comparison, *kinds: str) -> str:
    return ", ".join(str(one) for one in comparison.differences if one.kind in kinds)


# Tables


def _times(comparison: Comparison) -> Iterator[CaseTime]:
    """Yield the times, and the cases that have none although one side measured them."""
    for case in comparison.cases:
        yield from ((case, time) for time in case.times)
        if not case.times and case.word in (GONE, NEW, INVALID, UNSURE):
            yield case, None


def _is_telling(comparison: Comparison, case: Compared, time: Time | None) -> bool:
    """Whether the first screen has its row: what is the same, or passes as WIDE, is counted."""
    if time is not None and time.word == WIDE:
        return not comparison.criteria.passes(time)
    return _word(case, time) not in (SAME, INVALID)


def _word(case: Compared, time: Time | None) -> str:
    return time.word if time else case.word


def _badness(one: CaseTime) -> tuple[int, float]:
    case, time = one
    return ORDER.index(_word(case, time)), -((time and time.ratio) or 0.0)


def _times_table(
    times: Sequence[CaseTime], codes: dict[CaseRecord, Cell], has_reasons: bool = False
) -> Table:
    """Return the times in their order; ``has_reasons`` adds why each word is what it is."""
    rows = []
    for case, time in times:
        word = _word(case, time)
        result = word if time is None or time.measure == "ready" else f"{word} {time.measure}"
        sides = (None, None) if time is None else (time.base_ns, time.head_ns)
        cells = (
            *(Cell("-" if side is None else plain_time(side, 3)) for side in sides),
            Cell(_ratio_text(time) if time else "-"),
            Cell(result, TONES.get(word, "")),
            codes[case.case],
        )
        reason = time.reason if time else case.reason
        rows.append((*cells, Cell(reason)) if has_reasons else cells)
    right = [Column(title, right=True) for title in ("BASE", "HEAD", "HEAD/BASE")]
    columns = (*right, Column("result"), Column("path"), *[Column("why")] * has_reasons)
    return Table(columns, tuple(rows))


def _changes_table(comparison: Comparison, codes: dict[CaseRecord, Cell]) -> Table:
    """Return the changed verdicts, worst first; cases that changed in the same way share a row."""
    alike: dict[tuple[str, str, str], list[CaseRecord]] = defaultdict(list)
    changes = [(change, case) for case in comparison.cases for change in case.changes]
    for change, case in sorted(changes, key=lambda one: _rank(one[0])):
        reason = case.reasons[1] if change.what == STATUS else ""
        said = f"{change}: {reason}" if reason else str(change)
        alike[change.direction, change.severity, said].append(case.case)
    words = {LOST: "unsure", OTHER: "changed", BETTER: BETTER}
    rows = []
    for (direction, severity, said), cases in alike.items():
        code = codes[cases[0]]
        note = "  ".join(filter(None, (code.note, _more(cases))))
        word = Cell(words.get(direction, severity), TONES.get(direction, ""))
        rows.append((word, Cell(said), replace(code, note=note)))
    return Table((Column(""), Column("changed verdict"), Column("path")), tuple(rows))


def _method(comparison: Comparison, names: tuple[str, str]) -> Table:
    items = {
        "versions": _differences(comparison, "version"),
        "also different": _differences(comparison, "machine", "measuring", "setting"),
    }
    headers = {"BASE": comparison.base, "HEAD": comparison.head}
    for (side, header), name in zip(headers.items(), names, strict=True):
        stopped = "" if header.complete else "; stopped before its end"
        items[side] = f"{name}: {counted(header.rounds, 'round')}, {header.created}{stopped}"
        items[f"left out in {side}"] = "; ".join(header.left_out)
    return facts((name, value) for name, value in items.items() if value)


# Checks of continuous integration


def checks_of(comparison: Comparison, unsure: int | None = None) -> tuple[Check, ...]:
    """Return one check for whether the sides could be compared, one for each case and expectation.

    ``unsure`` is the exit code of what is unsure; None if nothing but a failed comparison fails.
    """
    strict: Verdict = "failed" if unsure == REGRESSION else "skipped" if unsure is None else "error"
    lenient: Verdict = "skipped" if unsure == 0 else strict
    outcomes: dict[str, Verdict] = {
        **dict.fromkeys(REGRESSIONS, "failed"),
        **dict.fromkeys((SAME, FASTER), "passed"),
        **dict.fromkeys((UNSURE, WIDE), lenient),
        INVALID: strict,
    }
    too_wide = [case for case, _ in comparison.too_wide]
    found = [_whole(comparison, unsure), *expectation_checks(comparison.head, strict)]
    for case in comparison.cases:
        passes = case.word == WIDE and case not in too_wide
        outcome = "passed" if passes else outcomes.get(case.word, "skipped")
        times = [f"{time.measure}: {time.word} {_ratio_text(time)}" for time in case.times]
        said = f"{case.word}: {case.reason or ', '.join(times)}"
        word = "" if outcome == "passed" else case.word
        text = "\n".join([said, *times, *map(str, case.changes)])
        suite = ", ".join(_fields(case.case))
        found.append(Check(suite, case.case.code, outcome, word, said, text))
    return tuple(found)


def _whole(comparison: Comparison, unsure: int | None) -> Check:
    not_comparable = comparison.incomparable if comparison.times else ""
    inconclusive = comparison.inconclusive if unsure is not None else ""
    reason = comparison.nothing or not_comparable or inconclusive
    told = [*map(sentence, answers_of(comparison)), *_simulated(comparison)]
    outcome: Verdict = "error" if reason else "passed"
    kind = "not compared" if reason else ""
    return Check("BASE and HEAD", "can be compared", outcome, kind, reason, "\n".join(told).strip())
