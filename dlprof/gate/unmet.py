"""What is expected of HEAD, takes times to tell and is not met fails only where two passes agree.

What takes none is what it is, and fails at once.
"""

from __future__ import annotations

from dataclasses import replace

from dlprof.compare.match import Key, key
from dlprof.compare.record import Comparison
from dlprof.scenario.expectation import MET, MISSED, TIMED, UNKNOWN, parse
from dlprof.session.model import ExpectationRecord


def of_unmet(first: Comparison) -> frozenset[Key]:
    """The cases that are measured again for what is not met: those of HEAD that it is about, and
    the other direction, which some rules compare them with.
    """
    patterns = [parse(one.text).pair for one in first.head.expectations if _by_times(one)]
    found = set()
    for case in first.cases:
        pair = (case.case.producer, case.case.consumer)
        meant = any(one.matches(pair) or one.matches(pair[::-1]) for one in patterns)
        if meant and case.statuses[1] is not None:
            found.add(key(case.case))
    return frozenset(found)


def agreed(
    first: Comparison, second: Comparison | None, stopped: bool = False, rounds: int = 2
) -> Comparison:
    """The first pass, with what the second makes of each expectation that is not met.

    ``second`` is None where there was none, and of so many ``rounds``, of which one tells nothing
    of times; where it was ``stopped`` it says nothing. What there is no case of to measure again is
    left.
    """
    if not of_unmet(first):
        return first
    again = {one.text: one for one in (second.head.expectations if second else ())}
    expectations = [
        _judged(one, again.get(one.text), stopped, rounds) for one in first.head.expectations
    ]
    head = first.head.model_copy(update={"expectations": expectations})
    return replace(first, head=head)


def _by_times(one: ExpectationRecord) -> bool:
    return one.verdict == MISSED and parse(one.text).what in TIMED


def _judged(
    one: ExpectationRecord, again: ExpectationRecord | None, stopped: bool, rounds: int
) -> ExpectationRecord:
    if not _by_times(one):
        return one
    if stopped:
        seen = "and it was stopped before it was measured again"
    elif again is None:
        seen = "and there was no time to measure it again"
    elif rounds == 1:
        seen = "and the one round that was measured again tells nothing of times"
    elif again.verdict == MISSED:
        return one
    else:
        seen = "met in the second" if again.verdict == MET else f"in the second: {again.reason}"
    reason = f"not met in the first pass, {seen}"
    return one.model_copy(update={"verdict": UNKNOWN, "reason": reason})
