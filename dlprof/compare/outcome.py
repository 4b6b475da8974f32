"""What a comparison comes to: regressions, doubts, or nothing to compare."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dlprof.analysis.slower import FASTER, SAME, SLOWER, UNSURE
from dlprof.compare.comparison import GONE, INVALID, Compared, Comparison
from dlprof.compare.criteria import Criteria
from dlprof.compare.matching import Key
from dlprof.compare.verdicts import LOST, MEASURED, UNTAKEN, Change
from dlprof.scenario.expectation import MET, MISSED
from dlprof.session.model import ExpectationRecord
from dlprof.text.clean import first_line

BROKEN = ("crashed", "timeout")

NO_VERDICT = "no verdict is known on both sides"

DONE, REGRESSION, NOT_KNOWN, NOTHING = 0, 1, 3, 4


@dataclass(frozen=True)
class Outcome:
    """``slower``, ``worse``, ``gone`` and ``unmet`` are regressions; the others are doubts.

    ``unmet`` is what HEAD's scenario expects and HEAD does not do, ``unchecked`` what could not be
    checked. ``blind`` are verdicts that the criteria name and that nothing looked for on both
    sides. ``lost`` are cases with the measures that HEAD did not look at. ``ambiguous`` are cases
    that a side holds twice. ``untold`` says why no regression could have been seen, ``nothing`` why
    there was nothing to compare; both are empty otherwise. ``times`` says whether times were to be
    judged.
    """

    slower: tuple[Compared, ...] = ()
    worse: tuple[tuple[Compared, Change], ...] = ()
    gone: tuple[Compared, ...] = ()
    unsure: tuple[Compared, ...] = ()
    invalid: tuple[Compared, ...] = ()
    unmet: tuple[ExpectationRecord, ...] = ()
    unchecked: tuple[ExpectationRecord, ...] = ()
    blind: tuple[str, ...] = ()
    lost: tuple[tuple[Compared, tuple[str, ...]], ...] = ()
    ambiguous: tuple[Key, ...] = ()
    untold: str = ""
    nothing: str = ""
    times: bool = True

    @property
    def regression(self) -> bool:
        return bool(self.slower or self.worse or self.gone or self.unmet)

    def code(self, unsure: int = NOT_KNOWN) -> int:
        """The exit code; ``unsure`` is that of a case that is only UNSURE.

        All other doubts were not compared at all: no setting makes a pass of them.
        """
        if self.nothing:
            return NOTHING
        if self.regression:
            return REGRESSION
        doubts = (self.invalid, self.blind, self.lost, self.ambiguous, self.untold, self.unchecked)
        if any(doubts):
            return unsure or NOT_KNOWN
        return unsure if self.unsure else DONE


def outcome(comparison: Comparison, criteria: Criteria) -> Outcome:
    """What the criteria make of a comparison."""
    nothing = _nothing(comparison)
    if nothing:
        return Outcome(nothing=nothing, times=criteria.times)
    cases, expected = comparison.cases, comparison.head.expectations
    looked_at = frozenset[str]().union(*(case.looked_at for case in cases))
    return Outcome(
        slower=tuple(case for case in cases if criteria.times and _has(case, SLOWER)),
        worse=tuple(_worse(comparison, criteria)),
        gone=tuple(case for case in cases if is_gone(case)),
        unsure=tuple(case for case in cases if _is_unsure(case, criteria)),
        invalid=tuple(case for case in cases if _is_invalid(case, criteria)),
        unmet=tuple(one for one in expected if one.verdict == MISSED),
        unchecked=tuple(one for one in expected if one.verdict not in (MET, MISSED)),
        blind=criteria.blind(looked_at),
        lost=tuple((case, named) for case in cases if (named := criteria.measures_of(case.lost))),
        ambiguous=comparison.ambiguous,
        untold=comparison.sightless or _untold(comparison, criteria),
        times=criteria.times,
    )


def is_measured(case: Compared) -> bool:
    """Whether both sides measured it to the end."""
    return set(case.statuses) <= set(MEASURED)


def is_gone(case: Compared) -> bool:
    """Whether BASE has the case and HEAD was asked for it and does not have it."""
    return case.statuses[0] in MEASURED and case.statuses[1] is None and case.asked


def is_unasked(case: Compared) -> bool:
    """Whether BASE has an answer for the case, or tried, and HEAD was not asked for it."""
    tried = case.statuses[0] in (*MEASURED, *BROKEN, UNTAKEN)
    return tried and case.statuses[1] is None and not case.asked


def _worse(comparison: Comparison, criteria: Criteria) -> Iterator[tuple[Compared, Change]]:
    for case in comparison.cases:
        for change in case.changes:
            if criteria.fails(change):
                yield case, change


def _is_invalid(case: Compared, criteria: Criteria) -> bool:
    """Also if it is unknown what HEAD makes of it, or of its time."""
    if _is_unknown(case) and not any(criteria.fails(change) for change in case.changes):
        return True
    if not criteria.times:
        return case.failed_once
    untimed = _has(case, GONE) and case.statuses[1] in MEASURED
    return case.failed_once or case.unconfirmed or untimed or _has(case, INVALID)


def _is_unknown(case: Compared) -> bool:
    """Whether HEAD has no answer, and BASE none that would make a regression of it."""
    base, head = case.statuses
    if base is None:
        return head in BROKEN
    if head is None:
        return is_unasked(case) or (case.asked and base in (*BROKEN, UNTAKEN))
    if base == UNTAKEN:
        return head in (*BROKEN, "unsupported")
    return head in (*BROKEN, UNTAKEN)


def _untold(comparison: Comparison, criteria: Criteria) -> str:
    """Why nothing could have been seen, whatever --unsure makes of a case that is UNSURE."""
    cases = comparison.cases
    if criteria.times and any(case.judged and is_measured(case) for case in cases):
        return "" if {SAME, FASTER, SLOWER} & set(comparison.words()) else "no time could be judged"
    told = any(case.looked_at or case.failed_once or is_gone(case) for case in cases)
    return "" if told or any(_worse(comparison, criteria)) else NO_VERDICT


def _has(case: Compared, word: str) -> bool:
    return any(time.word == word for time in case.times)


def _is_unsure(case: Compared, criteria: Criteria) -> bool:
    """Also if a time or a verdict of BASE is not there in HEAD, for whatever reason."""
    if any(change.direction == LOST for change in case.changes):
        return True
    base, head = case.statuses
    if base == UNTAKEN and head in (*MEASURED, UNTAKEN):
        return True
    return criteria.times and (_has(case, UNSURE) or (_has(case, GONE) and not case.changes))


def _nothing(comparison: Comparison) -> str:
    """Why there is nothing to compare, in one sentence; empty if there is something."""
    cases = comparison.cases
    if comparison.ambiguous and not cases:
        count = len(comparison.ambiguous)
        return f"no case can be matched: {count:,} stand more than once in BASE or in HEAD"
    for place, name in enumerate(("BASE", "HEAD")):
        if not any(case.statuses[place] for case in cases):
            return f"{name} holds no case"
    both = [case for case in cases if all(case.statuses)]
    if not both:
        return "BASE and HEAD have no case in common: they are of different scenarios"
    if any(is_gone(case) or _is_compared(case) for case in cases):
        return ""
    for place, name in enumerate(("BASE", "HEAD")):
        status, reason = both[0].statuses[place], first_line(both[0].reasons[place])
        if not any(case.statuses[place] in MEASURED for case in both):
            return f"{name} measured no case that both have: {status}: {reason}"
    return "no case was measured on both sides"


def _is_compared(case: Compared) -> bool:
    """Whether both sides measured it, in one of two passes at least, or HEAD is the worse."""
    return is_measured(case) or case.failed_once or any(change.worse for change in case.changes)
