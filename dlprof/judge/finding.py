"""A finding in words: which paths, what they do, what it costs, and what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from dlprof.judge.case_view import CaseView
from dlprof.judge.cases import Cases, by
from dlprof.judge.rule import Severity
from dlprof.runner.axes import shape_text
from dlprof.runner.quantity import brief_text, is_wide, plain_time, times_text
from dlprof.runner.session import FindingRecord
from dlprof.runner.survey import label_of
from dlprof.text.clean import listed

LONGEST_CODE = 160
MOST_ADVICE = 6
MOST_ARRAYS = 3
NONE_INSTEAD = "No measured path is known to replace it."
DO_NOT_TRY = "Do not try the call to find out whether it works."


class Claim(NamedTuple):
    """What paths do, as a sentence of at most 20 words without its subject."""

    verb: tuple[str, str]
    """Of one path, and of several."""
    rest: str = ""
    numbers: str = ""
    """The end of the sentence in the summary; of several cases these are the first's."""
    brief: str = ""
    """A sentence that follows in the headline."""
    more: str = ""
    """Sentences that follow in the summary."""
    single: str | None = None
    """The end of the headline, where ``numbers`` has ranges or more than the reader needs."""
    is_named: bool = False
    """Whether the headline names the first path, and does not only count them."""


def finding(
    cases: Sequence[CaseView],
    claim: Claim,
    evidence: Mapping[str, Any],
    advice: str = "",
    against: CaseView | None = None,
    severity: Severity | None = None,
    how_often: str = "",
) -> FindingRecord:
    """A finding of ``cases``, the clearest one first, before it has its rule's name.

    ``evidence`` has units in its names; ``cost_ns`` is what the finding costs per call. ``advice``
    names only paths that were measured. ``against`` is what the first case is compared with.
    ``severity`` is that of a rule whose findings differ in it. ``how_often`` is a sentence that
    holds for all ``cases``: in how many processes it was seen, where that is not in all.
    """
    first, count = cases[0], count_paths(cases)
    paths = "1 path" if count == 1 else f"{count:,} paths"
    others = {1: "", 2: " and 1 more path"}.get(count, f" and {count - 1:,} more paths")
    named = f"{code(first)}{others}"
    where = _among(cases)
    said = f"{claim.verb[count > 1]} {claim.rest}".strip() + where
    told = f": {claim.numbers}" if claim.numbers else ""
    single = told if claim.single is None else f": {claim.single}" if claim.single else ""
    which = _which(cases) if claim.numbers else ""
    brief, more = (f"{text} {how_often}".strip() for text in (claim.brief, claim.more))
    return FindingRecord(
        rule="",
        name="",
        severity=severity or "",
        results=[case.index for case in cases],
        headline=f"{named if claim.is_named else paths} {said}{single}. {brief}".strip(),
        said=f"{claim.verb[1]} {claim.rest}".strip() + f"{where}. {brief}".rstrip(),
        summary=f"{named} {said}{told}{which}. {more}".strip(),
        evidence={name: value for name, value in evidence.items() if value is not None},
        advice=advice,
        against=None if against is None else against.index,
    )


def finding_of_call(
    case: CaseView, call: str, claim: Claim, evidence: Mapping[str, Any], advice: str = ""
) -> FindingRecord:
    """A finding of a ``call`` that was made of the case's source besides the case's own."""
    said = f"{call} of {case.pair[0]} {claim.verb[0]} {claim.rest}".strip()
    told = f"{said}: {claim.numbers}." if claim.numbers else f"{said}."
    return FindingRecord(
        rule="",
        name="",
        severity="",
        results=[case.index],
        headline=told,
        said=f"{said}.",
        summary=told,
        evidence=dict(evidence),
        advice=advice,
        subject=call,
    )


def count_paths(cases: Sequence[CaseView]) -> int:
    return len({case.result.case.way for case in cases})


def _among(cases: Sequence[CaseView]) -> str:
    """The small arrays of a survey, as `` (bool, int8)``; empty if a timed array shows it too."""
    if not all(case.surveyed for case in cases):
        return ""
    names = list(dict.fromkeys(label_of(case.result.case).name for case in cases))
    shown = listed(names) if len(names) <= MOST_ARRAYS else f"{len(names)} kinds of small arrays"
    return f" ({shown})"


def _which(cases: Sequence[CaseView]) -> str:
    """Which of several cases the numbers are of: `` (the first, a to b, 4x4 float32 C)``."""
    first = cases[0]
    told = ["the first"] if count_paths(cases) > 1 else []
    if len({case.pair for case in cases}) > 1:
        told.append(first.direction)
    if len({case.spec for case in cases}) > 1 or first.surveyed:
        shape, dtype, layout, _ = first.spec
        told.append(f"{shape_text(shape)} {dtype} {layout}")
    return f" ({', '.join(told)})" if told else ""


def code(case: CaseView) -> str:
    return case.code if len(case.code) <= LONGEST_CODE else f"{case.code[: LONGEST_CODE - 1]}…"


def time(case: CaseView) -> str:
    """``5.0 us``; of modes all: ``0.14 or 0.41 ms``; ``190 to 840 us`` where processes differ."""
    return plain_time(case.cost_ns) if case.ready is None else brief_text(case.ready)


def longer(case: CaseView, other: CaseView) -> str:
    """``500 us instead of 5.0 us``; ``at least 3.3 times as long`` where one time is a range."""
    if case.ready is None or other.ready is None:
        return ""
    if is_wide(case.ready) or is_wide(other.ready):
        times = times_text(case.ready, other.ready)
        return f"{times} times as long" if times else ""
    return f"{time(case)} instead of {time(other)}"


def instead_of(case: CaseView, other: CaseView, what: str) -> str:
    """``f(x) is a view: 74 us instead of 400 us.``

    A time is left out if it may be that of other programs, or of a framework that keeps its
    result with the array.
    """
    found = f"{code(other)} {what}"
    if not other.is_known or (other.is_cached and other.kind == "copy"):
        return f"{found}."
    return f"{found}: {time(other)}{f' instead of {time(case)}' * case.is_known}."


def for_each_producer(cases: Sequence[CaseView], advise: Callable[[CaseView], str]) -> str:
    """The advice for the first case of each producer, told apart where it differs."""
    firsts = [found[0] for found in by(cases, lambda case: case.pair[0]).values()]
    told = by(firsts, advise)
    if len(told) == 1:
        return next(iter(told))
    return " ".join(
        f"From {', '.join(case.pair[0] for case in found)}: {text}"
        for text, found in [*told.items()][:MOST_ADVICE]
        if text
    )


def replacements(
    cases: Cases,
    found: Sequence[CaseView],
    does: str,
    fits: Callable[[CaseView], bool] = lambda _: True,
    none: str = "",
) -> str:
    """``f(x) keeps the dtype.``: for each producer what stands for its first case, or ``none``."""

    def advise(case: CaseView) -> str:
        other = cases.replacement(case, fits)
        return none if other is None else f"{code(other)} {does}."

    return for_each_producer(found, advise)


def or_a_copy(cases: Cases, case: CaseView, advice: str) -> str:
    """``advice``, with a measured path that gives a safe copy of the array, if there is one."""
    copies = filter(cases.copies, filter(cases.may_be_advised, cases.arrays[case.array]))
    best = min(copies, key=lambda other: other.cost_ns, default=None)
    return advice if best is None else f"{advice} Or: {code(best)} copies it."
