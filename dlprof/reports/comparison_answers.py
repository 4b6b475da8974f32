"""What a comparison comes to, in lines that answer: is HEAD slower, or worse?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dlprof.analysis.quantity import plain_time
from dlprof.analysis.slower import FASTER, SAME, SLOWER, UNSURE
from dlprof.compare.comparison import Compared, Comparison
from dlprof.compare.outcome import NO_VERDICT, Outcome, is_measured, is_unasked
from dlprof.compare.times import Time, is_beyond
from dlprof.compare.verdicts import BETTER
from dlprof.plan.axes import shape_text
from dlprof.plan.floors import Floor
from dlprof.reports.document import Answer
from dlprof.session.model import CaseRecord, ExpectationRecord
from dlprof.text.clean import listed

FINE = 0.1
"""Narrower intervals are shown to a tenth of a percent."""
LARGE, SMALL = 10.0, 0.1
NOT_KNOWN, NOT_COMPARED = "not known", "not compared"


def array_text(case: CaseRecord) -> str:
    """The pair and the array: ``torch → numpy  4096x4096  float32  C  cpu``."""
    pair = f"{case.producer} → {case.consumer}"
    return "  ".join((pair, shape_text(case.shape), case.dtype, case.layout, case.device))


def name_of(case: Compared) -> str:
    """The code, and what tells it from others of the same."""
    return case.case.code + (f" ({case.distinction})" if case.distinction else "")


def ratio_text(time: Time) -> str:
    """``1.10 (1.08-1.13)``: HEAD over BASE; without its interval where that is not known.

    The interval is the one that decided: SAME is by that of 95 %, the other words by that of one
    case's share of the error rate of the suite, which is wider.
    """
    if time.ratio is None:
        return "-"
    interval = time.interval if time.word == SAME or time.beyond else time.corrected
    if interval is None:
        return number(time.ratio)
    low, high = interval
    places = 3 if high - low < FINE else 2
    return f"{number(time.ratio, places)} ({number(low, places)}-{number(high, places)})"


def number(ratio: float, places: int = 2) -> str:
    """A ratio with so many decimals; fewer where it is large, other digits where it is small."""
    if ratio >= LARGE:
        return f"{ratio:,.0f}"
    return f"{ratio:.{places}f}" if ratio >= SMALL else f"{ratio:.2g}"


def floor_text(floor: Floor) -> str:
    """``5 % and 5 ns``."""
    return f"{100 * floor.relative:g} % and {plain_time(floor.absolute_ns, 3)}"


def floors_text(floors: Iterable[Floor]) -> str:
    return "; ".join(f"{floor.measure} {floor_text(floor)}" for floor in floors)


def has_own_floor(comparison: Comparison, time: Time) -> bool:
    """Whether a time is judged by another floor than that of all cases."""
    return time.floor not in comparison.floors


def is_excused(comparison: Comparison, time: Time) -> bool:
    """Whether a time is SAME only by a floor of its own, which a person wrote."""
    if time.word != SAME or not has_own_floor(comparison, time):
        return False
    return any(is_beyond(time, one) for one in comparison.floors if one.measure == time.measure)


def left_out_texts(comparison: Comparison) -> list[str]:
    """What the sides did not measure although it was asked for, in their own words."""
    base, head = comparison.base.left_out, comparison.head.left_out
    both = [line for line in head if line in base]
    named = (
        ("left out on both sides", both),
        ("left out in BASE", [line for line in base if line not in both]),
        ("left out in HEAD", [line for line in head if line not in both]),
    )
    return [f"{where}: {'; '.join(lines)}" for where, lines in named if lines]


def sentence(answer: Answer) -> str:
    """An answer as one sentence."""
    parts = _joined(answer.code, answer.value, answer.note)
    return f"{answer.label[:1].upper()}{answer.label[1:]}: {parts}."


def answers_of(comparison: Comparison, outcome: Outcome) -> tuple[Answer, ...]:
    """The answer, what keeps it from being sure, and what got better; the answer first."""
    if outcome.nothing:
        return (Answer("nothing to compare", "", note=outcome.nothing),)
    found = [*_regressions(outcome)]
    if comparison.invalid is not None and outcome.times:
        reason = f"whether HEAD is slower: {comparison.invalid}"
        found.append(Answer(NOT_KNOWN, "", note=reason))
        if not outcome.worse:
            found.append(Answer("HEAD is not worse", "", note="the verdicts were compared"))
    elif outcome.untold:
        reason = f"whether HEAD is {_sought(outcome)}: {outcome.untold}"
        found.append(Answer(NOT_KNOWN, "", note=reason))
    elif not found:
        found.append(_no_regression(comparison, outcome))
    found += [*_within_a_floor(comparison), *_doubts(comparison, outcome), *_gains(comparison)]
    return tuple(found)


def _regressions(outcome: Outcome) -> Iterator[Answer]:
    if outcome.slower:
        worst = max(outcome.slower, key=_worst_ratio)
        time = max(worst.times, key=lambda one: (one.word == SLOWER, one.ratio or 0.0))
        yield _of_time("HEAD is slower", worst, time, _more(outcome.slower))
    if outcome.worse:
        case, change = outcome.worse[0]
        note = _joined(str(change), _more(outcome.worse))
        yield Answer("HEAD is worse", name_of(case), note=note)
    if outcome.gone:
        yield Answer("gone in HEAD", name_of(outcome.gone[0]), note=_more(outcome.gone))
    if outcome.unmet:
        yield Answer("HEAD breaks the scenario", "", note=_expected(outcome.unmet))


def _of_time(label: str, case: Compared, time: Time, *notes: str) -> Answer:
    ratio, _, interval = ratio_text(time).partition(" ")
    measure = "" if time.measure == "ready" else time.measure
    note = _joined(interval.strip("()"), measure, *notes)
    return Answer(label, name_of(case), f"{ratio} times as long", note)


def _joined(*notes: str) -> str:
    return ", ".join(note for note in notes if note)


def _more(cases: Sequence[object]) -> str:
    return f"and {len(cases) - 1:,} more" if len(cases) > 1 else ""


def _expected(records: Iterable[ExpectationRecord]) -> str:
    return "expected " + listed(
        f"{one.text} ({one.reason})" if one.reason else one.text for one in records
    )


def _worst_ratio(case: Compared) -> float:
    return max((time.ratio or 0.0 for time in case.times if time.word == SLOWER), default=0.0)


def _sought(outcome: Outcome) -> str:
    """What a regression would be in one word."""
    return "slower" if outcome.times and outcome.untold != NO_VERDICT else "worse"


def _no_regression(comparison: Comparison, outcome: Outcome) -> Answer:
    judged = [
        time for case in comparison.cases for time in case.times if time.word in (SAME, FASTER)
    ]
    if outcome.code():
        return Answer("no regression", "", note="but not everything could be compared")
    if not outcome.times or not judged:
        both = sum(bool(case.looked_at) for case in comparison.cases)
        note = f"the verdicts of {_count(both)} were compared, and no times"
        return Answer("HEAD is not worse", "", note=note)
    excused = any(is_excused(comparison, time) for time in judged)
    allowed = " than its floors allow" if excused else ""
    own = sum(has_own_floor(comparison, time) for time in judged)
    which = f", {own:,} of them a floor of its own" if own else ""
    floors = floors_text(comparison.floors)
    note = f"{_count(len(judged), 'time')} within the floor ({floors}{which}), or faster"
    return Answer(f"HEAD is not slower{allowed}", "", note=note)


def _count(count: int, what: str = "case") -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _within_a_floor(comparison: Comparison) -> Iterator[Answer]:
    """What is slower than one floor and within another: no regression, and not to be hidden."""
    times = [(case, time) for case in comparison.cases for time in case.times]
    raised = [one for one in times if one[1].beyond]
    if raised:
        yield _in_floor("not told", raised, "slower than asked for, by less than can be told here")
    own = [one for one in times if is_excused(comparison, one[1])]
    if own:
        yield _in_floor("allowed", own, "slower than the floor of all cases, within its own")


def _in_floor(label: str, found: Sequence[tuple[Compared, Time]], why: str) -> Answer:
    case, time = found[0]
    floor = f"floor {100 * time.floor.relative:g} %"
    return _of_time(label, case, time, floor, why, _more(found))


def _doubts(comparison: Comparison, outcome: Outcome) -> Iterator[Answer]:
    if any(time.shifted for case in comparison.cases for time in case.times):
        word = "slower" if comparison.common > 1 else "faster"
        share = 100 * abs(comparison.common - 1)
        note = f"nine in ten cases are {share:.1f} % {word} or more: machine or code"
        yield Answer("shifted", "", note=note)
    unsure = [time for case in outcome.unsure for time in case.times if time.word == UNSURE]
    if unsure and outcome.times:
        count = f"{len(unsure):,} of {len(comparison.words()):,} times"
        advice = _advice(comparison, unsure)
        yield Answer("unsure", "", note=f"{count}{f'; {advice}' if advice else ''}")
    unasked = [name_of(case) for case in outcome.invalid if is_unasked(case)]
    lost = {name: None for _, names in outcome.lost for name in names}
    lost_names = listed(name_of(case) for case, _ in outcome.lost)
    ambiguous = [" ".join(map(str, key)) for key in outcome.ambiguous]
    by_verdicts = [name_of(case) for case in comparison.cases if is_by_verdicts(case)]
    notes = (
        (NOT_COMPARED, unasked, f"HEAD was not asked for {listed(unasked)}"),
        (NOT_COMPARED, lost, f"HEAD did not look at {listed(lost)} of {lost_names}"),
        (
            NOT_COMPARED,
            outcome.blind,
            f"nothing looked for {listed(outcome.blind)} on both sides: measure with a diagnosis",
        ),
        (
            NOT_COMPARED,
            outcome.ambiguous,
            f"a session has it twice: {listed(ambiguous)}",
        ),
        ("not checked", outcome.unchecked, _expected(outcome.unchecked)),
        (
            "verdicts only",
            by_verdicts if outcome.times and comparison.words() else (),
            f"as the scenario says: {listed(dict.fromkeys(by_verdicts))}",
        ),
    )
    yield from (Answer(label, "", note=note) for label, present, note in notes if present)


def is_by_verdicts(case: Compared) -> bool:
    """Whether both sides measured it, and no time of it was to be judged."""
    return not case.judged and is_measured(case)


def _advice(comparison: Comparison, unsure: Sequence[Time]) -> str:
    """What would tell."""
    noisy = sum(time.noisy for time in unsure)
    if comparison.measured_here:
        open_ = [time for time in unsure if not time.beyond]
        if not open_ or noisy >= len(open_):
            return "too noisy here for any budget" if noisy else ""
        return "a larger --budget may tell" + (f", but {noisy} are too noisy" if noisy else "")
    rounds = [time.rounds for time in unsure if time.rounds is not None]
    some = f" {len(rounds)} of them" if len(rounds) < len(unsure) else ""
    told = f"--rounds {max(rounds)} on both sides would tell{some}" if rounds else ""
    return _joined(told, f"{noisy} are too noisy here" if noisy else "")


def _gains(comparison: Comparison) -> Iterator[Answer]:
    faster = [
        (case, time) for case in comparison.cases for time in case.times if time.word == FASTER
    ]
    if faster:
        case, time = min(faster, key=lambda one: one[1].ratio or 1.0)
        yield _of_time("faster", case, time, _more(faster))
    better = [
        (case, change)
        for case in comparison.cases
        for change in case.changes
        if change.direction == BETTER
    ]
    if better:
        note = _joined(str(better[0][1]), _more(better))
        yield Answer("better", name_of(better[0][0]), note=note)
