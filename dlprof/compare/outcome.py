"""What a comparison comes to: regressions, doubts, or nothing to compare."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dlprof.compare.criteria import Criteria
from dlprof.compare.decision import FASTER, SAME, SLOWER, UNSURE
from dlprof.compare.match import Key
from dlprof.compare.record import GONE, INVALID, TIMED, Compared, Comparison
from dlprof.compare.verdicts import LOST, UNTAKEN, Change
from dlprof.scenario.expectation import MET, MISSED
from dlprof.session.model import ExpectationRecord
from dlprof.text.clean import first_line

BROKEN = ("crashed", "timeout")

NO_VERDICT = "no verdict is known on both sides"

DONE, REGRESSION, NOT_KNOWN, NOTHING = 0, 1, 3, 4


@dataclass(frozen=True)
class Outcome:
    """``slower``, ``worse``, ``gone`` are regressions; ``unsure`` and ``invalid`` are doubts.

    So are what HEAD's scenario expects of it: a regression what it does not do (``unmet``), a doubt
    what could not be checked. ``blind`` are verdicts that the criteria name and that nothing looked
    for on both sides, ``lost`` cases with what of that HEAD did not look at, ``ambiguous``
    cases that a side holds more than once. ``untold`` says why no slowdown could have been seen
    (where only verdicts are judged: no change of them), ``nothing`` why there was nothing to
    compare; both are empty where that is not so. ``times`` is whether times were to be judged.
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

        What is INVALID, named or expected and not looked for, or ambiguous was not compared, and of
        what is ``untold`` nothing was: no setting makes a pass of it.
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
    cases = comparison.cases
    return Outcome(
        slower=tuple(case for case in cases if criteria.times and _has(case, SLOWER)),
        worse=tuple(_worse(comparison, criteria)),
        gone=tuple(case for case in cases if vanished(case)),
        unsure=tuple(case for case in cases if _is_unsure(case, criteria)),
        invalid=tuple(case for case in cases if _is_invalid(case, criteria)),
        unmet=tuple(one for one in comparison.head.expectations if one.verdict == MISSED),
        unchecked=tuple(
            one for one in comparison.head.expectations if one.verdict not in (MET, MISSED)
        ),
        blind=criteria.blind(frozenset().union(*(case.looked_at for case in cases))),
        lost=tuple((case, named) for case in cases if (named := criteria.measures_of(case.lost))),
        ambiguous=comparison.ambiguous,
        untold=comparison.sightless or _untold(comparison, criteria),
        times=criteria.times,
    )


def vanished(case: Compared) -> bool:
    """Whether BASE has the case and HEAD was asked for it and does not have it."""
    return case.statuses[0] in TIMED and case.statuses[1] is None and case.asked


def is_unasked(case: Compared) -> bool:
    """Whether BASE has an answer for the case, or tried, and HEAD was not asked for it."""
    return (
        case.statuses[0] in (*TIMED, *BROKEN, UNTAKEN)
        and case.statuses[1] is None
        and not case.asked
    )


def _worse(comparison: Comparison, criteria: Criteria) -> Iterator[tuple[Compared, Change]]:
    for case in comparison.cases:
        for change in case.changes:
            if criteria.fails(change):
                yield case, change


def _is_invalid(case: Compared, criteria: Criteria) -> bool:
    """Also where nobody knows what HEAD makes of it, or of its time."""
    if _is_unknown(case) and not any(criteria.fails(change) for change in case.changes):
        return True
    if not criteria.times:
        return case.failed_once
    untimed = _has(case, GONE) and case.statuses[1] in TIMED
    return case.failed_once or case.unconfirmed or untimed or _has(case, INVALID)


def _is_unknown(case: Compared) -> bool:
    """Whether HEAD has no answer, and BASE none that would make a regression of it: it crashes or
    hangs, HEAD did not come to it or was not asked for it; or it refuses what BASE did not come to.
    """
    base, head = case.statuses
    if base is None:
        return head in BROKEN
    if head is None:
        return is_unasked(case) or (case.asked and base in (*BROKEN, UNTAKEN))
    if base == UNTAKEN:
        return head in (*BROKEN, "unsupported")
    return head in (*BROKEN, UNTAKEN)


def _untold(comparison: Comparison, criteria: Criteria) -> str:
    """Why nothing could have been seen, whatever --unsure makes of a case that is UNSURE: no
    slowdown, or no change of verdict where only these are asked for.
    """
    cases = comparison.cases
    if criteria.times and any(case.judged and set(case.statuses) <= set(TIMED) for case in cases):
        return "" if {SAME, FASTER, SLOWER} & set(comparison.words()) else "no time could be judged"
    told = any(case.looked_at or case.failed_once or vanished(case) for case in cases)
    return "" if told or any(_worse(comparison, criteria)) else NO_VERDICT


def _has(case: Compared, word: str) -> bool:
    return any(time.word == word for time in case.times)


def _is_unsure(case: Compared, criteria: Criteria) -> bool:
    """Also where a time or a verdict of BASE is not there in HEAD, for whatever reason."""
    if any(change.direction == LOST for change in case.changes):
        return True
    base, head = case.statuses
    if base == UNTAKEN and head in (*TIMED, UNTAKEN):
        return True
    return criteria.times and (_has(case, UNSURE) or (_has(case, GONE) and not case.changes))


def _nothing(comparison: Comparison) -> str:
    """Why there is nothing to compare, in one sentence."""
    if comparison.ambiguous and not comparison.cases:
        return (
            f"no case can be matched: {len(comparison.ambiguous):,} stand more than once in BASE or"
            " in HEAD, and which is meant cannot be told"
        )
    for place, name in enumerate(("BASE", "HEAD")):
        if not any(case.statuses[place] for case in comparison.cases):
            return f"{name} holds no case"
    both = [case for case in comparison.cases if all(case.statuses)]
    if not both:
        return _nothing_common(comparison.cases)
    return "" if any(map(vanished, comparison.cases)) else _nothing_of(both)


def _nothing_common(cases: Sequence[Compared]) -> str:
    old, new = (
        {case.environment for case in cases if case.statuses[place] is not None} for place in (0, 1)
    )
    if old & new:
        return "BASE and HEAD have no case in common: they are of different scenarios"
    names = [", ".join(sorted(filter(None, side))) or "one without a name" for side in (old, new)]
    return f"BASE and HEAD have no environment in common: {names[0]} and {names[1]}"


def _nothing_of(both: Sequence[Compared]) -> str:
    """The same, of the cases that both sides have."""
    for place, name in enumerate(("BASE", "HEAD")):
        if all(case.statuses[place] == UNTAKEN for case in both):
            return f"{name} came to no case: {first_line(both[0].reasons[place])}"
    if any(_is_compared(case) for case in both):
        return ""
    base, head = (any(case.statuses[place] in TIMED for case in both) for place in range(2))
    if not base and not head:
        return "no case that both have was measured in either"
    if base:
        return "no case was measured on both sides"
    word, reason = both[0].statuses[0], first_line(both[0].reasons[0])
    if all(case.statuses[0] == "unsupported" for case in both):
        return f"BASE refuses every case that HEAD has: {reason}"
    return f"BASE measured no case that HEAD has: {word}: {reason}"


def _is_compared(case: Compared) -> bool:
    """Whether both sides measured it, in one of two passes at least, or HEAD is the worse."""
    measured = set(case.statuses) <= set(TIMED) or case.failed_once
    return measured or any(change.worse for change in case.changes)
