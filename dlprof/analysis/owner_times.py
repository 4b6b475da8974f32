"""What the processes took that made a view, and what those that made a copy."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from dlprof.analysis.case_view import CaseView, seen
from dlprof.analysis.quantity import plain_time, range_text
from dlprof.session.model import Result

OWNERS = ("view", "copy")


def medians_ns(result: Result) -> dict[int, float]:
    """The median ready time of each process, by its round."""
    ready = CaseView(0, result).ready
    found = {
        one.round: statistics.median(one.samples_ns)
        for one in (ready.processes if ready is not None else ())
        if one.samples_ns
    }
    return {round_: ns for round_, ns in found.items() if ns > 0}


def by_process(result: Result) -> list[tuple[str, float | None]]:
    """View or copy and the time of each process, where processes disagree; else nothing.

    A process looks at the array that it timed. None is a time that is not known; nothing is told
    where it is not known which look is which process's.
    """
    verdict = result.ownership
    looks = [word for word, _ in seen(verdict)]
    if verdict is None or verdict.verdict != "varies" or len(looks) != len(result.rounds):
        return []
    times = medians_ns(result)
    return [(word, times.get(round_)) for word, round_ in zip(looks, result.rounds, strict=True)]


def owner_times_text(result: Result) -> str:
    """``as a view 14-16 us in 3 processes, as a copy 44 us in 1``; empty if not known."""
    found: dict[str, list[float]] = {word: [] for word in OWNERS}
    for word, ns in by_process(result):
        if word in found and ns is not None:
            found[word].append(ns)
    if not all(found.values()):
        return ""
    first, second = (_of(word, times) for word, times in found.items())
    count = len(found[OWNERS[0]])
    return (
        f"{first} in {count} process{'' if count == 1 else 'es'}, {second} in {len(found['copy'])}"
    )


def _of(word: str, times: Sequence[float]) -> str:
    low, high = plain_time(min(times)), plain_time(max(times))
    return f"as a {word} {low if low == high else range_text(min(times), max(times))}"
