"""What a comparison comes to, in lines that answer: is HEAD slower, or worse?"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from dlprof.compare.comparison import (
    DONE,
    GONE,
    INVALID,
    WORSE,
    Compared,
    Comparison,
    exit_code,
)
from dlprof.compare.times import Time
from dlprof.compare.verdicts import BETTER, LOST, OTHER, Change
from dlprof.compare.verdicts import WORSE as WORSE_CHANGE
from dlprof.judge.rule import SEVERITIES
from dlprof.judge.slower import FASTER, SAME, SLOWER, UNSURE, WIDE
from dlprof.measuring.expectation import MET, MISSED
from dlprof.report.document import Answer, Cell
from dlprof.runner.axes import shape_text
from dlprof.runner.floors import Floor
from dlprof.runner.quantity import plain_time
from dlprof.runner.session import CaseRecord, ExpectationRecord, pair_text
from dlprof.text.clean import counted, listed

FINE = 0.1
"""Narrower intervals are shown to a tenth of a percent."""
LARGE, SMALL = 10.0, 0.1
ENOUGH_ROUNDS = 10
"""What two sessions should have a side; see docs/compare.md."""
SHIFTED = 0.01
"""What all cases share is worth a word from here on."""
DIRECTIONS = (WORSE_CHANGE, LOST, OTHER, BETTER)


def array_text(case: CaseRecord) -> str:
    """The pair and the array: ``torch → numpy, 4096x4096, float32, C, cpu``."""
    return ", ".join(_fields(case))


def array_texts(cases: Iterable[CaseRecord]) -> tuple[str, dict[CaseRecord, str]]:
    """What all pairs and arrays share, and of each the rest: ``64x64, float32``."""
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


def case_name(case: CaseRecord, among: Iterable[CaseRecord]) -> str:
    """The code, with what tells the array from others of these cases with the same code."""
    _, arrays = array_texts([case, *(other for other in among if other.code == case.code)])
    return f"{case.code} ({arrays[case]})" if arrays[case] else case.code


def code_cells(cases: Iterable[CaseRecord]) -> dict[CaseRecord, Cell]:
    """The cell of each path among these: its code, and what tells its array from the others'."""
    _, arrays = array_texts(cases)
    return {case: Cell(case.code, code=True, note=array) for case, array in arrays.items()}


def ratio_text(time: Time) -> str:
    """``1.10 (1.08-1.13)``: HEAD over BASE; without its interval where that is not known."""
    ratio, interval = _ratio_and_interval(time)
    return f"{ratio} ({interval})" if interval else ratio


