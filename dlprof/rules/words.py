"""Findings in words: codes, times, and what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dlprof.analysis.case_view import CaseView
from dlprof.analysis.cases import Cases, by
from dlprof.analysis.quantity import brief_text, is_wide, plain_time, process_medians, times_text
from dlprof.analysis.slower import is_known
from dlprof.plan.axes import shape_text
from dlprof.session.model import TimeMeasure
from dlprof.text.lists import listed

LONGEST_CODE = 160
ALIKE = 1.1
"""Times of a smaller ratio are not compared in words."""


def codes(cases: Sequence[CaseView]) -> str:
    """The code of the paths, at most three, and how many more there are."""
    return listed(dict.fromkeys(code(case) for case in cases))


def code(case: CaseView) -> str:
    return case.code if len(case.code) <= LONGEST_CODE else f"{case.code[: LONGEST_CODE - 1]}…"


def several(cases: Sequence[CaseView], one: str, many: str) -> str:
    """``one`` for one path, ``many`` for several."""
    return one if len({case.code for case in cases}) == 1 else many


def where(case: CaseView, cases: Sequence[CaseView]) -> str:
    """Which array a number is of, where the cases are of several: `` for 4x4 float32``."""
    if len({other.spec for other in cases}) == 1:
        return ""
    shape, dtype, layout, _ = case.spec
    return f" for {shape_text(shape)} {dtype} {layout}"


def of_first(cases: Sequence[CaseView]) -> str:
    """Of which case an evidence is, where there are several: ``; for instance the first, from a
    to b for 4x4 float32 C``. The clearest one stands first, in ``cases`` and so in :func:`codes`.
    """
    first = cases[0]
    which = "the first" if several(cases, "", "many") else ""
    pair = f"from {first.pair_text}" if of_pair(first, cases) else ""
    told = ", ".join(filter(None, (which, pair))) + where(first, cases)
    instance = "for instance " if which or pair else ""
    return f"; {instance}{told.lstrip()}" if told else ""


def of_pair(case: CaseView, cases: Sequence[CaseView]) -> str:
    """Which pair something is said of, where the cases are of several: `` from a to b``."""
    return "" if len({other.pair for other in cases}) <= 1 else f" from {case.pair_text}"


def shared(cases: Sequence[CaseView], text: Callable[[CaseView], str]) -> str:
    """``: text`` where it is the same of all cases; else of the first, which is named."""
    of = "" if len({text(case) for case in cases}) == 1 else of_first(cases)
    return f"{of}: {text(cases[0])}"


def time(case: CaseView) -> str:
    """``5.0 us``; of modes all: ``0.14 | 0.41 ms``; ``190-840 us`` where processes differ."""
    if case.ready is None:
        return plain_time(case.cost_ns)
    return time_text(case.ready)


def time_text(measure: TimeMeasure) -> str:
    """The same of any time."""
    return brief_text(measure, process_medians(measure))


def instead_of(case: CaseView, other: CaseView, what: str) -> str:
    """``f(x) is a view: 74 us instead of 400 us, 5.4 times as fast.``

    Nothing is told of a time that is not known to be the path's own, nor of one that keeps what it
    made with the array: what was timed is the same array again.
    """
    found = f"{code(other)} {what}"
    if other.kept and other.owner == "copy":
        return f"{found}; a new array takes longer than the same again."
    if case.ready is None or other.ready is None or not is_known(other.ready):
        return f"{found}."
    if not is_known(case.ready):
        return f"{found}: {time(other)}."
    if _is_as_long(case.ready, other.ready):
        return f"{found}, and takes about as long: {time(other)}."
    return f"{found}: {time(other)} instead of {time(case)}{_ratio(case.ready, other.ready)}."


def _is_as_long(before: TimeMeasure, after: TimeMeasure) -> bool:
    """Whether there is no difference worth a word: of times that differ from process to process
    none is compared.
    """
    if is_wide(before) or is_wide(after) or min(before.median_ns, after.median_ns) <= 0:
        return False
    return ALIKE > before.median_ns / after.median_ns > 1 / ALIKE


def _ratio(before: TimeMeasure, after: TimeMeasure) -> str:
    if min(before.median_ns, after.median_ns) <= 0:
        return ""
    faster = before.median_ns >= after.median_ns
    times = _times(before, after) if faster else _times(after, before)
    return f", {times} times as {'fast' if faster else 'long'}" if times else ""


def longer_text(longer: CaseView, shorter: CaseView, than: str) -> str:
    """``: 3.3 times as long as the fastest``; empty where the times tell no ratio."""
    times = _times(longer.ready, shorter.ready) if longer.ready and shorter.ready else ""
    return f": {times} times{than}" if times else ""


def _times(longer: TimeMeasure, shorter: TimeMeasure) -> str:
    return times_text(longer, shorter, process_medians(longer), process_medians(shorter))


Advise = Callable[[CaseView], tuple[str, str]]
"""For a case: the code that is advised, with its conditions, empty if there is none; and the advice
in words."""
MOST_TOLD = 6


def for_each_producer(cases: Sequence[CaseView], advise: Advise) -> str:
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


def _cause(advised: tuple[CaseView, str, str]) -> str:
    case, code, text = advised
    return code or text.replace(case.pair_text, "")


def none_instead(survey: Cases, case: CaseView, what: str) -> str:
    """That nothing can be advised, and what is right all the same, where it is of another kind: who
    asked for a copy needs one. ``what`` is what it would have to do, such as ``keeps it``.
    """
    right = [one for one in survey.arrays[case.array] if one.right]
    safe = [one for one in right if survey.is_safe(one)]
    if not safe:
        return f"No measured path {'that is safe ' if right else ''}{what}."
    none = f"No measured path of its kind {what}"
    there = next((one for one in safe if one.result_device == case.result_device), None)
    if there is None:
        return f"{none}."
    kind = {"view": ", and is a view", "copy": ", and is a copy"}.get(there.owner or "", "")
    return f"{none}; {code(there)} does{kind}."
