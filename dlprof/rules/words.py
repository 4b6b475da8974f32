"""Findings in words: which paths, their times, and what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dlprof.analysis.case_view import CaseView
from dlprof.analysis.cases import Cases, by
from dlprof.analysis.quantity import brief_text, plain_time, process_medians
from dlprof.analysis.slower import is_known
from dlprof.plan.axes import shape_text
from dlprof.session.model import TimeMeasure
from dlprof.text.clean import listed

LONGEST_CODE = 160
MOST_TOLD = 6


def paths(cases: Sequence[CaseView]) -> str:
    """``1 path``, ``3 paths``: how many the cases are of."""
    count = _count(cases)
    return "1 path" if count == 1 else f"{count:,} paths"


def subject(cases: Sequence[CaseView]) -> str:
    """``f(x)``, or ``f(x) and 2 more paths``: the clearest case stands first."""
    more = _count(cases) - 1
    others = "" if not more else f" and {more:,} more path{'' if more == 1 else 's'}"
    return f"{code(cases[0])}{others}"


def several(cases: Sequence[CaseView], one: str, many: str) -> str:
    """``one`` for one path, ``many`` for several."""
    return one if _count(cases) == 1 else many


def _count(cases: Sequence[CaseView]) -> int:
    return len({(case.pair, case.code) for case in cases})


def code(case: CaseView) -> str:
    return case.code if len(case.code) <= LONGEST_CODE else f"{case.code[: LONGEST_CODE - 1]}…"


def example(cases: Sequence[CaseView]) -> str:
    """Which of several cases a number is of: `` (the first, a to b, 4x4 float32 C)``; empty where
    there is one case only. The clearest one stands first.
    """
    first = cases[0]
    told = ["the first"] if _count(cases) > 1 else []
    if len({case.pair for case in cases}) > 1:
        told.append(first.pair_text)
    if len({case.spec for case in cases}) > 1:
        shape, dtype, layout, _ = first.spec
        told.append(f"{shape_text(shape)} {dtype} {layout}")
    return f" ({', '.join(told)})" if told else ""


def time(case: CaseView) -> str:
    """``5.0 us``; of modes all: ``0.14 | 0.41 ms``; ``190-840 us`` where processes differ."""
    return plain_time(case.cost_ns) if case.ready is None else time_text(case.ready)


def time_text(measure: TimeMeasure) -> str:
    """The same of any time."""
    return brief_text(measure, process_medians(measure))


def instead_of(case: CaseView, other: CaseView, what: str) -> str:
    """``f(x) is a view: 74 us instead of 400 us.``

    A time is left out if it may be that of other programs, or of a framework that keeps its
    result with the array: then the same array was timed again.
    """
    found = f"{code(other)} {what}"
    if other.kept and other.owner == "copy":
        return f"{found}. A new array takes longer than the same array again."
    if case.ready is None or other.ready is None or not is_known(other.ready):
        return f"{found}."
    if not is_known(case.ready):
        return f"{found}: {time(other)}."
    return f"{found}: {time(other)} instead of {time(case)}."


Advise = Callable[[CaseView], tuple[str, str]]
"""For a case: the code that is advised, with its conditions, empty if there is none; and the advice
in words."""


def advised(case: CaseView, other: CaseView | None, what: str) -> tuple[str, str]:
    """What an :data:`Advise` says of another path: nothing where there is none."""
    return ("", "") if other is None else (other.code, instead_of(case, other, what))


def for_each_producer(cases: Sequence[CaseView], advise: Advise) -> str:
    """The advice for the first case of each producer; told apart only where the code differs or,
    where none is advised, the words. Times in it are those of the first producer of several.
    """
    firsts = [found[0] for found in by(cases, lambda case: case.pair[0]).values()]
    told = [(case.pair[0], case.pair_text, *advise(case)) for case in firsts]
    alike = by(told, lambda one: one[2] or one[3].replace(one[1], ""))
    texts = {one[3] for one in told}
    if len(alike) == 1 and (len(texts) == 1 or told[0][2]):
        return told[0][3]
    parts = [
        f"From {', '.join(one[0] for one in found[:MOST_TOLD])}: {found[0][3]}"
        for found in alike.values()
        if found[0][3]
    ]
    more = len(parts) - MOST_TOLD
    return " ".join(parts[:MOST_TOLD]) + (f" And so on for {more} more." if more > 0 else "")


def none_instead(cases: Cases, case: CaseView, what: str) -> str:
    """That nothing can be advised; and what is right all the same, where it is of another kind:
    code that asks for a copy needs one. ``what`` is what it would have to do: ``keeps it``.
    """
    right = [one for one in cases.arrays[case.array] if one.right]
    safe = [one for one in right if cases.may_be_advised(one)]
    if not safe:
        return f"No measured path {'that is safe ' if right else ''}{what}."
    none = f"No measured path of its kind {what}."
    there = next((one for one in safe if one.result_device == case.result_device), None)
    if there is None:
        return none
    kind = {"view": ", and is a view", "copy": ", and is a copy"}.get(there.owner or "", "")
    return f"{none} {code(there)} does{kind}."


def or_else(advice: str) -> str:
    """What is advised besides what always helps; empty where there is nothing."""
    return f" Or: {advice}" if advice else ""


def named(codes: Sequence[str]) -> str:
    """The first of several names, and how many more there are."""
    return listed(dict.fromkeys(codes))