def _ratio_and_interval(time: Time) -> tuple[str, str]:
    """The interval is the one that decided: SAME is by that of 95 %, the other words by that of
    one case's share of the error rate of the suite, which is wider. WIDE has its bound instead.
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
    """A ratio with so many decimals; fewer where it is large, other digits where it is small."""
    if ratio >= LARGE:
        return f"{ratio:,.0f}"
    return f"{ratio:.{places}f}" if ratio >= SMALL else f"{ratio:.2g}"


def floors_text(floors: Iterable[Floor]) -> str:
    """``ready 5 % and 5 ns``."""
    return "; ".join(
        f"{floor.measure} {100 * floor.relative:g} % and {plain_time(floor.absolute_ns, 3)}"
        for floor in floors
    )


def sentence(answer: Answer) -> str:
    """An answer as one sentence."""
    said = ": ".join(filter(None, (answer.label, _joined(answer.code, answer.value, answer.note))))
    return f"{said[:1].upper()}{said[1:]}."


def answers_of(comparison: Comparison) -> tuple[Answer, ...]:
    """The answer, what keeps it from being sure, and what got better; the answer first."""
    if comparison.nothing:
        return (Answer("nothing to compare", "", note=comparison.nothing),)
    found = [*_regressions(comparison)]
    judges_times = comparison.settings.criteria.times
    why_not = (comparison.incomparable if judges_times else "") or comparison.inconclusive
    if why_not:
        label = "incomplete" if found else f"HEAD may be {'slower' if judges_times else 'worse'}"
        found.append(Answer(label, "", note=why_not))
    elif not found:
        found.append(_no_regression(comparison))
    return (*found, *_doubts(comparison), *_gains(comparison), *_rest(comparison, found[0]))


def _regressions(comparison: Comparison) -> Iterator[Answer]:
    slower = [one for one in comparison.times if one[1].word == SLOWER]
    if slower:
        yield _of_times(comparison, "HEAD is slower", slower)
    worse = sorted(comparison.having(WORSE), key=lambda case: min(map(rank, case.changes)))
    yield from _of_cases(comparison, "HEAD is worse", worse)
    yield from _of_cases(comparison, "gone in HEAD", comparison.having(GONE))
    missed = [one for one in comparison.head.expectations if one.verdict == MISSED]
    if missed:
        yield Answer("HEAD breaks the scenario", "", note=_expected(missed))


def rank(change: Change) -> tuple[int, int]:
    """What is worse comes first, and of that the most severe."""
    return DIRECTIONS.index(change.direction), SEVERITIES.index(change.severity)


def _of_times(comparison: Comparison, label: str, found: Sequence[tuple[Compared, Time]]) -> Answer:
    """The time that changed most, and how many more there are."""
    case, time = max(found, key=lambda one: abs(math.log(one[1].ratio or 1.0)))
    ratio, interval = _ratio_and_interval(time)
    measure = "" if time.measure == "ready" else time.measure
    note = _joined(interval, measure, _more(found))
    return Answer(label, _name(comparison, case), f"{ratio} times as long", note)


def _of_cases(comparison: Comparison, label: str, cases: Sequence[Compared]) -> Iterator[Answer]:
    if cases:
        note = _joined(cases[0].reason, _more(cases))
        yield Answer(label, _name(comparison, cases[0]), note=note)


def _name(comparison: Comparison, case: Compared) -> str:
    return case_name(case.case, (other.case for other in comparison.cases))


def _joined(*notes: str) -> str:
    return ", ".join(note for note in notes if note)


def _more(cases: Sequence[object]) -> str:
    return f"+{len(cases) - 1:,} more" if len(cases) > 1 else ""


def _expected(records: Iterable[ExpectationRecord]) -> str:
    return "expected " + listed(
        f"{one.text} ({one.reason})" if one.reason else one.text for one in records
    )


def _no_regression(comparison: Comparison) -> Answer:
    judges_times = comparison.settings.criteria.times
    if exit_code(comparison) != DONE:
        counts = {
            "unsure": len(comparison.having(UNSURE)),
            "likely slower": len([one for _, one in comparison.too_wide if one.is_likely_slower]),
            "too wide": len([one for _, one in comparison.too_wide if not one.is_likely_slower]),
            "not compared": len(comparison.having(INVALID)),
        }
        why = _joined(*(f"{count:,} {word}" for word, count in counts.items() if count))
        label = f"HEAD may be {'slower' if judges_times else 'worse'}"
        return Answer(label, "", note=why or "an expectation was not checked")
    if not comparison.times:
        both = sum(bool(case.looked_at) for case in comparison.cases)
        note = f"the verdicts of {counted(both)} were compared, and no times"
        return Answer("HEAD is not worse", "", note=note)
    is_all = all(time.word in {SAME, FASTER} for _, time in comparison.times)
    return Answer(
        "HEAD is not slower" if is_all else "no slowdown found", "", note=_same(comparison)
    )


def _rest(comparison: Comparison, first: Answer) -> Iterator[Answer]:
    """How many times are the same, unless the first answer says so."""
    same = _same(comparison)
    if same and same != first.note:
        yield Answer("times", "", note=same)


def _same(comparison: Comparison) -> str:
    """``34 same (±1.8 % at worst)``: how far the intervals reach; empty for none."""
    same = [time for _, time in comparison.times if time.word == SAME]
    ends = [abs(end - 1) for time in same if time.interval for end in time.interval]
    worst = f" (±{percent_text(max(ends))} at worst)" if ends else ""
    return f"{len(same):,} same{worst}" if same else ""


def percent_text(share: float) -> str:
    """``1.8 %``, ``18 %``."""
    return f"{100 * share:.2g} %" if share < 1 else f"{100 * share:,.0f} %"


def _doubts(comparison: Comparison) -> Iterator[Answer]:
    yield from _wide(comparison)
    unsure = [time for _, time in comparison.times if time.word == UNSURE]
    if unsure:
        if abs(comparison.common - 1) >= SHIFTED:
            word = "slower" if comparison.common > 1 else "faster"
            share = f"{100 * abs(comparison.common - 1):.1f} % {word}"
            note = f"nine in ten cases are {share} or more: machine or code"
            yield Answer("shifted", "", note=note)
        # The first line has the advice of a gate that had too little time.
        advice = "" if comparison.too_few_rounds else f"; {_advice(comparison, unsure)}"
        note = f"{len(unsure):,} of {len(comparison.times):,} times{advice}"
        yield Answer("unsure", "", note=note)
    untimed = [case for case in comparison.having(UNSURE) if not case.times]
    yield from _of_cases(comparison, "unsure", untimed)
    if not (comparison.incomparable and comparison.settings.criteria.times):
        yield from _not_compared(comparison)
    unchecked = [one for one in comparison.head.expectations if one.verdict not in (MET, MISSED)]
    if unchecked:
        yield Answer("not checked", "", note=_expected(unchecked))


def _not_compared(comparison: Comparison) -> Iterator[Answer]:
    """How many cases no time could be compared of, and why; of load the heading says more."""
    reasons = Counter(case.reason for case in comparison.having(INVALID))
    if reasons:
        why, _ = reasons.most_common(1)[0]
        if comparison.load and comparison.load in why:
            why = (
                "their times depend on the load of the machine; dlprof gate measures both sides"
                " under the same load"
            )
        others = f", and {counted(len(reasons) - 1, 'more reason')}" if len(reasons) > 1 else ""
        yield Answer("not compared", "", note=f"{counted(reasons.total())}: {why}{others}")


def _wide(comparison: Comparison) -> Iterator[Answer]:
    """The bounds of what stays open, the largest first; what is too wide to pass on its own."""
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
            value = f"at most {percent_text(slower)} slower" if slower > 0 else "not slower"
            yield Answer(label, _name(comparison, case), value, _more(found))


def _advice(comparison: Comparison, unsure: Sequence[Time]) -> str:
    """What may tell."""
    if comparison.apart:
        return comparison.apart
    if comparison.told:
        return "a larger --budget may tell"
    if min(min(time.processes) for time in unsure) < ENOUGH_ROUNDS:
        return f"--rounds {ENOUGH_ROUNDS} on both sides may tell"
    return "a gate that measures both sides in turns tells more"


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
