"""View or copy? Rules on copies that need not be, or cost more than one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dlprof.analysis import alignment, thresholds
from dlprof.analysis.case_view import CaseView
from dlprof.analysis.cases import Cases, by, groups
from dlprof.analysis.slower import compared, is_known, longer_by_itself, surely_saved_ns
from dlprof.probes.base import DTYPES
from dlprof.rules import observations, traced, words
from dlprof.rules.rule import Claim, Rule

HOST_PROTOCOL = "numpy"
"""The protocol of a host array in between."""


def avoidable_copy(survey: Cases) -> Iterator[Claim]:
    """It copies although nobody asked for it, and another measured path of the pair is a view."""
    views = {case.index: _view_instead(survey, case) for case in survey.cases if _is_free(case)}
    copying = [case for case in survey.cases if views.get(case.index)]
    for cases in groups(copying, lambda case: case.pair):
        ranked = sorted(cases, key=lambda case: saved_ns(case, views[case.index]), reverse=True)
        worst, view = ranked[0], views[ranked[0].index]
        if view is None:
            continue
        saved = saved_ns(worst, view)
        surely = surely_saved_ns(worst.ready, view.ready)
        yield Claim(
            "warning" if surely >= thresholds.COSTLY_GAP_NS else "info",
            ranked,
            f"{words.codes(ranked)} {words.several(ranked, 'copies', 'copy')} although another path"
            f" from {worst.pair_text} is a view{words.of_first(ranked)}: {words.time(worst)}"
            f" against {words.time(view)}",
            {"cost_ns": saved or None, **compared(("copy", worst), ("view", view))},
            words.instead_of(worst, view, f"is a view{survey.where(view)}"),
            against=view,
        )


def _is_free(case: CaseView) -> bool:
    """Whether the case copied, and nothing it says about itself speaks of copying or not."""
    return case.owner == "copy" and case.stays and case.promise is None and case.right


def _view_instead(survey: Cases, case: CaseView) -> CaseView | None:
    view = survey.instead(
        case,
        lambda other: (
            other.owner == "view"
            and not other.kept
            and is_known(other.ready)
            and alignment.aligned_as(other, case)
        ),
    )
    slower = view is not None and longer_by_itself(
        case.ready, view.ready, thresholds.SLOW_RATIO, thresholds.SLOW_GAP_NS
    )
    return view if slower else None


def saved_ns(case: CaseView, other: CaseView | None) -> float:
    """What the other path saves at least: nothing for sure where a time is not known."""
    if other is None or not (is_known(case.ready) and is_known(other.ready)):
        return 0.0
    return max(case.modes_ns[0] - other.modes_ns[1], 0.0)


def copy_amplification(survey: Cases) -> Iterator[Claim]:
    """At its peak it needs more memory than the copy that it makes."""
    greedy = [case for case in survey.cases if _excess(case) >= thresholds.AMPLIFIED_ARRAYS]
    for cases in groups(greedy, lambda case: case.pair):
        ranked = sorted(cases, key=_excess, reverse=True)
        worst = ranked[0]
        lean = survey.instead(worst, lambda other: _is_lean(survey, other))
        yield Claim(
            "warning",
            ranked,
            f"{words.codes(ranked)} {words.several(ranked, 'needs', 'need')} the memory of"
            f" {'up to ' if len(ranked) > 1 else ''}"
            f"{max(case.peak_arrays or 0.0 for case in ranked):.2g} arrays at"
            f" {words.several(ranked, 'its', 'their')} peak, beside the source"
            f"{_where_aligned(ranked)}",
            {"peak_arrays": worst.peak_arrays, "aligned_arrays": _aligned_arrays(worst)},
            "" if lean is None else words.instead_of(worst, lean, f"needs {_arrays_text(lean)}"),
            against=lean,
        )


def _aligned_arrays(case: CaseView) -> float | None:
    """Its peak where the source is aligned, as far as that was measured."""
    peak = case.result.peak_memory
    return peak.evidence.aligned_arrays if peak is not None else None


def _where_aligned(cases: Sequence[CaseView]) -> str:
    """That alignment decides, where all of them need no more than a copy of aligned memory."""
    found = [_aligned_arrays(case) for case in cases]
    known = [arrays for arrays in found if arrays is not None]
    if len(known) < len(found) or max(known) >= thresholds.AMPLIFIED_ARRAYS:
        return ""
    return f"; where the source is aligned, {max(known):.1f} at most"


def _is_lean(survey: Cases, case: CaseView) -> bool:
    """Whether it needs little, and its time is that of what needed it.

    Peak memory is looked at elsewhere: a view here may have been a copy there.
    """
    little = 0 <= _excess(case) <= thresholds.LEAN_ARRAYS
    return little and (case.owner != "view" or survey.holds(case))


def _arrays_text(case: CaseView) -> str:
    arrays = f"{case.peak_arrays or 0.0:.1f}"
    return "none" if arrays == "0.0" else arrays


def _excess(case: CaseView) -> float:
    """Peak memory as a multiple of the result; -1 where it is not known."""
    if case.peak_arrays is None or (not case.right and "dtype" not in case.changed.kinds):
        return -1.0
    if "dtype" not in case.changed.kinds:
        return case.peak_arrays
    before, after = case.changed.dtype or ("", "")
    if before not in DTYPES or after not in DTYPES:
        return -1.0
    return case.peak_arrays * DTYPES[before] / max(DTYPES[before], DTYPES[after])


def host_bounce(survey: Cases) -> Iterator[Claim]:
    """From the device through a host array back to the device."""
    bouncing = [case for case in survey.cases if _bounces(case)]
    others = {case.index: survey.instead(case, _stays_there) for case in bouncing}
    by_cause = by(bouncing, lambda case: (case.pair, others[case.index] is None))
    for (_, no_other), cases in by_cause.items():
        ranked = sorted(cases, key=lambda case: saved_ns(case, others[case.index]), reverse=True)
        worst, other = ranked[0], others[ranked[0].index]
        through = words.several(ranked, "goes", "go")
        yield Claim(
            "info" if no_other else "warning",
            ranked,
            f"{words.codes(ranked)} {through} through the host although source and result are on"
            f" the device{traced.seen(worst.result)}",
            {"cost_ns": None if other is None else saved_ns(worst, other)},
            "No measured path is known to stay on the device."
            if other is None
            else words.instead_of(worst, other, "stays on the device"),
            against=other,
        )


def _bounces(case: CaseView) -> bool:
    if not (case.result.case.device == "cuda" and case.stays):
        return False
    return case.result.case.protocol == HOST_PROTOCOL or _traced_there_and_back(case)


def _stays_there(case: CaseView) -> bool:
    """Whether it is known not to bounce: a view does not, and of a copy the trace saw all."""
    trace = case.result.trace
    traced_whole = (
        trace is not None
        and trace.verdict == "traced"
        and not trace.evidence.events_left_out
        and case.size_bytes > 0
    )
    return not _bounces(case) and (case.owner == "view" or traced_whole)


def _traced_there_and_back(case: CaseView) -> bool:
    """Whether the trace saw all of the array copied to the host, and all of it back."""
    trace = case.result.trace
    events = (trace.evidence.events if trace is not None else None) or ()
    copied = {"device to host": 0.0, "host to device": 0.0}
    for event in events:
        if event.direction in copied:
            copied[event.direction] += event.bytes or 0.0
    return case.size_bytes > 0 and min(copied.values()) >= case.size_bytes


RULES = (
    Rule("DLP004", "avoidable-copy", avoidable_copy, times=True, seen=observations.ownership),
    Rule(
        "DLP005",
        "copy-amplification",
        copy_amplification,
        needs="peak_memory",
        seen=observations.peak_memory,
    ),
    Rule("DLP006", "host-bounce", host_bounce),
)
