"""What to write instead, for each producer of a finding: what helps one may not help another."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dlprof.analysis.known import Known
from dlprof.rules import words
from dlprof.rules.survey import Survey, by

Advise = Callable[[Known], tuple[str, str]]
"""For a case: the code that is advised, with its conditions, empty if there is none; and the advice
in words."""
MOST_TOLD = 6


def for_each_producer(cases: Sequence[Known], advise: Advise) -> str:
    """The advice for the first case of each producer; told apart only where the code differs or,
    where none is advised, the words.

    Times in it are those of the first producer of several.
    """
    if not cases:
        return ""
    firsts = [found[0] for found in by(cases, lambda case: case.pair[0]).values()]
    told = by(((case, *advise(case)) for case in firsts), _cause)
    texts = {text for found in told.values() for _, _, text in found}
    first = next(iter(told.values()))[0]
    if len(texts) == 1 or (len(told) == 1 and first[1]):
        return first[2]
    parts = [
        f"From {', likewise '.join(case.pair[0] for case, _, _ in found[:MOST_TOLD])}: {text}"
        for found in told.values()
        if (text := found[0][2])
    ]
    more = len(parts) - MOST_TOLD
    return " ".join(parts[:MOST_TOLD]) + (f" And so on for {more} more." if more > 0 else "")


def _cause(advised: tuple[Known, str, str]) -> str:
    case, code, text = advised
    return code or text.replace(case.pair_text, "")


def none_instead(survey: Survey, case: Known, what: str) -> str:
    """That nothing can be advised, and what is right all the same, where it is of another kind: who
    asked for a copy needs one. ``what`` is what it would have to do, such as ``keeps it``.
    """
    right = [one for one in survey.arrays[case.array] if one.right]
    safe = [one for one in right if survey.safe(one)]
    if not safe:
        return f"No measured path {'that is safe ' if right else ''}{what}."
    none = f"No measured path of its kind {what}"
    there = next((one for one in safe if one.result_device == case.result_device), None)
    if there is None:
        return f"{none}."
    kind = {"view": ", and is a view", "copy": ", and is a copy"}.get(there.owner or "", "")
    return f"{none}; {words.code(there)} does{kind}."
