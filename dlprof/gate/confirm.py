"""A regression is what two passes in fresh processes agree on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dlprof.analysis.slower import FASTER, SAME, SLOWER, UNSURE
from dlprof.compare.comparison import GONE, INVALID, Compared, Comparison
from dlprof.compare.criteria import Criteria
from dlprof.compare.matching import Key, key
from dlprof.compare.outcome import outcome
from dlprof.compare.times import Time
from dlprof.compare.verdicts import CRASHED, LOST, Change
from dlprof.scenario.expectation import MET, MISSED, TIMED, UNKNOWN, parse
from dlprof.session.model import ExpectationRecord


@dataclass(frozen=True)
class SecondPass:
    """What measured again what the first pass flagged; ``comparison`` is None if nothing did.

    If it was ``stopped``, what it did not see says nothing.
    """

    comparison: Comparison | None = None
    rounds: int = 0
    stopped: bool = False

    @property
    def why_not(self) -> str:
        if self.stopped:
            return "it was stopped before it was measured again"
        return "there was no time to measure it again"


def flagged(comparison: Comparison, criteria: Criteria) -> frozenset[Key]:
    """The cases that would fail, and that HEAD has: they are to be measured again."""
    found = outcome(comparison, criteria)
    cases = [*found.slower, *(case for case, _ in found.worse)]
    return frozenset(key(case.case) for case in cases if case.statuses[1] is not None)


def missed(comparison: Comparison) -> frozenset[Key]:
    """The cases that an expectation is about that times did not meet: HEAD's, in both directions,
    since some rules compare them.
    """
    expected = comparison.head.expectations
    patterns = [parse(one.text).pair for one in expected if _is_missed_by_time(one)]
    found = set()
    for case in comparison.cases:
        pair = (case.case.producer, case.case.consumer)
        meant = any(one.matches(pair) or one.matches(pair[::-1]) for one in patterns)
        if meant and case.statuses[1] is not None:
            found.add(key(case.case))
    return frozenset(found)


def confirmed(
    first: Comparison, second: SecondPass, cases: frozenset[Key], criteria: Criteria
) -> Comparison:
    """The first pass with what the second makes of the flagged ``cases`` and of expectations."""
    again = {
        key(case.case): case for case in (second.comparison.cases if second.comparison else ())
    }
    judged = tuple(
        _case(case, again.get(key(case.case)), criteria, second)
        if key(case.case) in cases
        else case
        for case in first.cases
    )
    expected = first.head.expectations
    if missed(first):
        told = second.comparison.head.expectations if second.comparison else ()
        others = {one.text: one for one in told}
        expected = [_expectation(one, others.get(one.text), second) for one in expected]
    head = first.head.model_copy(update={"expectations": expected})
    return replace(first, cases=judged, head=head)


def _case(
    case: Compared, again: Compared | None, criteria: Criteria, second: SecondPass
) -> Compared:
    others = again.changes if again else ()
    known = {change.what for change in case.changes}
    changes = [_change(change, again, criteria, second.stopped) for change in case.changes]
    crashes: list[Change] = []
    if not second.stopped:
        pairs = zip(case.changes, changes, strict=True)
        crashes = [old for old, new in pairs if _is_crash(old) and new != old]
    for change in others:
        if change.what in known or not criteria.fails(change):
            continue
        if _is_crash(change):
            crashes.append(change)
        else:  # only the second pass saw it: nobody can be sure of it either
            after = f"{change.after} (in the second pass only)"
            changes.append(replace(change, after=after, direction=LOST, severity="info"))
    times = {time.measure: time for time in (again.times if again else ())}
    judged = tuple(_time(time, times, second.why_not) for time in case.times)
    if crashes:  # it failed once, so it is no pass whatever --unsure says
        what = "" if crashes[0].what == "status" else f"{crashes[0].what.replace('_', ' ')}: "
        reason = f"{what}{crashes[0].after} in one of two passes"
        judged = tuple(replace(time, word=INVALID, reason=reason) for time in judged)
    words = [(old.word, new.word) for old, new in zip(case.times, judged, strict=True)]
    return replace(
        case,
        times=judged,
        changes=tuple(changes),
        failed_once=bool(crashes),
        unconfirmed=(SLOWER, UNSURE) in words,
    )


def _is_crash(change: Change) -> bool:
    """Whether the conversion fails, or an instrument that looks at it."""
    return change.what == "status" or change.after == CRASHED


def _change(change: Change, again: Compared | None, criteria: Criteria, stopped: bool) -> Change:
    """The change if the second pass saw it too; otherwise it is not sure."""
    if not criteria.fails(change):
        return change
    for other in again.changes if again else ():
        same = (other.what, other.after) == (change.what, change.after)
        if same or (other.what == change.what and criteria.fails(other)):
            return change
    seen = "not seen again" if again is not None and not stopped else "not looked at again"
    return replace(change, after=f"{change.after} ({seen})", direction=LOST, severity="info")


def _time(time: Time, again: Mapping[str, Time], why_not: str) -> Time:
    if time.word != SLOWER:
        return time
    second = again.get(time.measure)
    if second is None:
        reason = f"{_ratio(time)} times as long, and {why_not}"
        return replace(time, word=UNSURE, reason=reason)
    told = f"{_ratio(time)} times as long in the first pass, {_ratio(second)} in the second"
    if second.word == SLOWER:
        return replace(time, note="; ".join(filter(None, (told, time.note))))
    if second.word in (INVALID, GONE):
        return replace(time, word=INVALID, reason=f"{told}: {second.word} {second.reason}".strip())
    if second.word in (SAME, FASTER):
        return replace(time, word=SAME if second.word == SAME else UNSURE, reason=told)
    return replace(time, word=UNSURE, reason=": ".join(filter(None, (told, second.reason))))


def _ratio(time: Time) -> str:
    return "no known number of" if time.ratio is None else f"{time.ratio:.3f}"


def _is_missed_by_time(one: ExpectationRecord) -> bool:
    return one.verdict == MISSED and parse(one.text).what in TIMED


def _expectation(
    one: ExpectationRecord, again: ExpectationRecord | None, second: SecondPass
) -> ExpectationRecord:
    """An expectation that is not met by times, as both passes have it."""
    if not _is_missed_by_time(one):
        return one
    if second.stopped or again is None:
        seen = f"and {second.why_not}"
    elif second.rounds == 1:
        seen = "and the one round that was measured again tells nothing of times"
    elif again.verdict == MISSED:
        return one
    else:
        seen = "met in the second" if again.verdict == MET else f"in the second: {again.reason}"
    reason = f"not met in the first pass, {seen}"
    return one.model_copy(update={"verdict": UNKNOWN, "reason": reason})
