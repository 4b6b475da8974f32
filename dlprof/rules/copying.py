"""View or copy? Rules on copies that need not be, cost more than one, or break a promise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from dlprof.probes.base import DTYPES
from dlprof.rules import thresholds, words
from dlprof.rules.known import Known, mapping, number
from dlprof.rules.rule import Claim
from dlprof.rules.survey import Survey, by, groups
from dlprof.rules.timing import clearly_longer

HOST_PROTOCOL = "numpy"
"""The protocol of a host array in between."""


def avoidable_copy(survey: Survey) -> Iterator[Claim]:
    """It copies although nobody asked for it, and another measured path of the pair is a view."""
    views = {case.index: _view_instead(survey, case) for case in survey.cases if _is_free(case)}
    copying = [case for case in survey.cases if views.get(case.index)]
    for cases in groups(copying, lambda case: case.pair):
        ranked = sorted(cases, key=lambda case: _saved_ns(case, views[case.index]), reverse=True)
        worst, view = ranked[0], views[ranked[0].index]
        if view is None:
            continue
        saved = _saved_ns(worst, view)
        yield Claim(
            "warning" if saved >= thresholds.COSTLY_GAP_NS else "info",
            ranked,
            f"{words.codes(ranked)} {words.several(ranked, 'copies', 'copy')} although another path"
            f" from {worst.pair_text} is a view: {words.time(worst)} against {words.time(view)}"
            f"{words.where(worst, ranked)}",
            {"cost_ns": saved, "copy_ns": worst.cost_ns, "view_ns": view.cost_ns},
            words.instead_of(worst, view, "is a view"),
            against=view,
        )


def _is_free(case: Known) -> bool:
    """Whether the case copied, and nothing it says about itself speaks of copying or not."""
    return case.owner == "copy" and case.stays and case.promise is None


def _view_instead(survey: Survey, case: Known) -> Known | None:
    view = survey.instead(
        case, lambda other: other.owner == "view" and not other.kept and _is_like(other, case)
    )
    slower = view is not None and clearly_longer(
        case.ready, view.ready, thresholds.SLOW_RATIO, thresholds.SLOW_GAP_NS
    )
    return view if slower else None


def _is_like(view: Known, case: Known) -> bool:
    """Whether the view's source was aligned no better than the copy's, as far as is known.

    What is a view of a source at 64 bytes may be a copy of one at 16, as JAX's imports are.
    """
    needed, had = view.alignment, case.alignment
    if needed is None or had is None:
        return True
    return min(needed, thresholds.ALIGNED_BYTES) <= had


def _saved_ns(case: Known, other: Known | None) -> float:
    return case.cost_ns - other.cost_ns if other is not None else 0.0


def copy_amplification(survey: Survey) -> Iterator[Claim]:
    """At its peak it needs more memory than the copy that it makes."""
    greedy = [case for case in survey.cases if _excess(case) >= thresholds.AMPLIFIED_ARRAYS]
    for cases in groups(greedy, lambda case: case.pair):
        ranked = sorted(cases, key=_excess, reverse=True)
        worst = ranked[0]
        lean = survey.instead(worst, lambda other: 0 <= _excess(other) <= thresholds.LEAN_ARRAYS)
        yield Claim(
            "warning",
            ranked,
            f"{words.codes(ranked)} {words.several(ranked, 'needs', 'need')} the memory of"
            f" {worst.peak_arrays:.2g} arrays at {words.several(ranked, 'its', 'their')} peak,"
            " beside the source",
            {"peak_arrays": worst.peak_arrays},
            "" if lean is None else words.instead_of(worst, lean, f"needs {_arrays_text(lean)}"),
            against=lean,
        )


def _arrays_text(case: Known) -> str:
    arrays = f"{case.peak_arrays or 0.0:.1f}"
    return "none" if arrays == "0.0" else arrays


def _excess(case: Known) -> float:
    """Peak memory as a multiple of the result; -1 where it is not known."""
    if case.peak_arrays is None or (not case.right and "dtype" not in case.changed):
        return -1.0
    dtypes = case.changed.get("dtype")
    if dtypes is None:
        return case.peak_arrays
    before, after = dtypes if isinstance(dtypes, list) and len(dtypes) == 2 else ("", "")  # noqa: PLR2004 - a pair
    if before not in DTYPES or after not in DTYPES:
        return -1.0
    return case.peak_arrays * DTYPES[before] / max(DTYPES[before], DTYPES[after])


def host_bounce(survey: Survey) -> Iterator[Claim]:
    """From the device through a host array back to the device."""
    bouncing = [case for case in survey.cases if _bounces(case)]
    others = {
        case.index: survey.instead(case, lambda other: not _bounces(other)) for case in bouncing
    }
    by_cause = by(bouncing, lambda case: (case.pair, others[case.index] is None))
    for (_, no_other), cases in by_cause.items():
        ranked = sorted(cases, key=lambda case: _saved_ns(case, others[case.index]), reverse=True)
        worst, other = ranked[0], others[ranked[0].index]
        through = words.several(ranked, "goes", "go")
        yield Claim(
            "info" if no_other else "warning",
            ranked,
            f"{words.codes(ranked)} {through} through the host although source and result are on"
            " the device",
            {"cost_ns": None if other is None else max(_saved_ns(worst, other), 0.0)},
            "No measured path stays on the device."
            if other is None
            else words.instead_of(worst, other, "stays on the device"),
            against=other,
        )


def _bounces(case: Known) -> bool:
    if not (case.result.case.device == "cuda" and case.stays):
        return False
    return case.result.case.protocol == HOST_PROTOCOL or _traced_there_and_back(case)


def _traced_there_and_back(case: Known) -> bool:
    """Whether the trace saw all of the array copied to the host, and all of it back."""
    trace = case.result.trace
    events = trace.evidence.get("events") if trace is not None else None
    copied = {"device to host": 0.0, "host to device": 0.0}
    for event in events if isinstance(events, list) else ():
        direction = mapping(event).get("direction")
        if direction in copied:
            copied[direction] += number(mapping(event).get("bytes")) or 0.0
    return case.size_bytes > 0 and min(copied.values()) >= case.size_bytes


def layout_copy(survey: Survey) -> Iterator[Claim]:
    """It copies this layout or alignment only: elsewhere the same path is a view."""
    views = by(
        (case for case in survey.cases if case.owner == "view" and case.ready is not None),
        _but_layout,
    )
    contrasts = {
        case.index: contrast
        for case in survey.cases
        if case.promise != "copy" and (contrast := _contrast(case, views)) is not None
    }
    copying = [case for case in survey.cases if case.index in contrasts]
    for cases in groups(copying, lambda case: (case.pair, contrasts[case.index].cause)):
        ranked = sorted(
            cases, key=lambda case: _saved_ns(case, contrasts[case.index].view), reverse=True
        )
        yield _layout_claim(ranked, contrasts[ranked[0].index])


class Contrast(NamedTuple):
    """What is copied and what is not, and what tells them apart.

    ``view`` is the same path as a view of another array; None where one case was both.
    """

    copied: str
    viewed: str
    cause: str
    view: Known | None


CONTIGUOUS = ("C", "aligned", "sliced")
"""Layouts that differ in their alignment only."""


def _contrast(case: Known, views: Mapping[tuple[object, ...], Sequence[Known]]) -> Contrast | None:
    if case.owner == "varies":
        return _varying(case)
    if case.owner != "copy" or not case.stays:
        return None
    found = [
        contrast
        for view in views.get(_but_layout(case), ())
        if clearly_longer(case.ready, view.ready, thresholds.SLOW_RATIO, thresholds.COSTLY_GAP_NS)
        and (contrast := _told_apart(case, view)) is not None
    ]
    return min(found, key=lambda contrast: contrast.cause == UNCLEAR, default=None)


UNCLEAR = "layout or alignment"


def _told_apart(case: Known, view: Known) -> Contrast | None:
    layouts = case.result.case.layout, view.result.case.layout
    known = case.alignment is not None and view.alignment is not None
    narrower = known and (case.alignment or 0) < (view.alignment or 0)
    if set(layouts) <= set(CONTIGUOUS):
        return _by_alignment(case.alignment, view.alignment, view) if narrower else None
    copied, viewed = (f"an array of layout {layout}" for layout in layouts)
    return Contrast(copied, viewed, UNCLEAR if narrower or not known else "layout", view)


def _by_alignment(copied: float | None, viewed: float | None, view: Known | None) -> Contrast:
    return Contrast(
        f"a source at a multiple of {copied or 0:.0f} bytes and no more",
        f"one at {viewed or 0:.0f}",
        "alignment",
        view,
    )


def _varying(case: Known) -> Contrast | None:
    """The widest alignment that was copied and the narrowest viewed, if the first is narrower."""
    alignments: dict[str, list[float]] = {"copy": [], "view": []}
    for word, evidence in case.owners:
        alignment = number(evidence.get("source_alignment_bytes"))
        if word not in alignments or alignment is None:
            return None
        alignments[word].append(alignment)
    if not all(alignments.values()):
        return None
    copied, viewed = max(alignments["copy"]), min(alignments["view"])
    return _by_alignment(copied, viewed, None) if copied < viewed else None


def _but_layout(case: Known) -> tuple[object, ...]:
    found = case.result.case
    return (*case.pair, found.export, found.import_, found.shape, found.dtype, found.device)


def _layout_claim(cases: Sequence[Known], contrast: Contrast) -> Claim:
    worst, view = cases[0], contrast.view
    cost = "" if view is None else f": {words.time(worst)} against {words.time(view)}"
    saved = None if view is None else _saved_ns(worst, view)
    advice = (
        "Allocate the source so that it begins there."
        if contrast.cause == "alignment"
        else f"Give it {contrast.viewed} where you can."
    )
    return Claim(
        "warning",
        cases,
        f"{words.codes(cases)} {words.several(cases, 'copies', 'copy')} {contrast.copied}, and"
        f" {words.several(cases, 'is a view', 'are views')} of {contrast.viewed}{cost}",
        {"cost_ns": saved, "cause": contrast.cause},
        advice if view is None else f"{advice} {words.instead_of(worst, view, 'is a view then')}",
        against=view,
    )


def promise_broken(survey: Survey) -> Iterator[Claim]:
    """The documentation says copy and the result is a view, or the other way round."""
    broken = [case for case in survey.cases if case.breaches]
    for cases in groups(broken, lambda case: (case.way_in, case.promise, _is_harmless(case))):
        ranked = sorted(cases, key=lambda case: case.breaches, reverse=True)
        yield _broken(survey, ranked)


def _broken(survey: Survey, cases: Sequence[Known]) -> Claim:
    worst = cases[0]
    verb = words.several(cases, "is", "are")
    kind = {"copy": ("a view", "views"), "view": ("a copy", "copies")}[worst.promise or ""]
    owner = words.several(cases, *kind)
    often = (
        "" if len(worst.owners) == 1 else f" in {worst.breaches} of {len(worst.owners)} processes"
    )
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
        {"documented": worst.promise, **_in_processes(worst)},
        _unpromised(worst)
        if other is None
        else words.instead_of(worst, other, f"is a {other.owner}"),
        against=other,
    )


def _unpromised(case: Known) -> str:
    """What to do where no measured path keeps the word: what is not measured is called so."""
    if case.promise == "view":
        return f"No measured path from {case.pair_text} is a safe view of it: count on a copy."
    if _is_harmless(case):
        return ""
    return (
        f"No measured path from {case.pair_text} that is documented to copy is a safe copy. Not"
        " measured: copy the source first with its own framework, such as x.copy() or x.clone(),"
        " and convert that copy."
    )


def _in_processes(case: Known) -> dict[str, int]:
    if len(case.owners) > 1:
        return {"processes": len(case.owners), "broken": case.breaches}
    whole = max(len(case.result.rounds), 1)  # processes that agree have one verdict together
    return {"processes": whole, "broken": whole}


def _is_harmless(case: Known) -> bool:
    """Whether the memory is shared, and nobody can write it by the frameworks' own means."""
    sides = case.writable.get("source"), case.writable.get("result")
    return case.promise == "copy" and sides == (False, False)


def _as_promised(survey: Survey, case: Known) -> Known | None:
    if case.promise == "copy":
        return survey.instead(case)
    return survey.instead(case, lambda other: other.owner == "view")
