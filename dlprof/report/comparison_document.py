"""A comparison of two sessions as a document and as checks: is HEAD slower than BASE, or worse?"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from dlprof.compare.comparison import (
    BROKEN,
    DONE,
    GONE,
    NEW,
    NOT_KNOWN,
    REGRESSION,
    REGRESSIONS,
    UNMEASURED,
    WORSE,
    Compared,
    Comparison,
    exit_code,
)
from dlprof.compare.criteria import Floor
from dlprof.compare.differences import load_notice
from dlprof.compare.times import FASTER, INVALID, LIMIT, SAME, SLOWER, UNSURE, WIDE, Time
from dlprof.compare.verdicts import BETTER, LOST, OTHER, STATUS, Change
from dlprof.compare.verdicts import WORSE as WORSE_CHANGE
from dlprof.judge.rule import SEVERITIES
from dlprof.measuring.expectation import MET, MISSED
from dlprof.report.checks import ERROR, FAILED, PASSED, SKIPPED, expectation_checks, lines_of
from dlprof.report.document import (
    Answer,
    Cell,
    Check,
    Column,
    Document,
    Facts,
    Lines,
    Section,
    Table,
    Tone,
    Verdict,
    more_rows,
)
from dlprof.report.method import simulated_notice
from dlprof.runner.axes import shape_text
from dlprof.runner.quantity import plain_time
from dlprof.runner.session import CaseRecord, ExpectationRecord, Header, pair_text
from dlprof.text.clean import counted, listed

FIRST_ROWS, ALL_ROWS = 12, 1000
"""Rows of a table on the first screen, and in full. The JSON has all."""
ORDER = (SLOWER, GONE, WORSE, UNSURE, WIDE, FASTER, NEW, SAME, INVALID, UNMEASURED)
TONES: dict[str, Tone] = {
    SLOWER: "worse",
    GONE: "worse",
    WORSE_CHANGE: "worse",
    FASTER: "better",
    BETTER: "better",
}
DIRECTIONS = (WORSE_CHANGE, LOST, OTHER, BETTER)
WHOLE, COMPARABLE = "BASE and HEAD", "can be compared"
FINE = 0.1
"""Narrower intervals are shown to a tenth of a percent."""
LARGE, SMALL = 10.0, 0.1

CaseChange = tuple[Compared, Change]
Rows = Sequence[tuple[Compared, Time | None]]


def comparison_document(
    comparison: Comparison, names: tuple[str, str] = ("BASE", "HEAD")
) -> Document:
    """Report a comparison; ``names`` are the files or interpreters of the sides."""
    rows = sorted(_rows(comparison), key=_badness)
    telling = [row for row in rows if _is_telling(comparison, *row)]
    changes = sorted(
        ((case, change) for case in comparison.cases for change in case.changes),
        key=lambda one: _rank(one[1]),
    )
    short_changes = _changes_table(_alike(changes), FIRST_ROWS)
    all_changes = _changes_table([[one] for one in changes], ALL_ROWS)
    sections: tuple[tuple[str, Sequence[Table | Facts | Lines]], ...] = (
        ("All times", (*_times_table(rows, ALL_ROWS), *_reasons_table(rows))),
        ("All changed verdicts", all_changes if all_changes != short_changes else ()),
        ("How it was measured", _method(comparison, names)),
    )
    sides = {"BASE": comparison.base, "HEAD": comparison.head}
    loads = [load_notice(name, header) for name, header in sides.items()]
    notices = (
        simulated_notice(comparison.base) or simulated_notice(comparison.head),
        *(() if comparison.told else loads),
    )
    return Document(
        title="BASE and HEAD",
        context=_context(comparison, names),
        scope=_scope(comparison.cases),
        notices=tuple(filter(None, notices)),
        answers=answers_of(comparison),
        tables=(*short_changes, *_first_times(telling, len(comparison.times))),
        marks=comparison.told[:1],  # how many rounds a gate took, and why it stopped
        sections=tuple(Section(heading, tuple(found)) for heading, found in sections if found),
    )


def refusal_document(reason: str) -> Document:
    """Report a gate that measured nothing."""
    return Document("BASE and HEAD", answers=(Answer("not compared", "", note=reason),))


# Answers


def answers_of(comparison: Comparison) -> tuple[Answer, ...]:
    """Return the answer first, then what keeps it from being sure, and what got better."""
    if comparison.nothing:
        return (Answer("nothing to compare", "", note=comparison.nothing),)
    found = [*_regressions(comparison)]
    judges_times = comparison.settings.criteria.times
    may_be = f"HEAD may be {'slower' if judges_times else 'worse'}"
    why_not = (comparison.incomparable if judges_times else "") or comparison.inconclusive
    if why_not:
        found.append(Answer("incomplete" if found else may_be, "", note=why_not))
    elif not found:
        found.append(_no_regression(comparison, may_be))
    same = _same(comparison)
    rest = (Answer("times", "", note=same),) if same and same != found[0].note else ()
    return (*found, *_doubts(comparison), *_gains(comparison), *rest)


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
    if exit_code(comparison) != DONE:
        likely = [time for _, time in comparison.too_wide if time.is_likely_slower]
        counts = {
            "unsure": len(comparison.having(UNSURE)),
            "likely slower": len(likely),
            "too wide": len(comparison.too_wide) - len(likely),
            "not compared": len(comparison.having(INVALID)),
        }
        why = _joined(*(f"{count:,} {word}" for word, count in counts.items() if count))
        return Answer(may_be, "", note=why or "an expectation was not checked")
    if not comparison.times:
        both = sum(bool(case.looked_at) for case in comparison.cases)
        note = f"the verdicts of {counted(both)} were compared, and no times"
        return Answer("HEAD is not worse", "", note=note)
    is_all = all(time.word in {SAME, FASTER} for _, time in comparison.times)
    label = "HEAD is not slower" if is_all else "no slowdown found"
    return Answer(label, "", note=_same(comparison))


def _same(comparison: Comparison) -> str:
    """Return ``34 same (±1.8 % at worst)``: how far the intervals reach; empty for none."""
    same = [time for _, time in comparison.times if time.word == SAME]
    ends = [abs(end - 1) for time in same if time.interval for end in time.interval]
    worst = f" (±{_percent(max(ends))} at worst)" if ends else ""
    return f"{len(same):,} same{worst}" if same else ""


def _doubts(comparison: Comparison) -> Iterator[Answer]:
    yield from _wide(comparison)
    unsure = [time for _, time in comparison.times if time.word == UNSURE]
    if unsure:
        advice = "a larger --budget may tell"
        if not comparison.told:
            advice = "dlprof gate measures both sides in turns and tells more"
        note = f"{len(unsure):,} of {len(comparison.times):,} times; {advice}"
        yield Answer("unsure", "", note=note)
    untimed = [case for case in comparison.having(UNSURE) if not case.times]
    yield from _of_cases(comparison, "unsure", untimed)
    reasons = Counter(case.reason for case in comparison.having(INVALID))
    if reasons and not (comparison.incomparable and comparison.settings.criteria.times):
        why, _ = reasons.most_common(1)[0]
        others = f", and {counted(len(reasons) - 1, 'more reason')}" if len(reasons) > 1 else ""
        yield Answer("not compared", "", note=f"{counted(reasons.total())}: {why}{others}")
    unchecked = [one for one in comparison.head.expectations if one.verdict not in (MET, MISSED)]
    if unchecked:
        yield Answer("not checked", "", note=_expected(unchecked))


def _wide(comparison: Comparison) -> Iterator[Answer]:
    """Yield the largest bound of what stays open; what does not pass has a line of its own."""
    known = [one for one in comparison.times if one[1].word == WIDE]
    likely = [one for one in known if one[1].is_likely_slower]
    too_wide = [one for one in comparison.too_wide if one not in likely]
    for label, found in (
        ("likely slower", likely),
        ("wide", [one for one in known if one not in likely + too_wide]),
        ("too wide", too_wide),
    ):
        if found:
            case, time = max(found, key=lambda one: one[1].bound or 0.0)
            slower = (time.bound or 1.0) - 1
            value = f"at most {_percent(slower)} slower" if slower > 0 else "not slower"
            yield Answer(label, _name(comparison, case), value, _more(found))


def _gains(comparison: Comparison) -> Iterator[Answer]:
    faster = [one for one in comparison.times if one[1].word == FASTER]
    if faster:
        yield _of_times(comparison, "faster", faster)
    better = [
        (case, change)
        for case in comparison.cases
        for change in case.changes
        if change.direction == BETTER
    ]
    if better:
        note = _joined(str(better[0][1]), _more(better))
        yield Answer("better", _name(comparison, better[0][0]), note=note)


def _of_times(comparison: Comparison, label: str, found: Sequence[tuple[Compared, Time]]) -> Answer:
    """Return the time that changed most, and how many more there are."""
    case, time = max(found, key=lambda one: abs(math.log(one[1].ratio or 1.0)))
    ratio, interval = _ratio_and_interval(time)
    note = _joined(interval, "" if time.measure == "ready" else time.measure, _more(found))
    return Answer(label, _name(comparison, case), f"{ratio} times as long", note)


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


def _percent(share: float) -> str:
    """Return ``1.8 %``, ``18 %``."""
    return f"{100 * share:.2g} %" if share < 1 else f"{100 * share:,.0f} %"


# Names and numbers


def array_text(case: CaseRecord) -> str:
    """Return the pair and the array: ``torch → numpy, 4096x4096, float32, C, cpu``."""
    return ", ".join(_fields(case))


def _array_texts(cases: Iterable[CaseRecord]) -> tuple[str, dict[CaseRecord, str]]:
    """Return what all pairs and arrays share, and of each the rest: ``64x64, float32``."""
    fields = {case: _fields(case) for case in cases}
    shared = [len(set(values)) == 1 for values in zip(*fields.values(), strict=True)]
    first = next(iter(fields.values()), ())
    rest = {
        case: ", ".join(text for text, same in zip(found, shared, strict=True) if not same)
        for case, found in fields.items()
    }
    return ", ".join(text for text, same in zip(first, shared, strict=True) if same), rest


def _fields(case: CaseRecord) -> tuple[str, ...]:
    return pair_text(case.pair), shape_text(case.shape), case.dtype, case.layout, case.device


def _name(comparison: Comparison, case: Compared) -> str:
    """Return the code, with what tells its array from others with the same code."""
    alike = [other.case for other in comparison.cases if other.case.code == case.case.code]
    _, arrays = _array_texts([case.case, *alike])
    array = arrays[case.case]
    return f"{case.case.code} ({array})" if array else case.case.code


def _code_cells(cases: Iterable[CaseRecord]) -> dict[CaseRecord, Cell]:
    """Return the cell of each path: its code, and what tells its array from the others'."""
    _, arrays = _array_texts(cases)
    return {case: Cell(case.code, code=True, note=array) for case, array in arrays.items()}


