"""View or copy? The rule on paths that do not keep what their documentation says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dlprof.analysis import alignment
from dlprof.analysis.case_view import CaseView
from dlprof.analysis.cases import Cases, groups
from dlprof.rules import words
from dlprof.rules.observed import ownership_by_address
from dlprof.rules.rule import Rule, finding, number
from dlprof.rules.script import Effect, Subject, look
from dlprof.rules.standards import COPY, QUOTED
from dlprof.rules.words import for_each_producer
from dlprof.session.model import FindingRecord, Result

NOT_LOOKED_AT = "not looked at: whether it still reads its source"


def promise_broken(cases: Cases) -> Iterator[FindingRecord]:
    """The documentation says copy and the result is a view, or the other way round."""
    broken = [case for case in cases.cases if case.breaches or (case.tried_breach and case.owners)]
    for found in groups(broken, lambda case: (case.way_in, case.promise, _is_harmless(case))):
        ranked = sorted(found, key=lambda case: case.breaches, reverse=True)
        yield _broken(cases, ranked)


def _broken(cases: Cases, ranked: Sequence[CaseView]) -> FindingRecord:
    worst = ranked[0]
    limits = _told_by_address(cases, ranked)
    often = _how_often(ranked)
    promises = words.several(ranked, "promises", "promise")
    result = words.several(ranked, "the result is", "the results are")
    if worst.promise == "copy":
        does, gives, severity = "a copy", words.several(ranked, "a view", "views"), "error"
        shares = f"but {words.several(ranked, 'shares', 'share')} memory with x"
        effect = "Writing to x changes the result."
        if _is_harmless(worst):
            severity, effect = "info", "Neither can be written."
    else:
        does, gives, severity = "no copy", words.several(ranked, "a copy", "copies"), "warning"
        shares, effect = f"but {words.several(ranked, 'copies', 'copy')}", ""
    if limits is not None:
        seen = "view" if worst.promise == "copy" else "copy"
        often += f" where x begins {limits.where(seen)}"
    return finding(
        severity,
        ranked,
        f"{words.paths(ranked)} {promises} {does} {shares}. {effect}".strip(),
        f"{words.subject(ranked)} {promises} {does}, but {result} {gives}{often}. {effect}".strip(),
        {
            "documented": worst.promise,
            **_in_processes(worst),
            **(limits.evidence if limits else {}),
        },
        for_each_producer(ranked, lambda case: _kept_instead(cases, case)),
        against=_as_promised(cases, worst),
    )


def _how_often(ranked: Sequence[CaseView]) -> str:
    """`` in 1 to 3 of 3 processes``: true of each case; empty where all processes agree.

    What no process did the instrument *alignment* saw.
    """
    counts = [_in_processes(case) for case in ranked]
    if all(count["broken"] == count["processes"] for count in counts):
        return ""
    if not any(count["broken"] for count in counts):
        return " in a separate try"
    broken, whole = (_span([count[of] for count in counts]) for of in ("broken", "processes"))
    tried = "" if all(count["broken"] for count in counts) else " and in a separate try"
    return f" in {broken} of {whole} processes{tried}"


def _span(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low}" if low == high else f"{low} to {high}"


def _told_by_address(cases: Cases, ranked: Sequence[CaseView]) -> alignment.Limits | None:
    """The alignments that tell the breaches of all cases, and of the same array in other
    contiguous layouts, from what is as documented; None where one does not fit.
    """
    arrays = {alignment.but_layout(case) for case in ranked}
    same = [
        case
        for case in cases.cases
        if case.owners and alignment.is_contiguous(case) and alignment.but_layout(case) in arrays
    ]
    first = [case for case in same if alignment.but_layout(case) == alignment.but_layout(ranked[0])]
    if not all(map(alignment.is_contiguous, ranked)) or alignment.limits(first) is None:
        return None
    return alignment.limits(same)


def _kept_instead(cases: Cases, case: CaseView) -> tuple[str, str]:
    """What keeps the word, wherever the source begins; else what is known, and what to do."""
    other = _as_promised(cases, case)
    if case.promise == "copy":
        if other is None:
            return "", _no_copy(cases, case)
        open_ = f" ({NOT_LOOKED_AT})" if cases.copies_unlooked(other) else ""
        return other.code, words.instead_of(case, other, f"is a copy{open_}")
    if other is None:
        text = f"No measured path from {case.pair_text} is a safe view of it. Count on a copy."
        return "", text
    where = cases.where(other)
    text = words.instead_of(case, other, f"is a view{where}")
    if where:
        nowhere = f"No measured path from {case.pair_text} is known to be a view of any memory."
        text = f"{nowhere} {text}"
    return f"{other.code}{where}", text


def _no_copy(cases: Cases, case: CaseView) -> str:
    """What to do where no measured path keeps the word: what is not measured is called so."""
    if _is_harmless(case):
        return ""
    copies = sorted(
        (other for other in cases.arrays[case.array] if _is_right_copy(other)),
        key=lambda other: (not cases.holds(other), other.cost_ns),
    )
    known = next((text for other in copies if (text := _but(cases, other))), "")
    return (
        f"No measured path from {case.pair_text} promises a copy and is known to be a safe"
        f" one.{known} Not measured: copy the source in its own framework, then convert the copy."
    )


def _is_right_copy(case: CaseView) -> bool:
    documented = case.promise == "copy" and not case.forbids_copy
    return documented and case.owner == "copy" and case.right and case.ready is not None


def _but(cases: Cases, copy: CaseView) -> str:
    """What is known of a copy that cannot be advised; empty where that is something else."""
    if not cases.holds(copy):
        return f" {words.code(copy)} copied{cases.where(copy)}."
    if cases.waiting_helps(copy):
        return f" {words.code(copy)} copies, but wait for the result before you write x (DLP020)."
    return ""


def _in_processes(case: CaseView) -> dict[str, int]:
    if len(case.owners) > 1:
        return {"processes": len(case.owners), "broken": case.breaches}
    whole = max(len(case.result.rounds), 1)  # processes that agree have one verdict together
    return {"processes": whole, "broken": whole if case.breaches else 0}


def _is_harmless(case: CaseView) -> bool:
    """Whether the memory is shared, and neither framework can write it."""
    sides = case.writable.source, case.writable.result
    return case.promise == "copy" and sides == (False, False)


def _as_promised(cases: Cases, case: CaseView) -> CaseView | None:
    if case.promise == "copy":
        return cases.instead(case)
    views = cases.instead(case, lambda other: other.owner == "view" and cases.holds(other))
    return views or cases.instead(case, lambda other: other.owner == "view")


def documented(_: FindingRecord, result: Result) -> str:
    case = result.case
    quoted = QUOTED.get((case.consumer, case.import_))
    if quoted is not None:
        return f"The function's documentation: “{quoted[0]}” ([source]({quoted[1]}))."
    promise = case.promise if case.promise in COPY else "copy"
    does = {"copy": "copies", "view": "does not copy"}[promise]
    standard = COPY[promise] if "copy=" in case.code else ""
    return f"The documentation says that this call {does}. {standard}".strip()


NO_COPY_MADE = """
<create>
<convert of y>
<look>
return <is_view>
"""
NO_VIEW_MADE = """
<create>
try:
    y = <code>
except (ValueError, BufferError) as refusal:
    print("it refuses, as documented:", refusal)
    return False
<wait of y>
<look>
return <is_copy>
"""


def show_promise_broken(subject: Subject, _: Subject | None, found: FindingRecord) -> Effect:
    if subject.result.case.promise == "copy":
        at = number(found, "view_alignment_bytes")
        where = f" if x is aligned to {at:.0f} bytes" if at else ""
        symptom = f"{subject.code} is documented to copy, but is a view{where}"
        body = subject.filled(NO_COPY_MADE, create=subject.create("view"), **look(subject))
    else:
        at = number(found, "copy_alignment_bytes")
        where = f" if x is only aligned to {at:.0f} bytes" if at else ""
        symptom = f"{subject.code} is documented not to copy, but copies{where}"
        body = subject.filled(NO_VIEW_MADE, create=subject.create("copy"), **look(subject))
    return Effect(symptom, body, subject)


RULES = (
    Rule(
        "DLP018",
        "promise-broken",
        "error if a documented copy is a view, info if neither side can be written, warning if a"
        " documented view copies",
        promise_broken,
        documented,
        show_promise_broken,
        ownership_by_address,
    ),
)
