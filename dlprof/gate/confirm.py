"""A regression is one that two passes in fresh processes agree on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from dlprof.compare.criteria import Criteria
from dlprof.compare.decision import FASTER, SAME, SLOWER, UNSURE
from dlprof.compare.match import Key, key
from dlprof.compare.outcome import outcome
from dlprof.compare.record import GONE, INVALID, Compared, Comparison, Time
from dlprof.compare.verdicts import CRASHED, LOST, Change


def flagged(comparison: Comparison, criteria: Criteria) -> frozenset[Key]:
    """The cases that would fail, and that HEAD has: they are to be measured again."""
    found = outcome(comparison, criteria)
    cases = [*found.slower, *(case for case, _ in found.worse)]
    return frozenset(key(case.case) for case in cases if case.statuses[1] is not None)


def confirmed(
    first: Comparison,
    second: Comparison | None,
    cases: frozenset[Key],
    criteria: Criteria,
    stopped: bool = False,
) -> Comparison:
    """The first pass with what the second makes of ``cases``; None where there was none.

    Where the second was ``stopped``, what it did not see says nothing.
    """
    again = {key(case.case): case for case in (second.cases if second else ())}
    return replace(
        first,
        cases=tuple(
            _judged(case, again.get(key(case.case)), criteria, stopped)
            if key(case.case) in cases
            else case
            for case in first.cases
        ),
    )


def _judged(case: Compared, again: Compared | None, criteria: Criteria, stopped: bool) -> Compared:
    times = {time.measure: time for time in (again.times if again else ())}
    changes = tuple(_change(change, again, criteria, stopped) for change in case.changes)
    pairs = () if stopped else zip(case.changes, changes, strict=True)
    crash = [old for old, new in pairs if _unconfirmed(old, new)]
    crash += _only_again(case, again, criteria)
    why_not = (
        "it was stopped before it was measured again"
        if stopped
        else "there was no time to measure it again"
    )
    judged = tuple(_time(time, times, why_not) for time in case.times)
    if crash:
        # It failed once, so that it is no pass whatever --unsure says.
        what = "" if crash[0].what == "status" else f"{crash[0].what.replace('_', ' ')}: "
        reason = f"{what}{crash[0].after} in one of two passes"
        judged = tuple(replace(time, word=INVALID, reason=reason) for time in judged)
    words = [(old.word, new.word) for old, new in zip(case.times, judged, strict=True)]
    return replace(
        case,
        times=judged,
        changes=(*changes, *_late(case, again, criteria)),
        failed_once=bool(crash),
        unconfirmed=(SLOWER, UNSURE) in words,
    )


def _late(case: Compared, again: Compared | None, criteria: Criteria) -> Iterator[Change]:
    """Verdicts that only the second pass saw worse: nobody can be sure of those either."""
    before = {change.what for change in case.changes}
    for change in again.changes if again else ():
        if change.what not in before and not _is_crash(change) and criteria.fails(change):
            after = f"{change.after} (in the second pass only)"
            yield replace(change, after=after, direction=LOST, severity="info")


def _only_again(case: Compared, again: Compared | None, criteria: Criteria) -> list[Change]:
    """Failing changes of status and crashes in the diagnosis that only the second pass saw."""
    before = {change.what for change in case.changes}
    return [
        change
        for change in (again.changes if again else ())
        if _is_crash(change) and change.what not in before and criteria.fails(change)
    ]


def _is_crash(change: Change) -> bool:
    """Whether the conversion fails, or an instrument that looks at it."""
    return change.what == "status" or change.after == CRASHED


def _unconfirmed(old: Change, new: Change) -> bool:
    return _is_crash(old) and new != old


def _time(time: Time, again: Mapping[str, Time], why_not: str) -> Time:
    if time.word != SLOWER:
        return time
    second = again.get(time.measure)
    if second is None:
        reason = f"{_ratio(time)} times as long, and {why_not}"
        return replace(time, word=UNSURE, reason=reason)
    said = f"{_ratio(time)} times as long in the first pass, {_ratio(second)} in the second"
    if second.word == SLOWER:
        return replace(time, note="; ".join(filter(None, (said, time.note))))
    if second.word in (INVALID, GONE):
        return replace(time, word=INVALID, reason=f"{said}: {second.word} {second.reason}".strip())
    if second.word in (SAME, FASTER):
        return replace(time, word=SAME if second.word == SAME else UNSURE, reason=said)
    why = f": {second.reason}" if second.reason else ""
    return replace(time, word=UNSURE, reason=f"{said}{why}")


def _ratio(time: Time) -> str:
    return "no known number of" if time.ratio is None else f"{time.ratio:.3f}"


def _change(change: Change, again: Compared | None, criteria: Criteria, stopped: bool) -> Change:
    """The change if the second pass saw it too; else one that nobody can be sure of."""
    if not criteria.fails(change):
        return change
    if again is not None and any(
        (other.what, other.after) == (change.what, change.after)
        or (other.what == change.what and criteria.fails(other))
        for other in again.changes
    ):
        return change
    looked = again is not None and not stopped
    seen = "not seen again" if looked else "not looked at again"
    return replace(change, after=f"{change.after} ({seen})", direction=LOST, severity="info")
