"""A regression is what two passes in fresh processes agree on."""

from __future__ import annotations

from dataclasses import replace

from dlprof.analysis.slower import SAME, SLOWER
from dlprof.compare.comparison import INVALID, WORSE, Compared, Comparison, judged
from dlprof.compare.criteria import Criteria
from dlprof.compare.matching import Key, key
from dlprof.compare.times import Time
from dlprof.compare.verdicts import LOST, Change


def flagged(comparison: Comparison, *words: str) -> frozenset[Key]:
    """The cases that would fail, and that HEAD has: they are to be measured again."""
    found = comparison.having(*(words or (SLOWER, WORSE)))
    return frozenset(key(case.case) for case in found if case.statuses[1] is not None)


def confirmed(first: Comparison, second: Comparison | None, why_not: str) -> Comparison:
    """The first pass with what the second makes of the cases that it flagged.

    ``why_not`` says why there is no second word on a case, if there is none.
    """
    again = {key(case.case): case for case in (second.cases if second else ())}
    criteria, names = first.settings.criteria, flagged(first)
    cases = [
        _confirmed(case, again.get(key(case.case)), why_not, criteria)
        if key(case.case) in names
        else case
        for case in first.cases
    ]
    return replace(first, cases=tuple(cases))


def _confirmed(
    case: Compared, again: Compared | None, why_not: str, criteria: Criteria
) -> Compared:
    times = tuple(
        _time(time, again, why_not) if time.word == SLOWER else time for time in case.times
    )
    changes = [
        change if not criteria.fails(change) or _is_seen(change, again, criteria) else _lost(change)
        for change in case.changes
    ]
    once = [old for old, new in zip(case.changes, changes, strict=True) if new is not old]
    known = {change.what for change in case.changes}
    if again is not None:
        for change in again.changes:
            if criteria.fails(change) and change.what not in known:
                once.append(change)
                changes.append(_lost(change))
    crashes = [str(change) for change in once if change.is_crash]
    # It failed once, so it is no pass whatever --unsure says.
    doubt = f"{crashes[0]} in one of two passes" if crashes else case.doubt
    return judged(replace(case, times=times, changes=tuple(changes), doubt=doubt), criteria)


def _is_seen(change: Change, again: Compared | None, criteria: Criteria) -> bool:
    """Whether the second pass saw the change too, or another one for the worse in its place."""
    return again is not None and any(
        other.what == change.what and (other.after == change.after or criteria.fails(other))
        for other in again.changes
    )


def _lost(change: Change) -> Change:
    """What only one pass saw: nobody can be sure of it."""
    after = f"{change.after} (in one pass only)"
    return replace(change, after=after, direction=LOST, severity="info")


def _time(first: Time, again: Compared | None, why_not: str) -> Time:
    """What is SLOWER in the first pass, with the word that both passes give it.

    If the second pass does not refute it, it is INVALID: no option makes a pass of it.
    """
    second = (
        next((one for one in again.times if one.measure == first.measure), None) if again else None
    )
    if second is None:
        reason = f"{_ratio(first)} times as long, and {why_not}"
        return replace(first, word=INVALID, reason=reason)
    told = f"{_ratio(first)} times as long in the first pass, {_ratio(second)} in the second"
    if second.word == SLOWER:
        return replace(first, note="; ".join(filter(None, (told, first.note))))
    if second.word == SAME:
        return replace(first, word=SAME, note=told)
    reason = f"{told}: {second.word}" + (f", {second.reason}" if second.reason else "")
    return replace(first, word=INVALID, reason=reason)


def _ratio(time: Time) -> str:
    return "no known number of" if time.ratio is None else f"{time.ratio:.3f}"
