"""How many rounds a gate has time for.

Most cases of equal code are decided after 8 to 16 rounds and measured no more. What is left of a
later round is mostly its imports, so that a case which takes longer to tell has more rounds than a
gate would have time for that measures all cases to the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from dlprof.compare.sequential import Plan


@dataclass(frozen=True)
class RoundCost:
    """Seconds of a round of all cases: for processes and imports, and for the cases together."""

    loading_s: float
    cases_s: float

    def of(self, share: float) -> float:
        """Seconds of a round of this share of the cases; all processes import all the same."""
        return self.loading_s + share * self.cases_s


def fitting(plan: Plan, lasts: Sequence[Sequence[int]], cost: RoundCost, time_s: float) -> int:
    """The rounds of the last look of the plan that ``time_s`` is enough for, at least the first.

    ``lasts`` is, of each case, after how many rounds gates of equal code measure it no more
    (:func:`dlprof.gate.power.lasting`).
    """
    found, needed_s = plan.looks[0], 0.0
    for before, rounds in pairwise((0, *plan.looks)):
        needed_s += (rounds - before) * cost.of(_open(lasts, before))
        if needed_s <= time_s:
            found = rounds
    return found


def _open(lasts: Sequence[Sequence[int]], rounds: int) -> float:
    """The share of the cases that is still measured after so many rounds, in the mean."""
    shares = [sum(last > rounds for last in one) / len(one) for one in lasts if one]
    return sum(shares) / len(shares) if shares else 0.0