def ratio_text(time: Time) -> str:
    """Return ``1.10 (1.08-1.13)``: HEAD over BASE, with its interval if that is known."""
    ratio, interval = _ratio_and_interval(time)
    return f"{ratio} ({interval})" if interval else ratio


def _ratio_and_interval(time: Time) -> tuple[str, str]:
    """Return the ratio, and the interval that decided on the word.

    SAME is by that of 95 %, the other words by that of one case's share of the error rate of the
    suite. WIDE has its bound instead.
    """
    if time.ratio is None:
        return "-", ""
    if time.word == WIDE and time.bound is not None:
        return number(time.ratio), f"at most {number(time.bound)}"
    interval = time.interval if time.word == SAME else time.corrected
    if interval is None:
        return number(time.ratio), ""
    low, high = interval
    places = 3 if high - low < FINE else 2
    return number(time.ratio, places), f"{number(low, places)}-{number(high, places)}"


def number(ratio: float, places: int = 2) -> str:
    """Format a ratio: with so many decimals, none above 10, two digits below 0.1."""
    if ratio >= LARGE:
        return f"{ratio:,.0f}"
    return f"{ratio:.{places}f}" if ratio >= SMALL else f"{ratio:.2g}"


def _floor_text(floor: Floor) -> str:
    """Return ``ready 5 % and 5 ns``."""
    return f"{floor.measure} {100 * floor.relative:g} % and {plain_time(floor.absolute_ns, 3)}"


