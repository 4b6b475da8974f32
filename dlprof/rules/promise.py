"""View or copy? The rule on paths that do not keep what their documentation says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dlprof.analysis import alignment
from dlprof.analysis.case_view import CaseView
from dlprof.analysis.cases import Cases, groups
from dlprof.rules import observations, words
from dlprof.rules.rule import Claim, Rule
from dlprof.rules.words import for_each_producer

NOT_LOOKED_AT = "not looked at: whether it still reads its source"


def promise_broken(survey: Cases) -> Iterator[Claim]:
    """The documentation says copy and the result is a view, or the other way round."""
    broken = [case for case in survey.cases if case.breaches or (case.tried_breach and case.owners)]
    for cases in groups(broken, lambda case: (case.way_in, case.promise, _is_harmless(case))):
        ranked = sorted(cases, key=lambda case: case.breaches, reverse=True)
        yield _broken(survey, ranked)


def _broken(survey: Cases, cases: Sequence[CaseView]) -> Claim:
    worst = cases[0]
    verb = words.several(cases, "is", "are")
    kind = {"copy": ("a view", "views"), "view": ("a copy", "copies")}[worst.promise or ""]
    owner = words.several(cases, *kind)
    apart = _told_by_address(survey, cases)
    often = _how_often(cases)
    if apart is not None:
        seen = "view" if worst.promise == "copy" else "copy"
        often += f", where the source begins {apart.where(seen)}"
    if worst.promise == "copy":
        what = f"documented to copy, and {verb} {owner}{often}: a write to one shows in the other"
        severity = "info" if _is_harmless(worst) else "error"
        harmless = "; neither of them can be written" if _is_harmless(worst) else ""
    else:
        what, harmless = f"documented not to copy, and {verb} {owner}{often}", ""
        severity = "warning"
    other = _as_promised(survey, worst)
    return Claim(
        severity,
        cases,
        f"{words.codes(cases)} {verb} {what}{harmless}",
        {
            "documented": worst.promise,
            **_in_processes(worst),
            **(apart.evidence if apart else {}),
        },
        for_each_producer(cases, lambda case: _kept_instead(survey, case)),
        against=other,
    )


def _how_often(cases: Sequence[CaseView]) -> str:
    """`` in 1 to 3 of 3 processes``: true of each case; empty where all processes agree.

    What no process did the instrument *alignment* saw.
    """
    counts = [_in_processes(case) for case in cases]
    if all(count["broken"] == count["processes"] for count in counts):
        return ""
    if not any(count["broken"] for count in counts):
        return " when tried apart"
    broken, whole = (_span([count[of] for count in counts]) for of in ("broken", "processes"))
    tried = "" if all(count["broken"] for count in counts) else " and when tried apart"
    return f" in {broken} of {whole} processes{tried}"


def _span(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low}" if low == high else f"{low} to {high}"


def _told_by_address(survey: Cases, cases: Sequence[CaseView]) -> alignment.Parted | None:
    """The alignments that tell the breaches of all cases, and of the same array in other
    contiguous layouts, from what is as documented; None where one does not fit.
    """
    arrays = {alignment.but_layout(case) for case in cases}
    same = [
        case
        for case in survey.cases
        if case.owners and alignment.is_contiguous(case) and alignment.but_layout(case) in arrays
    ]
    worst = [case for case in same if alignment.but_layout(case) == alignment.but_layout(cases[0])]
    if not all(map(alignment.is_contiguous, cases)) or alignment.parted(worst) is None:
        return None
    return alignment.parted(same)


def _kept_instead(survey: Cases, case: CaseView) -> tuple[str, str]:
    """What keeps the word, wherever the source begins; else what is known, and what to do."""
    other = _as_promised(survey, case)
    if case.promise == "copy":
        if other is None:
            return "", _no_copy(survey, case)
        unlooked = f" ({NOT_LOOKED_AT})" if survey.copies_unlooked(other) else ""
        return other.code, words.instead_of(case, other, f"is a copy{unlooked}")
    if other is None:
        text = f"No measured path from {case.pair_text} is a safe view of it: count on a copy."
        return "", text
    where = survey.where(other)
    if not where:
        return other.code, words.instead_of(case, other, "is a view")
    nowhere = f"No measured path from {case.pair_text} is known to be a view wherever x begins"
    advice = f"{nowhere}: {words.instead_of(case, other, f'is one{where}')}"
    return f"{other.code}{where}", advice


def _no_copy(survey: Cases, case: CaseView) -> str:
    """What to do where no measured path keeps the word: what is not measured is called so."""
    if _is_harmless(case):
        return ""
    copies = sorted(
        (other for other in survey.arrays[case.array] if _is_right_copy(other)),
        key=lambda other: (not survey.holds(other), other.cost_ns),
    )
    known = next((text for other in copies if (text := _but(survey, other))), "")
    return (
        f"No measured path from {case.pair_text} that is documented to copy is"
        f" {'known to be ' if known else ''}a safe copy{known}. Not measured: copy the source"
        " first, by its own framework's means, and convert that copy."
    )


def _is_right_copy(case: CaseView) -> bool:
    documented = case.promise == "copy" and not case.forbids_copy
    return documented and case.owner == "copy" and case.right and case.ready is not None


def _but(survey: Cases, copy: CaseView) -> str:
    """What is known of a copy that cannot be advised; empty where that is something else."""
    if not survey.holds(copy):
        return f": {words.code(copy)} copied{survey.where(copy)}"
    if survey.waiting_helps(copy):
        return f": {words.code(copy)} copies, but wait for the result before you write x (DLP020)"
    return ""


def _in_processes(case: CaseView) -> dict[str, int]:
    if len(case.owners) > 1:
        return {"processes": len(case.owners), "broken": case.breaches}
    whole = max(len(case.result.rounds), 1)  # processes that agree have one verdict together
    return {"processes": whole, "broken": whole if case.breaches else 0}


def _is_harmless(case: CaseView) -> bool:
    """Whether the memory is shared, and nobody can write it by the frameworks' own means."""
    sides = case.writable.source, case.writable.result
    return case.promise == "copy" and sides == (False, False)


def _as_promised(survey: Cases, case: CaseView) -> CaseView | None:
    if case.promise == "copy":
        return survey.instead(case)
    views = survey.instead(case, lambda other: other.owner == "view" and survey.holds(other))
    return views or survey.instead(case, lambda other: other.owner == "view")


RULES = (Rule("DLP018", "promise-broken", promise_broken, seen=observations.ownership_by_address),)
