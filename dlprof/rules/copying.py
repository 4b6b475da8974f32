"""View or copy? Rules on copies that need not be, cost more than one, or break a promise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from dlprof.probes.base import DTYPES
from dlprof.rules import alignment, thresholds, words
from dlprof.rules.advice import for_each_producer
from dlprof.rules.known import Known, mapping, number
from dlprof.rules.rule import Claim
from dlprof.rules.survey import Survey, by, groups
from dlprof.rules.timing import longer_by_itself

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
            f" from {worst.pair_text} is a view{words.of_first(ranked)}: {words.time(worst)}"
            f" against {words.time(view)}",
            {"cost_ns": saved, "copy_ns": worst.modes_ns[0], "view_ns": view.modes_ns[1]},
            words.instead_of(worst, view, f"is a view{survey.where(view)}"),
            against=view,
        )


def _is_free(case: Known) -> bool:
    """Whether the case copied, and nothing it says about itself speaks of copying or not."""
    return case.owner == "copy" and case.stays and case.promise is None and case.right


def _view_instead(survey: Survey, case: Known) -> Known | None:
    view = survey.instead(
        case,
        lambda other: (
            other.owner == "view" and not other.kept and alignment.aligned_as(other, case)
        ),
    )
    slower = view is not None and longer_by_itself(
        case.ready, view.ready, thresholds.SLOW_RATIO, thresholds.SLOW_GAP_NS
    )
    return view if slower else None


def _saved_ns(case: Known, other: Known | None) -> float:
    """What the other path saves at least."""
    return max(case.modes_ns[0] - other.modes_ns[1], 0.0) if other is not None else 0.0


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
            f" {'up to ' if len(ranked) > 1 else ''}"
            f"{max(case.peak_arrays or 0.0 for case in ranked):.2g} arrays at"
            f" {words.several(ranked, 'its', 'their')} peak, beside the source",
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
            {"cost_ns": None if other is None else _saved_ns(worst, other)},
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
        yield _layout_claim(ranked, [contrasts[case.index] for case in ranked])


class Contrast(NamedTuple):
    """What is copied and what is not, and what tells them apart.

    ``view`` is the same path as a view of another array; None where one case was both.
    """

    copied: str
    viewed: str
    cause: str
    view: Known | None
    parted: alignment.Parted | None = None
    """The alignments, where they tell them apart."""


def _contrast(case: Known, views: Mapping[tuple[object, ...], Sequence[Known]]) -> Contrast | None:
    if case.owner == "varies":
        return _varying(case)
    if case.owner != "copy" or not case.stays:
        return None
    found = [
        contrast
        for view in views.get(_but_layout(case), ())
        if longer_by_itself(case.ready, view.ready, thresholds.SLOW_RATIO, thresholds.COSTLY_GAP_NS)
        and (contrast := _told_apart(case, view)) is not None
    ]
    known = min(found, key=lambda contrast: contrast.cause == UNCLEAR, default=None)
    return known or _tried(case)


def _tried(case: Known) -> Contrast | None:
    """What the instrument *alignment* saw: this path with aligned memory, as a view."""
    if case.tried is None or not alignment.is_contiguous(case):
        return None
    apart = alignment.parted([case])
    return _by_alignment(apart, None) if apart is not None else None


UNCLEAR = "layout or alignment"


def _told_apart(case: Known, view: Known) -> Contrast | None:
    layouts = case.result.case.layout, view.result.case.layout
    known = case.alignment is not None and view.alignment is not None
    narrower = known and (case.alignment or 0) < (view.alignment or 0)
    if alignment.is_contiguous(case) and alignment.is_contiguous(view):
        apart = alignment.parted([case, view]) if narrower else None
        return _by_alignment(apart, view) if apart is not None else None
    copied, viewed = (f"an array of layout {layout}" for layout in layouts)
    return Contrast(copied, viewed, UNCLEAR if narrower or not known else "layout", view)


def _by_alignment(apart: alignment.Parted, view: Known | None) -> Contrast:
    copied = f"a source {apart.where('copy')}"
    return Contrast(copied, f"one at {apart.viewed:.0f}", "alignment", view, apart)


def _varying(case: Known) -> Contrast | None:
    """The widest alignment that was copied and the narrowest viewed, if the first is narrower."""
    apart = alignment.parted([case])
    return _by_alignment(apart, None) if apart is not None else None


def _but_layout(case: Known) -> tuple[object, ...]:
    found = case.result.case
    return (*case.pair, found.export, found.import_, found.shape, found.dtype, found.device)


def _layout_claim(cases: Sequence[Known], contrasts: Sequence[Contrast]) -> Claim:
    worst, first = cases[0], contrasts[0]
    view = first.view
    apart = alignment.of_all([one.parted for one in contrasts if one.parted is not None])
    saved = None if view is None else _saved_ns(worst, view)
    advice = apart.advice if apart is not None else _layout_advice(worst, first)
    return Claim(
        "warning",
        cases,
        _layout_summary(cases, contrasts),
        {"cost_ns": saved, "cause": first.cause, **(apart.evidence if apart else {})},
        advice if view is None else f"{advice} {words.instead_of(worst, view, 'is a view then')}",
        against=view,
    )


def _layout_summary(cases: Sequence[Known], contrasts: Sequence[Contrast]) -> str:
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


def _layout_advice(worst: Known, contrast: Contrast) -> str:
    """What memory to give it instead: where it begins, or how far its elements are apart."""
    strides = [
        alignment.strides_bytes(case) if case is not None else None
        for case in (contrast.view, worst)
    ]
    if None in strides or strides[0] == strides[1]:
        return f"Give it {contrast.viewed} where you can."
    wanted, had = (", ".join(map(str, one or ())) for one in strides)
    also = ""
    if contrast.cause == UNCLEAR and contrast.view is not None and contrast.view.alignment:
        also = f", at a multiple of {contrast.view.alignment:.0f} bytes"
    return (
        f"Make the source with strides of ({wanted}) bytes{also}, as {contrast.viewed} has them,"
        f" instead of ({had})."
    )


def promise_broken(survey: Survey) -> Iterator[Claim]:
    """The documentation says copy and the result is a view, or the other way round."""
    broken = [case for case in survey.cases if case.breaches or case.tried_breach]
    for cases in groups(broken, lambda case: (case.way_in, case.promise, _is_harmless(case))):
        ranked = sorted(cases, key=lambda case: case.breaches, reverse=True)
        yield _broken(survey, ranked)


def _broken(survey: Survey, cases: Sequence[Known]) -> Claim:
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


def _how_often(cases: Sequence[Known]) -> str:
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


def _told_by_address(survey: Survey, cases: Sequence[Known]) -> alignment.Parted | None:
    """The alignments that tell the breaches of all cases, and of the same array in other
    contiguous layouts, from what is as documented; None where one does not fit.
    """
    arrays = {_but_layout(case) for case in cases}
    same = [
        case
        for case in survey.cases
        if case.owners and alignment.is_contiguous(case) and _but_layout(case) in arrays
    ]
    worst = [case for case in same if _but_layout(case) == _but_layout(cases[0])]
    if not all(map(alignment.is_contiguous, cases)) or alignment.parted(worst) is None:
        return None
    return alignment.parted(same)


def _kept_instead(survey: Survey, case: Known) -> tuple[str, str]:
    """What keeps the word, wherever the source begins; else what is known, and what to do."""
    other = _as_promised(survey, case)
    if case.promise == "copy":
        if other is None:
            return "", _no_copy(survey, case)
        return other.code, words.instead_of(case, other, "is a copy")
    if other is None:
        text = f"No measured path from {case.pair_text} is a safe view of it: count on a copy."
        return "", text
    where = survey.where(other)
    if not where:
        return other.code, words.instead_of(case, other, "is a view")
    nowhere = f"No measured path from {case.pair_text} is known to be a view wherever x begins"
    return other.code, f"{nowhere}: {words.instead_of(case, other, f'is one{where}')}"


def _no_copy(survey: Survey, case: Known) -> str:
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
        f" {'known to be ' if known else ''}a safe copy{known}. Not measured: copy the source first"
        " with its own framework, such as x.copy() or x.clone(), and convert that copy."
    )


def _is_right_copy(case: Known) -> bool:
    documented = case.promise == "copy" and not case.forbids_copy
    return documented and case.owner == "copy" and case.right and case.ready is not None


def _but(survey: Survey, copy: Known) -> str:
    """What is known of a copy that cannot be advised; empty where that is something else."""
    if not survey.holds(copy):
        return f": {words.code(copy)} copied{survey.where(copy)}"
    if survey.waiting_helps(copy):
        return f": {words.code(copy)} copies, but wait for the result before you write x (DLP020)"
    return ""


def _in_processes(case: Known) -> dict[str, int]:
    if len(case.owners) > 1:
        return {"processes": len(case.owners), "broken": case.breaches}
    whole = max(len(case.result.rounds), 1)  # processes that agree have one verdict together
    return {"processes": whole, "broken": whole if case.breaches else 0}


def _is_harmless(case: Known) -> bool:
    """Whether the memory is shared, and nobody can write it by the frameworks' own means."""
    sides = case.writable.get("source"), case.writable.get("result")
    return case.promise == "copy" and sides == (False, False)


def _as_promised(survey: Survey, case: Known) -> Known | None:
    if case.promise == "copy":
        return survey.instead(case)
    views = survey.instead(case, lambda other: other.owner == "view" and survey.holds(other))
    return views or survey.instead(case, lambda other: other.owner == "view")