# Tables


def _context(comparison: Comparison, names: tuple[str, str]) -> str:
    """Return how the versions of the sides differ, or that the sides are the same file."""
    same = "BASE and HEAD are the same file" if len({*names}) == 1 else ""
    shared = listed(comparison.in_one_place)
    shared = shared and f"both load the Python files of {shared} from one place"
    return _joined(_differences(comparison, "version") or same, shared)


def _differences(comparison: Comparison, *kinds: str) -> str:
    return ", ".join(str(one) for one in comparison.differences if one.kind in kinds)


def _scope(cases: Sequence[Compared]) -> str:
    shared, arrays = _array_texts(case.case for case in cases)
    different = len(set(arrays.values()))
    return _joined(shared, f"{len(cases):,} cases of {different} arrays" if different > 1 else "")


def _rows(comparison: Comparison) -> Iterable[tuple[Compared, Time | None]]:
    """Yield the times, and the cases that have none although one side measured them."""
    for case in comparison.cases:
        yield from ((case, time) for time in case.times)
        if not case.times and case.word in (GONE, NEW, INVALID, UNSURE):
            yield case, None


def _is_telling(comparison: Comparison, case: Compared, time: Time | None) -> bool:
    """Whether the first screen has its row: what is the same, or passes as WIDE, is counted."""
    if time is not None and time.word == WIDE:
        return not comparison.settings.passes(time)
    return _word(case, time) not in (SAME, INVALID)


