"""View or copy? The rule on copies of one layout or alignment only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from dlprof.analysis import alignment, thresholds
from dlprof.analysis.case_view import CaseView
from dlprof.analysis.cases import Cases, by, groups
from dlprof.analysis.slower import longer_by_itself
from dlprof.rules import observations, words
from dlprof.rules.copying import saved_ns
from dlprof.rules.rule import Claim, Rule


def layout_copy(survey: Cases) -> Iterator[Claim]:
    """It copies this layout or alignment only: elsewhere the same path is a view."""
    views = by(
        (case for case in survey.cases if case.owner == "view" and case.ready is not None),
        alignment.but_layout,
    )
    contrasts = {
        case.index: contrast
        for case in survey.cases
        if case.promise != "copy" and (contrast := _contrast(case, views)) is not None
    }
    copying = [case for case in survey.cases if case.index in contrasts]
    for cases in groups(copying, lambda case: (case.pair, contrasts[case.index].cause)):
        ranked = sorted(
            cases, key=lambda case: saved_ns(case, contrasts[case.index].view), reverse=True
        )
        yield _layout_claim(survey, ranked, [contrasts[case.index] for case in ranked])


class Contrast(NamedTuple):
    """What is copied and what is not, and what tells them apart.

    ``view`` is the same path as a view of another array; None where one case was both.
    """

    copied: str
    viewed: str
    cause: str
    view: CaseView | None
    parted: alignment.Parted | None = None
    """The alignments, where they tell them apart."""


def _contrast(
    case: CaseView, views: Mapping[tuple[object, ...], Sequence[CaseView]]
) -> Contrast | None:
    if case.owner == "varies":
        return _varying(case)
    if case.owner != "copy" or not case.stays:
        return None
    found = [
        contrast
        for view in views.get(alignment.but_layout(case), ())
        if longer_by_itself(case.ready, view.ready, thresholds.SLOW_RATIO, thresholds.COSTLY_GAP_NS)
        and (contrast := _told_apart(case, view)) is not None
    ]
    known = min(found, key=lambda contrast: contrast.cause == UNCLEAR, default=None)
    return known or _tried(case)


def _tried(case: CaseView) -> Contrast | None:
    """What the instrument *alignment* saw: this path with aligned memory, as a view."""
    if case.tried is None or not alignment.is_contiguous(case):
        return None
    apart = alignment.parted([case])
    return _by_alignment(apart, None) if apart is not None else None


UNCLEAR = "layout or alignment"


def _told_apart(case: CaseView, view: CaseView) -> Contrast | None:
    layouts = case.result.case.layout, view.result.case.layout
    known = bool(case.alignments and view.alignments)
    narrower = known and max(case.alignments) < min(view.alignments)
    if alignment.is_contiguous(case) and alignment.is_contiguous(view):
        apart = alignment.parted([case, view]) if narrower else None
        return _by_alignment(apart, view) if apart is not None else None
    copied, viewed = (f"an array of layout {layout}" for layout in layouts)
    return Contrast(copied, viewed, UNCLEAR if narrower or not known else "layout", view)


def _by_alignment(apart: alignment.Parted, view: CaseView | None) -> Contrast:
    copied = f"a source {apart.where('copy')}"
    return Contrast(copied, f"one at {apart.viewed:.0f}", "alignment", view, apart)


def _varying(case: CaseView) -> Contrast | None:
    """The widest alignment that was copied and the narrowest viewed, if the first is narrower."""
    apart = alignment.parted([case])
    return _by_alignment(apart, None) if apart is not None else None


NO_WAY_OUT = "The view is not advised: something was found against it, or could not be told."


def _layout_claim(survey: Cases, cases: Sequence[CaseView], contrasts: Sequence[Contrast]) -> Claim:
    worst, first = cases[0], contrasts[0]
    view = first.view
    apart = alignment.of_all([one.parted for one in contrasts if one.parted is not None])
    saved = None if view is None else saved_ns(worst, view)
    advice = apart.advice if apart is not None else _layout_advice(worst, first)
    if view is not None:
        advice += f" {words.instead_of(worst, view, 'is a view then')}"
    if survey.spoiled(view or worst):
        advice = NO_WAY_OUT
    return Claim(
        "warning",
        cases,
        _layout_summary(cases, contrasts),
        {"cost_ns": saved, "cause": first.cause, **(apart.evidence if apart else {})},
        advice,
        against=view,
    )


def _layout_summary(cases: Sequence[CaseView], contrasts: Sequence[Contrast]) -> str:
    """What is copied and what is not: of all cases, or of the first where they differ in it."""
    worst, first = cases[0], contrasts[0]
    copies = words.several(cases, "copies", "copy")
    views = words.several(cases, "is a view", "are views")
    told = {(one.copied, one.viewed) for one in contrasts}
    cost = "" if first.view is None else f"{words.time(worst)} against {words.time(first.view)}"
    if len(told) == 1:
        costs = f"{words.of_first(cases)}: {cost}" if cost else ""
        what = f"{copies} {first.copied}, and {views} of {first.viewed}"
        return f"{words.codes(cases)} {what}{costs}"
    what = f"{copies} a source of one layout or alignment, and {views} of one of another"
    one = f"{first.copied} is copied, and {first.viewed} is not{f': {cost}' if cost else ''}"
    return f"{words.codes(cases)} {what}{words.of_first(cases)}: {one}"


def _layout_advice(worst: CaseView, contrast: Contrast) -> str:
    """What memory to give it instead: where it begins, or how far its elements are apart."""
    strides = [
        alignment.strides_bytes(case) if case is not None else None
        for case in (contrast.view, worst)
    ]
    if None in strides or strides[0] == strides[1]:
        return f"Give it {contrast.viewed} where you can."
    wanted, had = (", ".join(map(str, one or ())) for one in strides)
    also = ""
    if contrast.cause == UNCLEAR and contrast.view is not None and contrast.view.alignments:
        also = f", at a multiple of {contrast.view.alignments[0]:.0f} bytes"
    return (
        f"Make the source with strides of ({wanted}) bytes{also}, as {contrast.viewed} has them,"
        f" instead of ({had})."
    )


RULES = (
    Rule("DLP017", "layout-copy", layout_copy, times=True, seen=observations.ownership_by_address),
)
