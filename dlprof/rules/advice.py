"""What to write instead, for each producer of a finding: what helps one may not help another."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dlprof.rules.known import Known
from dlprof.rules.survey import by

Advise = Callable[[Known], tuple[str, str]]
"""For a case: the code that is advised, empty if there is none; and the advice in words."""
MOST_TOLD = 6


def for_each_producer(cases: Sequence[Known], advise: Advise) -> str:
    """The advice for the first case of each producer; told apart only where the code differs.

    Times in it are those of the first producer of several.
    """
    firsts = [found[0] for found in by(cases, lambda case: case.pair[0]).values()]
    told = by(((case.pair[0], *advise(case)) for case in firsts), lambda one: one[1])
    texts = {text for found in told.values() for _, _, text in found}
    if len(texts) == 1 or (len(told) == 1 and "" not in told):
        return next(iter(told.values()))[0][2]
    parts = [
        f"From {', likewise '.join(name for name, _, _ in found[:MOST_TOLD])}: {found[0][2]}"
        for found in told.values()
        if found[0][2]
    ]
    more = len(parts) - MOST_TOLD
    return " ".join(parts[:MOST_TOLD]) + (f" And so on for {more} more." if more > 0 else "")