def _word(case: Compared, time: Time | None) -> str:
    return time.word if time else case.word


def _badness(row: tuple[Compared, Time | None]) -> tuple[int, float]:
    case, time = row
    return ORDER.index(_word(case, time)), -((time and time.ratio) or 0.0)


def _times_table(rows: Rows, most: int) -> tuple[Table, ...]:
    """Return the times, worst first."""
    if not rows:
        return ()
    codes = _code_cells(case.case for case, _ in rows)
    right = [Column(title, right=True) for title in ("BASE", "HEAD", "HEAD/BASE")]
    found = []
    for case, time in rows[:most]:
        word = _word(case, time)
        result = word if time is None or time.measure == "ready" else f"{word} {time.measure}"
        cells = (
            Cell(_time(time.base_ns if time else None)),
            Cell(_time(time.head_ns if time else None)),
            Cell(ratio_text(time) if time else "-"),
            Cell(result, TONES.get(word, "")),
            codes[case.case],
        )
        found.append(cells)
    columns = (*right, Column("result"), Column("path"))
    return (Table(columns, tuple(found), more_rows(len(rows), most)),)


def _first_times(telling: Rows, count: int) -> tuple[Table, ...]:
    """Return the rows of the first screen, and how many of all times there are in full."""
    (table,) = _times_table(telling, FIRST_ROWS) or (Table((), ()),)
    more = f"All {count:,} times" if count > 1 else "The time" * (count > len(telling))
    return (replace(table, more=more, is_summary=True),) if telling or count else ()


def _reasons_table(rows: Rows) -> tuple[Table, ...]:
    """Return why each word is what it is."""
    codes = _code_cells(case.case for case, _ in rows)
    found: dict[tuple[str, str], list[Cell]] = defaultdict(list)
    for case, time in rows[:ALL_ROWS]:
        if because := (time.reason or time.note) if time else case.reason:
            found[_word(case, time), because].append(codes[case.case])
    titles = map(Column, ("result", "path", "because"))
    table = (
        (Cell(word), _and_alike(paths[0], len(paths)), Cell(text))
        for (word, text), paths in found.items()
    )
    return (Table(tuple(titles), tuple(table)),) if found else ()


def _and_alike(code: Cell, count: int) -> Cell:
    """Return the first of so many paths that share a line."""
    alike = f"+{count - 1} alike" if count > 1 else ""
    return replace(code, note=f"{code.note}  {alike}".strip())


def _time(value_ns: float | None) -> str:
    return "-" if value_ns is None else plain_time(value_ns, 3)


def _alike(changes: Iterable[CaseChange]) -> list[list[CaseChange]]:
    """Group cases of one array that changed in the same way."""
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
    codes = _code_cells(case.case for line in changes for case, _ in line)
    titles = map(Column, ("", "changed verdict", "path"))
    words = {LOST: "unsure", OTHER: "changed", BETTER: BETTER}
    found = []
    for line in changes[:most]:
        case, change = line[0]
        tone = TONES.get(change.direction, "")
        cell = Cell(words.get(change.direction, change.severity), tone)
        code = _and_alike(codes[case.case], len(line))
        found.append((cell, Cell(_said(case, change)), code))
    return (Table(tuple(titles), tuple(found), more_rows(len(changes), most)),)


