"""A comparison in words: names, ratios, and the sentences that answer whether HEAD is slower."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dlprof.analysis.quantity import plain_time
from dlprof.analysis.slower import FASTER, SAME, SLOWER, UNSURE
from dlprof.compare.comparison import Compared, Comparison
from dlprof.compare.matching import Key
from dlprof.compare.outcome import NO_VERDICT, NOT_KNOWN, Outcome, is_unasked
from dlprof.compare.times import Time, is_beyond
from dlprof.compare.verdicts import MEASURED
from dlprof.plan.axes import shape_text
from dlprof.plan.floors import Floor
from dlprof.session.model import ExpectationRecord
from dlprof.text.clean import clean
from dlprof.text.lists import listed

FINE = 0.1
"""Narrower intervals are shown to a tenth of a percent."""
LARGE, SMALL = 10.0, 0.1


def key_text(key: Key) -> str:
    """What makes a case the same in two sessions, in one line."""
    return clean(" ".join(map(str, key)))


def code_of(case: Compared) -> str:
    return clean(case.case.code)


def name_of(case: Compared) -> str:
    """The code, and what tells it from others of the same: ``numpy.asarray(x) (jax → numpy)``."""
    return code_of(case) + (f" ({clean(case.distinction)})" if case.distinction else "")


def array_of(case: Compared) -> str:
    """The pair and the array of a case."""
    found = case.case
    pair = f"{found.producer} → {found.consumer}"
    return clean(
        "  ".join((pair, shape_text(found.shape), found.dtype, found.layout, found.device))
    )


def left_out_texts(comparison: Comparison) -> list[str]:
    """What the sides did not measure although it was asked for, in their own words."""
    sides = (comparison.base.left_out, comparison.head.left_out)
    both = [line for line in sides[1] if line in sides[0]]
    named = (
        ("left out on both sides", both),
        ("left out in BASE", [line for line in sides[0] if line not in both]),
        ("left out in HEAD", [line for line in sides[1] if line not in both]),
    )
    return [clean(f"{where}: {'; '.join(lines)}") for where, lines in named if lines]


def ratio_text(time: Time) -> str:
    """``1.10 (1.08-1.13)``: HEAD over BASE; without its interval where that is not known.

    The interval is the one that decided: SAME is by that of 95 %, the other words by that of one
    case's share of the error rate of the suite, which is wider.
    """
    interval = time.interval if time.word == SAME or time.beyond else time.corrected
    if time.ratio is None:
        return "-"
    if interval is None:
        return _number(time.ratio, 2)
    low, high = interval
    places = 3 if high - low < FINE else 2
    return f"{_number(time.ratio, places)} ({_number(low, places)}-{_number(high, places)})"


def _number(ratio: float, places: int) -> str:
    if ratio >= LARGE:
        return f"{ratio:,.0f}"
    return f"{ratio:.{places}f}" if ratio >= SMALL else f"{ratio:.2g}"


def shows_times(comparison: Comparison, outcome: Outcome) -> bool:
    """Not those of the one round of a gate that was asked for verdicts only."""
    return outcome.times or not comparison.measured_here


def floor_text(floor: Floor) -> str:
    """``5 % and 5 ns``."""
    return f"{100 * floor.relative:g} % and {plain_time(floor.absolute_ns, 3)}"


def headline(comparison: Comparison, outcome: Outcome, code: int) -> str:
    """The one sentence that goes with an exit code."""
    if code == NOT_KNOWN and comparison.invalid is not None and outcome.times:
        return _incomparable(comparison.invalid)
    return answers(comparison, outcome)[0]


def answers(comparison: Comparison, outcome: Outcome) -> list[str]:
    """The sentences that answer: is HEAD slower, or worse?"""
    if outcome.nothing:
        return [f"Nothing to compare: {outcome.nothing}.", *comparison.told]
    found = [*_regressions(outcome)]
    if comparison.invalid is not None and outcome.times:
        found.append(_incomparable(comparison.invalid))
        if not outcome.worse:
            found.append("Verdicts were compared, and none is worse.")
    elif not found:
        found.append(_innocent(comparison, outcome))
    elif outcome.untold:
        found.append(f"Not known whether anything is {sought(outcome)}: {outcome.untold}.")
    if comparison.invalid is not None and not outcome.times:
        found.append(f"Nor could times have been judged: {clean(comparison.invalid)}.")
    found += [
        *_allowed(comparison),
        *_unjudged(comparison, outcome),
        *_common(comparison),
        *_doubts(comparison, outcome),
        *_gains(comparison),
    ]
    return [*found, *comparison.told]


def _incomparable(reason: str) -> str:
    return f"Not known whether HEAD is slower: {clean(reason)}."


def _regressions(outcome: Outcome) -> Iterable[str]:
    if outcome.slower:
        worst = max(outcome.slower, key=_worst_ratio)
        more = len(outcome.slower) - 1
        rest = f", and {more} more" if more else ""
        times = " and ".join(_phrase(time) for time in worst.times if time.word == SLOWER)
        yield f"HEAD is slower: {name_of(worst)} takes {times}{rest}."
    if outcome.worse:
        said = [f"{name_of(case)} ({clean(str(change))})" for case, change in outcome.worse]
        yield f"HEAD is worse: {listed(said)}."
    if outcome.gone:
        yield f"Gone in HEAD: {listed([name_of(case) for case in outcome.gone])}."
    if outcome.unmet:
        yield f"HEAD does not do what the scenario expects: {_expected(outcome.unmet)}."


def _expected(records: Iterable[ExpectationRecord]) -> str:
    return listed([clean(expected_text(one)) for one in records])


def expected_text(one: ExpectationRecord) -> str:
    """What is expected, with why it could not be checked, if so."""
    return f"{one.text} ({one.reason})" if one.reason else one.text


def _worst_ratio(case: Compared) -> float:
    return max((time.ratio or 0.0 for time in case.times if time.word == SLOWER), default=0.0)


def _phrase(time: Time) -> str:
    return f"{ratio_text(time)} times as long ({clean(time.measure)})"


def _innocent(comparison: Comparison, outcome: Outcome) -> str:
    judged = [
        (case, time)
        for case in comparison.cases
        for time in case.times
        if time.word in (SAME, FASTER)
    ]
    floors = floors_text(comparison.floors)
    if outcome.untold:
        return f"Not known whether HEAD is {sought(outcome)}: {outcome.untold}."
    if not outcome.times or not judged:
        return _no_worse(comparison, outcome)
    if outcome.code():
        return f"No regression was found, but not every case could be judged ({floors})."
    own = [(case, time) for case, time in judged if has_own_floor(comparison, time)]
    general = len(judged) - len(own)
    parts = [f"{_cases(general)} within the floor of {floors}"] if general else []
    if own:
        parts.append(
            f"{_cases(len(own))} within a floor of {'its' if len(own) == 1 else 'their'} "
            f"own: {_own(own)}"
        )
    excused = any(slower_than_general(comparison, time) for _, time in own)
    lead = "HEAD is not slower than its floors allow" if excused else "HEAD is not slower"
    return f"{lead}: {'; '.join(parts)}, or faster."


def sought(outcome: Outcome) -> str:
    """What a regression would be in one word."""
    return "slower" if outcome.times and outcome.untold != NO_VERDICT else "worse"


def _no_worse(comparison: Comparison, outcome: Outcome) -> str:
    """Of one who asked for verdicts only."""
    both = sum(bool(case.looked_at) for case in comparison.cases)
    which = "1 case" if both == 1 else f"{both:,} cases"
    if outcome.code():
        return f"No verdict of {which} is worse, but not everything could be compared."
    return f"HEAD is not worse: the verdicts of {which} were compared. No times were judged."


def _cases(count: int) -> str:
    return "the time of 1 case is" if count == 1 else f"the times of {count:,} cases are"


def floors_text(floors: Iterable[Floor]) -> str:
    return "; ".join(f"{floor.measure} {floor_text(floor)}" for floor in floors)


def has_own_floor(comparison: Comparison, time: Time) -> bool:
    """Whether a time is judged by another floor than that of all cases."""
    return time.floor not in comparison.floors


def _own(judged: Sequence[tuple[Compared, Time]]) -> str:
    """The floors of cases that have floors of their own: the widest first."""
    groups: dict[str, list[str]] = {}
    for case, time in sorted(judged, key=lambda one: -one[1].floor.relative):
        groups.setdefault(floors_text([time.floor]), []).append(name_of(case))
    return "; ".join(f"{floor} for {listed(names)}" for floor, names in groups.items())


def slower_than_general(comparison: Comparison, time: Time) -> bool:
    """Whether a time is SAME by a floor of its own only, which a person wrote."""
    if time.word != SAME or not has_own_floor(comparison, time):
        return False
    return any(is_beyond(time, f) for f in comparison.floors if f.measure == time.measure)


def _unjudged(comparison: Comparison, outcome: Outcome) -> Iterable[str]:
    """The cases that the scenario takes the times out of, beside others."""
    names = [name_of(case) for case in comparison.cases if is_by_verdicts(case)]
    if names and outcome.times and comparison.words():
        which = listed(list(dict.fromkeys(names)))
        yield f"Judged by verdicts only, as the scenario says: {which}."


def is_by_verdicts(case: Compared) -> bool:
    """Whether both sides measured it, and no time of it was to be judged."""
    return not case.judged and all(status in MEASURED for status in case.statuses)


def _allowed(comparison: Comparison) -> Iterable[str]:
    """What is slower than one floor and within another: no regression, and not to be hidden."""
    times = [(case, time) for case in comparison.cases for time in case.times]
    noise = [_beyond(*one) for one in times if one[1].beyond]
    if noise:
        yield (
            "Slower than asked for, but within the noise of this machine: "
            f"{listed(noise)}. Neither a pass nor a regression."
        )
    own = [_beyond(*one) for one in times if slower_than_general(comparison, one[1])]
    if own:
        yield f"Slower than the floor of all cases, but within its own: {listed(own)}."


def _beyond(case: Compared, time: Time) -> str:
    return f"{name_of(case)} takes {_phrase(time)}, floor {100 * time.floor.relative:g} %"


def _common(comparison: Comparison) -> Iterable[str]:
    if any(time.shifted for case in comparison.cases for time in case.times):
        word = "slower" if comparison.common > 1 else "faster"
        share = 100 * abs(comparison.common - 1)
        yield (
            f"At least nine in ten cases are {share:.1f} % {word} or more: the machine, or "
            "something all share. Two sessions cannot tell which, so that much counts as uncertain."
        )


def _doubts(comparison: Comparison, outcome: Outcome) -> Iterable[str]:
    yield from _unsure(comparison, outcome)
    unasked = [name_of(case) for case in outcome.invalid if is_unasked(case)]
    if unasked:
        yield f"Not compared, since HEAD was not asked for it: {listed(unasked)}."
    if outcome.lost:
        what = listed(sorted({one for _, named in outcome.lost for one in named}))
        names = listed([name_of(case) for case, _ in outcome.lost])
        yield f"Not compared, since HEAD did not look at it: {what} of {names}."
    if outcome.blind:
        yield (
            f"Nothing looked for {listed(list(outcome.blind))} on both sides, which --fail-on "
            "names: measure with a diagnosis."
        )
    if outcome.ambiguous:
        names = listed([key_text(key) for key in outcome.ambiguous])
        yield f"Not compared, since a session has it twice: {names}."
    if outcome.unchecked:
        yield f"Not checked, of what the scenario expects: {_expected(outcome.unchecked)}."


def _unsure(comparison: Comparison, outcome: Outcome) -> Iterable[str]:
    unsure = [t for case in outcome.unsure for t in case.times if t.word == UNSURE]
    if not unsure or not outcome.times:
        return
    known = [time.rounds for time in unsure if time.rounds is not None]
    text = f"Unsure: {len(unsure):,} of {len(comparison.words()):,} times."
    if comparison.measured_here:
        yield text + _whether_time_helps(unsure)
        return
    if known:
        which = "" if len(known) == len(unsure) else f" for {len(known):,} of them"
        text += (
            f" About {max(known)} rounds a side would tell{which}: measure both sides with "
            f"--rounds {max(known)}."
        )
    if any(time.noisy for time in unsure):
        text += " Some are too noisy here for any number of rounds worth taking."
    yield text


def _whether_time_helps(unsure: Sequence[Time]) -> str:
    open_ = [time for time in unsure if not time.beyond]
    noisy = sum(time.noisy for time in open_)
    if noisy == len(open_):
        return " No time worth taking would tell: they are too noisy here." if noisy else ""
    if noisy:
        return f" More time may tell: --budget; but {noisy} of them are too noisy here for any."
    return " More time may tell: --budget."


def _gains(comparison: Comparison) -> Iterable[str]:
    faster = [name_of(case) for case in comparison.cases if _is(case, FASTER)]
    if faster:
        yield f"Faster: {listed(faster)}."
    better = [
        f"{name_of(case)} ({clean(str(change))})"
        for case in comparison.cases
        for change in case.changes
        if change.direction == "better"
    ]
    if better:
        yield f"Better: {listed(better)}."


def _is(case: Compared, word: str) -> bool:
    return any(time.word == word for time in case.times)
