"""Is it right? Rules on shape, dtype, values and the read-only flag."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dlprof.analysis import changed
from dlprof.analysis.case_view import CaseView
from dlprof.analysis.cases import Cases, groups
from dlprof.plan.axes import shape_text
from dlprof.rules import observations, words
from dlprof.rules.rule import Claim, Rule
from dlprof.rules.words import for_each_producer, none_instead
from dlprof.session.model import Result

NOT_WRITE = "Do not write the result; copy it where it has to be written."


def dtype_changed(survey: Cases) -> Iterator[Claim]:
    """The result has another dtype than the source."""
    changed = [case for case in survey.cases if _sides(case, "dtype")]
    for cases in groups(changed, lambda case: (case.pair[1], _sides(case, "dtype"))):
        before, after = _sides(cases[0], "dtype") or ("", "")
        yield Claim(
            "error",
            cases,
            f"{words.codes(cases)} {words.several(cases, 'makes', 'make')} {after} of {before}"
            + (words.shared(cases, _lost) if _lost(cases[0]) else ""),
            {"before": before, "after": after},
            _right_instead(survey, cases, "keeps the dtype"),
        )


def wrong_values(survey: Cases) -> Iterator[Claim]:
    """The result has another shape or, with the same dtype, other values than the source; or the
    call changes more than it makes.
    """
    wrong = [case for case in survey.cases if _wrong_text(case)]
    for cases in groups(wrong, lambda case: (case.way_in, min(case.changed.kinds))):
        yield Claim(
            "error",
            cases,
            f"{words.codes(cases)} {words.several(cases, 'gives', 'give')} a wrong result"
            f"{words.shared(cases, _wrong_text)}",
            {"changed": ", ".join(sorted(cases[0].changed.kinds))},
            _right_instead(survey, cases, "gives the right one"),
        )
    yield from aftermath(survey)


def _sides(case: CaseView, what: str) -> tuple[str, str] | None:
    """Before and after of a dtype or a shape that changed."""
    if what == "dtype":
        return case.changed.dtype
    shapes = case.changed.shape
    return shapes and (shape_text(shapes[0]), shape_text(shapes[1]))


def _lost(case: CaseView) -> str:
    values = case.changed.values
    if values is None or values.different is None or values.of is None:
        return ""
    return f"{values.different} of {values.of} values changed"


def _wrong_text(case: CaseView) -> str:
    shapes = _sides(case, "shape")
    if shapes:
        return f"shape {shapes[1]} instead of {shapes[0]}"
    # Values that a narrower dtype cannot hold are the dtype's fault.
    return _lost(case) if "dtype" not in case.changed.kinds else ""


def _right_instead(survey: Cases, cases: Sequence[CaseView], what: str) -> str:
    def advise(case: CaseView) -> tuple[str, str]:
        other = survey.instead(case)
        if other is None:
            return "", none_instead(survey, case, "keeps it")
        return other.code, words.instead_of(case, other, what)

    return for_each_producer(cases, advise)


def lacks_values(results: Sequence[Result]) -> str:
    """What no rule on values can do without, and none of these has."""
    if any(one.values is not None and one.values.verdict != "unknown" for one in results):
        return ""
    return "the values of a result (they take NumPy, and a result that is an array)"


def read_only_lost(survey: Cases) -> Iterator[Claim]:
    """A view lets memory be written that its owner calls read-only."""
    lost = [case for case in survey.cases if case.loses_read_only]
    dropped = [case for case in lost if survey.drops_read_only(case)]
    for cases in groups(dropped, lambda case: case.way_in):
        yield Claim(
            "error",
            cases,
            f"{words.codes(cases)} {words.several(cases, 'is a view', 'are views')} that can be"
            " written of an array that cannot",
            {"source_writable": False, "result_writable": True},
            _read_only_advice(survey, cases),
        )
    without_choice = [case for case in lost if not survey.drops_read_only(case)]
    for cases in groups(without_choice, lambda case: case.pair):
        yield Claim(
            "warning",
            cases,
            f"no measured view{survey.of_such(cases[0])} from {cases[0].pair_text} stays read-only:"
            f" {words.codes(cases)} {words.several(cases, 'is a view', 'are views')} that can be"
            " written of an array that cannot",
            {"source_writable": False, "result_writable": True},
            NOT_WRITE,
        )


def _read_only_advice(survey: Cases, cases: Sequence[CaseView]) -> str:
    def advise(case: CaseView) -> tuple[str, str]:
        other = survey.instead(case, lambda other: other.keeps_read_only)
        if other is None:
            return "", NOT_WRITE
        return other.code, words.instead_of(case, other, "keeps the flag")

    return for_each_producer(cases, advise)


def aftermath(survey: Cases) -> Iterator[Claim]:
    """It changes its source or an earlier result, or gives a kept one."""
    cases = [case for case in survey.cases if changed.first(case.changed)]
    for alike in groups(cases, lambda case: (case.way_in, _kind(case))):
        change = changed.CHANGES[_kind(alike[0])]
        yield Claim(
            "error",
            alike,
            f"{words.codes(alike)} {words.several(alike, change.does, change.do)}"
            + (words.shared(alike, _extent) if _extent(alike[0]) else ""),
            {"changed": ", ".join(sorted(alike[0].changed.kinds))},
            _instead(survey, alike),
        )


def _kind(case: CaseView) -> str:
    return changed.first(case.changed) or ""


def _extent(case: CaseView) -> str:
    return changed.extent(_kind(case), case.changed)


def _instead(survey: Cases, cases: Sequence[CaseView]) -> str:
    def advise(case: CaseView) -> tuple[str, str]:
        other = survey.instead(case)
        if other is None:
            return "", none_instead(survey, case, "does otherwise")
        return other.code, words.instead_of(case, other, "does not")

    return for_each_producer(cases, advise)


RULES = (
    Rule("DLP007", "dtype-changed", dtype_changed, lacks=lacks_values, seen=observations.values),
    Rule("DLP008", "wrong-values", wrong_values, lacks=lacks_values, seen=observations.values),
    Rule("DLP009", "read-only-lost", read_only_lost, seen=observations.read_only),
)