def _method(comparison: Comparison, names: tuple[str, str]) -> tuple[Facts | Lines, ...]:
    counts = sorted({count for _, time in comparison.times for count in time.processes if count})
    ends = dict.fromkeys((*counts[:1], *counts[-1:]))
    floors = "; ".join(map(_floor_text, comparison.settings.floors))
    facts = {
        "BASE": _side(comparison.base, names[0]),
        "HEAD": _side(comparison.head, names[1]),
        "versions": _differences(comparison, "version"),
        "also different": _differences(comparison, "machine", "measuring", "setting"),
        "floor" if comparison.told else "limit": floors if comparison.told else f"{LIMIT:g} times",
        "processes": f"{' to '.join(map(str, ends))} a side" if ends else "",
        "left out in BASE": "; ".join(comparison.base.left_out),
        "left out in HEAD": "; ".join(comparison.head.left_out),
    }
    shown = Facts(tuple((name, value) for name, value in facts.items() if value))
    told = comparison.told[1:]  # the first is a mark
    return (shown, Lines(told)) if told else (shown,)


def _side(header: Header, name: str) -> str:
    stopped = "" if header.complete else "; stopped before its end"
    return f"{name}: {counted(header.rounds, 'round')}, {header.created}{stopped}"


# Checks of continuous integration


def checks_of(comparison: Comparison, unsure: int | None = None) -> tuple[Check, ...]:
    """Return one check for whether the sides could be compared, one for each case and expectation.

    ``unsure`` is the exit code of what is unsure; None for one who only wants to see. What could
    not be measured at all passes only for the latter.
    """
    strict = FAILED if unsure == REGRESSION else SKIPPED if unsure is None else ERROR
    lenient = SKIPPED if unsure == 0 else strict
    whole = _whole(comparison, unsure is None)
    too_wide = [case for case, _ in comparison.too_wide]
    return (
        whole,
        *expectation_checks(comparison.head, strict),
        *(_of_case(case, lenient, strict, whole, case in too_wide) for case in comparison.cases),
    )


def refusal_check(reason: str, code: int) -> Check:
    """Return the one check of a gate that measured nothing."""
    kind = "INCOMPARABLE" if code == NOT_KNOWN else "NOTHING"
    return Check(WHOLE, COMPARABLE, ERROR, kind, reason, reason)


def _whole(comparison: Comparison, only_tell: bool) -> Check:
    kind = said = ""
    if comparison.nothing:
        kind, said = "NOTHING", f"nothing to compare: {comparison.nothing}"
    elif comparison.incomparable and comparison.times:
        kind, said = "INCOMPARABLE", f"the times cannot be compared: {comparison.incomparable}"
    elif comparison.inconclusive and not only_tell:
        kind = "INCONCLUSIVE"
        said = f"a regression could not have been seen: {comparison.inconclusive}"
    told = simulated_notice(comparison.base) or simulated_notice(comparison.head)
    text = lines_of([*map(sentence, answers_of(comparison)), *filter(None, [told])])
    return Check(WHOLE, COMPARABLE, ERROR if kind else PASSED, kind, said, text)


def _of_case(
    case: Compared, lenient: Verdict, strict: Verdict, whole: Check, too_wide: bool
) -> Check:
    if case.word in (SAME, FASTER) or (case.word == WIDE and not too_wide):
        found = PASSED
    elif case.word in REGRESSIONS:
        found = ERROR if case.statuses[1] in BROKEN else FAILED
    elif case.word == INVALID:
        # What keeps all times from being compared is one error.
        found = SKIPPED if whole.kind == "INCOMPARABLE" and case.times else strict
    else:
        found = lenient if case.word in (UNSURE, WIDE) else SKIPPED
    times = [f"{time.measure}: {time.word} {ratio_text(time)}" for time in case.times]
    reason = ", ".join(times) if case.word == SLOWER else case.reason
    kind, said = ("", "") if found == PASSED else (case.word, f"{case.word}: {reason}")
    text = lines_of([said, *times, *map(str, case.changes)])
    return Check(array_text(case.case), case.case.code, found, kind, said, text, reason)
