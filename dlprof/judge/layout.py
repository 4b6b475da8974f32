"""View or copy? The rule on copies of one layout or alignment only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from dlprof.judge import alignment, thresholds
from dlprof.judge.case_view import CaseView
from dlprof.judge.cases import Cases, by, groups
from dlprof.judge.finding import Claim, finding, longer, time
from dlprof.judge.rule import Rule, expect
from dlprof.judge.script import Effect, Subject
from dlprof.judge.slower import longer_by_itself, saved_ns
from dlprof.judge.standards import ZERO_COPY
from dlprof.runner.session import FindingRecord


class Contrast(NamedTuple):
    """Why a case is copied. ``view`` is the same path as a view of another array; None where one
    case was both. ``limits`` are the alignments, if they differ.
    """

    cause: str
    view: CaseView | None
    limits: alignment.Limits | None = None


UNCLEAR = "layout or alignment"


def layout_copy(cases: Cases) -> Iterator[FindingRecord]:
    """It copies this layout or alignment only: elsewhere the same path is a view."""
    views = by(
        (case for case in cases.cases if case.kind == "view" and case.ready is not None),
        alignment.but_layout,
    )
    contrasts = {
        case.index: contrast
        for case in cases.cases
        if case.promise != "copy" and (contrast := _contrast(case, views)) is not None
    }
    copying = [case for case in cases.cases if case.index in contrasts]
    for found in groups(
        copying,
        lambda case: (case.pair, contrasts[case.index].cause),
        lambda case: saved_ns(case, contrasts[case.index].view),
    ):
        worst, contrast = found[0], contrasts[found[0].index]
        view = contrast.view
        limits = alignment.widest(
            one.limits for case in found if (one := contrasts[case.index]).limits
        )
        copied, viewed = (
            f"an array of layout {one.result.case.layout}" for one in (worst, view or worst)
        )
        # That no other array is copied, only the alignments of all can tell.
        claimed = (
            f"x only if it {limits.where('copy')}" if limits else f"{copied}, but not {viewed}"
        )
        advice = limits.advice if limits else f"Give it {viewed} where you can."
        if view is not None and not cases.may_be_advised(view):
            advice = "The view is not known to be safe."
        yield finding(
            found,
            Claim(
                ("copies", "copy"),
                claimed,
                f"{time(worst)} instead of {time(view)}" if view else "",
                single=longer(worst, view) if view and len(found) == 1 else "",
                more="Otherwise the result is a view." if limits else "",
            ),
            {
                "cost_ns": saved_ns(worst, view) if view else None,
                "cause": contrast.cause,
                **(limits.evidence if limits else {}),
            },
            advice=advice,
            against=view,
        )


def _contrast(
    case: CaseView, views: Mapping[tuple[object, ...], Sequence[CaseView]]
) -> Contrast | None:
    if case.kind == "varies":
        return _by_alignment([case])
    if case.kind != "copy" or not case.stays_on_device:
        return None
    found = [
        contrast
        for view in views.get(alignment.but_layout(case), ())
        if longer_by_itself(case.ready, view.ready, thresholds.SLOW_RATIO, thresholds.COSTLY_GAP_NS)
        and (contrast := _between(case, view)) is not None
    ]
    known = min(found, key=lambda contrast: contrast.cause == UNCLEAR, default=None)
    if known is not None or case.by_address is None or not alignment.is_contiguous(case):
        return known
    # What the instrument *alignment* saw: this path with aligned memory, as a view.
    return _by_alignment([case])


def _between(case: CaseView, view: CaseView) -> Contrast | None:
    known = bool(case.alignments and view.alignments)
    narrower = known and max(case.alignments) < min(view.alignments)
    if alignment.is_contiguous(case) and alignment.is_contiguous(view):
        return _by_alignment([case, view], view) if narrower else None
    return Contrast(UNCLEAR if narrower or not known else "layout", view)


def _by_alignment(cases: Sequence[CaseView], view: CaseView | None = None) -> Contrast | None:
    limits = alignment.limits(cases)
    return None if limits is None else Contrast("alignment", view, limits)


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
    does = f"copies {what}, but is a view of {instead}"
    return subject.shown(does, LAYOUT, copied=copied, viewed=viewed)


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
        "ownership",
        times=True,
    ),
)
