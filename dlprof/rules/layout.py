"""View or copy? The rule on copies of one layout or alignment only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from dlprof.analysis import alignment, thresholds
from dlprof.analysis.case_view import CaseView
from dlprof.analysis.cases import Cases, by, groups
from dlprof.analysis.slower import longer_by_itself, saved_ns
from dlprof.rules import words
from dlprof.rules.observed import ownership_by_address
from dlprof.rules.rule import Rule, expect, finding
from dlprof.rules.script import Effect, Subject, look
from dlprof.rules.standards import ZERO_COPY
from dlprof.session.model import FindingRecord


class Contrast(NamedTuple):
    """What is copied and what is not, and what differs between them.

    ``view`` is the same path as a view of another array; None where one case was both.
    """

    copied: str
    viewed: str
    cause: str
    view: CaseView | None
    limits: alignment.Limits | None = None
    """The alignments, if they differ."""


UNCLEAR = "layout or alignment"


def layout_copy(cases: Cases) -> Iterator[FindingRecord]:
    """It copies this layout or alignment only: elsewhere the same path is a view."""
    views = by(
        (case for case in cases.cases if case.owner == "view" and case.ready is not None),
        alignment.but_layout,
    )
    contrasts = {
        case.index: contrast
        for case in cases.cases
        if case.promise != "copy" and (contrast := _contrast(case, views)) is not None
    }
    copying = [case for case in cases.cases if case.index in contrasts]
    for found in groups(copying, lambda case: (case.pair, contrasts[case.index].cause)):
        ranked = sorted(
            found, key=lambda case: saved_ns(case, contrasts[case.index].view), reverse=True
        )
        yield _finding(cases, ranked, [contrasts[case.index] for case in ranked])


def _contrast(
    case: CaseView, views: Mapping[tuple[object, ...], Sequence[CaseView]]
) -> Contrast | None:
    if case.owner == "varies":
        return _by_alignment(alignment.limits([case]))
    if case.owner != "copy" or not case.stays:
        return None
    found = [
        contrast
        for view in views.get(alignment.but_layout(case), ())
        if longer_by_itself(case.ready, view.ready, thresholds.SLOW_RATIO, thresholds.COSTLY_GAP_NS)
        and (contrast := _between(case, view)) is not None
    ]
    known = min(found, key=lambda contrast: contrast.cause == UNCLEAR, default=None)
    if known is not None or case.tried is None or not alignment.is_contiguous(case):
        return known
    # What the instrument *alignment* saw: this path with aligned memory, as a view.
    return _by_alignment(alignment.limits([case]))


def _between(case: CaseView, view: CaseView) -> Contrast | None:
    layouts = case.result.case.layout, view.result.case.layout
    known = bool(case.alignments and view.alignments)
    narrower = known and max(case.alignments) < min(view.alignments)
    if alignment.is_contiguous(case) and alignment.is_contiguous(view):
        return _by_alignment(alignment.limits([case, view]), view) if narrower else None
    copied, viewed = (f"an array of layout {layout}" for layout in layouts)
    return Contrast(copied, viewed, UNCLEAR if narrower or not known else "layout", view)


def _by_alignment(limits: alignment.Limits | None, view: CaseView | None = None) -> Contrast | None:
    if limits is None:
        return None
    copied = f"a source that begins {limits.where('copy')}"
    viewed = f"a source that begins at a multiple of {limits.viewed:.0f} bytes"
    return Contrast(copied, viewed, "alignment", view, limits)


def _finding(
    cases: Cases, ranked: Sequence[CaseView], contrasts: Sequence[Contrast]
) -> FindingRecord:
    worst, first = ranked[0], contrasts[0]
    view = first.view
    limits = alignment.of_all([one.limits for one in contrasts if one.limits is not None])
    advice = limits.advice if limits is not None else f"Give it {first.viewed} where you can."
    if view is not None:
        advice += f" {words.instead_of(worst, view, 'is a view then')}"
    if cases.spoiled(view or worst):
        advice = "The view is not advised: something speaks against it, or could not be told."
    cost = f"{words.time(worst)} instead of {words.time(view)}" if view else ""
    copies = words.several(ranked, "copies", "copy")
    return finding(
        "warning",
        ranked,
        f"{words.paths(ranked)} {copies} {first.copied}, but no other{cost and f': {cost}'}.",
        f"{words.subject(ranked)} {copies} {first.copied}. Of {first.viewed}, the result is a view"
        f"{cost and f': {cost}'}{words.example(ranked)}.",
        {
            "cost_ns": None if view is None else saved_ns(worst, view),
            "cause": first.cause,
            **(limits.evidence if limits else {}),
        },
        advice,
        against=view,
    )


LAYOUT = """
def is_view(x):
    <convert of y>
    <look>
    return <is_view>

<copied>
print("x begins", <address of x> % 64, "bytes after a multiple of 64:")
first = is_view(x)
<viewed>
print("x begins", <address of x> % 64, "bytes after a multiple of 64:")
second = is_view(x)
return second and not first
"""


def show_layout_copy(subject: Subject, other: Subject | None, _: FindingRecord) -> Effect:
    layout = subject.result.case.layout
    if other is not None and other.result.case.layout != layout:
        copied, viewed = subject.create("copy"), other.create("view")
        what, instead = f"a {layout} array", f"a {other.result.case.layout} array"
    else:
        copied, viewed = subject.create_as("sliced"), subject.create_as("aligned")
        what, instead = "an array that is not 64-byte aligned", "an aligned array"
    body = subject.filled(LAYOUT, copied=copied, viewed=viewed, **look(subject))
    return Effect(f"{subject.code} copies {what}, but is a view of {instead}", body, subject)


RULES = (
    Rule(
        "DLP017",
        "layout-copy",
        "warning",
        layout_copy,
        expect(
            "The result is a view of this array too, or the call says that it copies.", ZERO_COPY
        ),
        show_layout_copy,
        ownership_by_address,
        times=True,
    ),
)
