"""View or copy? Rules on copies of some arrays only, and on what documentation says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from dlprof.judge import alignment, thresholds
from dlprof.judge.case_view import CaseView
from dlprof.judge.cases import Cases, by, groups
from dlprof.judge.rule import (
    NONE_INSTEAD,
    Rule,
    Severity,
    code,
    expect,
    finding,
    for_each_producer,
    number,
    time,
)
from dlprof.judge.safety import Fault
from dlprof.judge.script import LOOK, Effect, Subject
from dlprof.judge.slower import longer_by_itself, saved_ns
from dlprof.judge.standards import COPY, QUOTED, ZERO_COPY
from dlprof.protocol.statement import STATEMENT
from dlprof.runner.session import FindingRecord, Result


class Contrast(NamedTuple):
    """Why a case is copied. ``view`` is the same path as a view of another array; None where one
    case was both. ``limits`` are the alignments, if they differ.
    """

    cause: str
    view: CaseView | None
    limits: alignment.Limits | None = None


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
        limits = contrast.limits
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
            ("copies", "copy"),
            claimed,
            f"{time(worst)} instead of {time(view)}" if view else "",
            evidence={
                "cost_ns": saved_ns(worst, view) if view else None,
                "cause": contrast.cause,
                **(limits.evidence if limits else {}),
            },
            more="Otherwise the result is a view." if limits else "",
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
    for view in views.get(alignment.but_layout(case), ()):
        if longer_by_itself(
            case.ready, view.ready, thresholds.SLOW_RATIO, thresholds.COSTLY_GAP_NS
        ):
            if not (alignment.is_contiguous(case) and alignment.is_contiguous(view)):
                return Contrast("layout", view)
            if contrast := _by_alignment([case, view], view):
                return contrast
    # What the instrument *alignment* saw: this path with aligned memory, as a view.
    is_tried = case.by_address is not None and alignment.is_contiguous(case)
    return _by_alignment([case]) if is_tried else None


def _by_alignment(cases: Sequence[CaseView], view: CaseView | None = None) -> Contrast | None:
    limits = alignment.limits(cases)
    return None if limits is None else Contrast("alignment", view, limits)


LAYOUT = """
def is_view(x):
    <convert of y>
    return <address of x> == <address of y>

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


def promise_broken(cases: Cases) -> Iterator[FindingRecord]:
    """The documentation says copy and the result is a view, or the other way round."""
    layouts = by(
        (case for case in cases.cases if case.kinds_seen and alignment.is_contiguous(case)),
        alignment.but_layout,
    )
    broken = [
        case
        for case in cases.cases
        if case.broken_promises or (case.breaks_promise_elsewhere and case.kinds_seen)
    ]
    for found in groups(
        broken,
        lambda case: (case.way_in, case.promise, _is_harmless(case)),
        lambda case: case.broken_promises,
    ):
        worst = found[0]
        severity: Severity = "warning"
        verb, effect = ("copies", "copy"), ""
        if worst.promise == "copy":
            severity = "error"
            verb = "shares memory with x", "share memory with x"
            effect = "Writing to x changes the result."
        if _is_harmless(worst):
            severity, effect = "info", "Both are read-only."
        limits = alignment.limits(layouts.get(alignment.but_layout(worst), ()))
        limits = limits if alignment.is_contiguous(worst) else None
        seen = "view" if worst.promise == "copy" else "copy"
        yield finding(
            found,
            verb,
            f"although {_promise_text(worst.result)}",
            evidence={
                "documented": worst.promise,
                **(limits.evidence if limits else {}),
            },
            brief=effect,
            more=f"Seen where x {limits.where(seen)}." if limits else "",
            advice=for_each_producer(found, lambda case: _advice(cases, case)),
            look=("ownership", seen),
            against=_as_promised(cases, worst),
            severity=severity,
        )


def _promise_text(result: Result) -> str:
    """Who promises what. Of a user's own call only the keyword is known."""
    if result.case.import_ == STATEMENT:
        asks = "forbids" if result.case.promise == "view" else "asks for"
        return f"its keyword {asks} a copy"
    return f"a {result.case.promise} is documented"


def _is_harmless(case: CaseView) -> bool:
    """Whether the memory is shared, and neither framework can write it."""
    sides = case.writable.source, case.writable.result
    return case.promise == "copy" and sides == (False, False)


def _as_promised(cases: Cases, case: CaseView) -> CaseView | None:
    """What keeps the word: wherever the source begins, if there is such a path."""
    if case.promise == "copy":
        return cases.replacement(case)

    def is_steady(other: CaseView) -> bool:
        return other.kind == "view" and cases.is_constant(other)

    return cases.replacement(case, is_steady) or cases.replacement(
        case, lambda other: other.kind == "view"
    )


def _advice(cases: Cases, case: CaseView) -> str:
    other = _as_promised(cases, case)
    if case.promise != "copy":
        if other is None:
            return f"{NONE_INSTEAD} Count on a copy."
        return f"{code(other)} is a view{cases.where(other)}."
    if other is not None:
        return f"{code(other)} is a copy."
    if _is_harmless(case):
        return ""
    if (late := cases.waited(case)) is not None:
        return f"{code(late)} is a copy once it is ready: wait for it before you write x."
    return f"{NONE_INSTEAD} Do not write x while you use the result."


def documented(_: FindingRecord, result: Result) -> str:
    case = result.case
    quoted = QUOTED.get((case.consumer, case.import_))
    if quoted is not None:
        return f"The function's documentation: “{quoted[0]}” ([source]({quoted[1]}))."
    promise = case.promise if case.promise in COPY else "copy"
    if case.import_ == STATEMENT:
        return f"The keyword of the call asks for {'no' if promise == 'view' else 'a'} copy."
    does = {"copy": "copies", "view": "does not copy"}[promise]
    standard = COPY[promise] if "copy=" in case.code else ""
    return f"The documentation says that this call {does}. {standard}".strip()


NO_COPY_MADE = f"""
<create>
<convert of y>
{LOOK.strip()}
return addresses[0] == addresses[1]
"""
NO_VIEW_MADE = f"""
<create>
try:
    y = <code>
except (ValueError, BufferError) as refusal:
    print("it refuses:", refusal)
    return False
<wait of y>
{LOOK.strip()}
return addresses[0] != addresses[1]
"""


def show_promise_broken(subject: Subject, _: Subject | None, found: FindingRecord) -> Effect:
    if subject.result.case.promise == "copy":
        at = number(found, "view_alignment_bytes")
        where = f" if x is aligned to {at:.0f} bytes" if at else ""
        does = f"is a view{where}, although {_promise_text(subject.result)}"
        return subject.shown(does, NO_COPY_MADE, create=subject.create("view"))
    at = number(found, "copy_alignment_bytes")
    where = f" if x is only aligned to {at:.0f} bytes" if at else ""
    does = f"copies{where}, although {_promise_text(subject.result)}"
    return subject.shown(does, NO_VIEW_MADE, create=subject.create("copy"))


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
    Rule(
        "DLP018",
        "promise-broken",
        {
            "error": "if a documented copy is a view",
            "info": "if neither side can be written",
            "warning": "if a documented view copies",
        },
        promise_broken,
        documented,
        show_promise_broken,
        "ownership",
        Fault(
            lambda case: bool(case.broken_promises) or case.breaks_promise_elsewhere,
        ),
        changes=("view",),
    ),
)
