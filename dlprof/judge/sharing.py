"""Rules on copies of some arrays only, on broken promises, and on torn copies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from dlprof.judge import thresholds
from dlprof.judge.case_view import WORDS, CaseView, all_looks, longer_by_itself, saved_ns
from dlprof.judge.cases import Cases, by_size, capped, is_contiguous
from dlprof.judge.rule import (
    COPY,
    LIKE_OTHERS,
    NONE_INSTEAD,
    ZERO_COPY,
    Rule,
    Severity,
    code,
    finding,
    producer_prefix,
    replacements,
    time,
)
from dlprof.judge.safety import Fault, has_gap
from dlprof.judge.script import LOOK, WRITE_SHOWS, Effect, Subject
from dlprof.runner.evidence import EarlyWrite
from dlprof.runner.quantity import size_text
from dlprof.runner.session import FindingRecord, Result, grouped


def _limits(cases: Iterable[CaseView]) -> tuple[float, float] | None:
    """Return the most bytes that divide the address of a copy, and the fewest of a view, which is
    aligned better; None if a process contradicts.
    """
    alignments: dict[str, list[float]] = {word: [] for word in WORDS}
    for case in cases:
        for word, evidence in case.kinds:
            if word not in alignments or not evidence.alignments:
                return None
            alignments[word] += evidence.alignments
        if case.by_address is None or case.by_address.verdict != "dependent":
            continue
        for place, look in case.by_address.evidence.places:
            begins = look.alignment_bytes
            if look.verdict in WORDS and begins is not None:
                alignments[look.verdict].append(capped(begins) if place == "aligned" else begins)
    if not all(alignments.values()):
        return None
    copied, viewed = max(alignments["copy"]), min(alignments["view"])
    return (copied, viewed) if copied < viewed else None


def _path_key(case: CaseView) -> tuple[object, ...]:
    record = case.result.case
    return (*case.pair, record.export, record.import_, record.shape, record.dtype, record.device)


Contrast = tuple[CaseView | None, tuple[float, float] | None]
"""The same path as a view of another array, and the alignments that differ. There is no view if one
case was both. Without alignments the layout decides."""

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


def show_layout_copy(subject: Subject) -> Effect:
    layout, other = subject.result.case.layout, subject.against
    if other is not None and other.result.case.layout != layout:
        copied, viewed = subject.create("copy"), other.create("view")
        array, other_array = f"a {layout} array", f"a {other.result.case.layout} array"
    else:
        copied, viewed = subject.create_layout("sliced"), subject.create_layout("aligned")
        array, other_array = "an array that is not 64-byte aligned", "an aligned array"
    does = f"copies {array}, but is a view of {other_array}"
    return subject.shown(does, LAYOUT, copied=copied, viewed=viewed)


@partial(
    Rule,
    "DLP017",
    "layout-copy",
    "warning",
    "The result is a view of this array too, or the call says that it copies.",
    show_layout_copy,
    source=ZERO_COPY,
    instrument="ownership",
    times=True,
)
def layout_copy(cases: Cases) -> Iterator[FindingRecord]:
    """The path copies this layout or alignment only; else it is a view."""
    views = grouped(
        (case for case in cases.cases if case.kind == "view" and case.ready is not None),
        _path_key,
    )
    contrasts = {
        case.index: contrast
        for case in cases.cases
        if case.promise != "copy" and (contrast := _contrast(case, views)) is not None
    }
    for group in cases.groups(
        lambda case: case.index in contrasts and (case.pair, contrasts[case.index][1] is None),
        lambda case: saved_ns(case, contrasts[case.index][0]),
    ):
        worst, (view, limits) = group[0], contrasts[group[0].index]
        if limits:
            copied = f"x aligned to {limits[0]:.0f} bytes, but not to {limits[1]:.0f}"
            advice = f"Begin the source at a multiple of {limits[1]:.0f} bytes."
        else:
            copied, viewed = (
                f"an array of layout {case.result.case.layout}" for case in (worst, view or worst)
            )
            copied, advice = f"{copied}, but not {viewed}", f"Give it {viewed} where you can."
        if view is not None and not cases.may_be_advised(view):
            advice = "The view is not known to be safe."
        yield finding(
            group,
            ("copies", "copy"),
            copied,
            f"{time(worst)} instead of {time(view)}" if view else "",
            evidence={"cost_ns": saved_ns(worst, view) if view else None},
            more=f"Aligned to {limits[1]:.0f} bytes, it is a view." if limits else "",
            advice=advice,
            against=view,
        )


def _contrast(
    case: CaseView, views: Mapping[tuple[object, ...], Sequence[CaseView]]
) -> Contrast | None:
    limits = _limits([case])
    if case.kind == "varies":
        return (None, limits) if limits else None
    if case.kind != "copy" or not case.stays_on_device:
        return None
    ratio, gap_ns = thresholds.SLOW_RATIO, thresholds.COSTLY_GAP_NS
    for view in views.get(_path_key(case), ()):
        if longer_by_itself(case.ready, view.ready, ratio, gap_ns):
            if not (is_contiguous(case) and is_contiguous(view)):
                return view, None
            if both := _limits([case, view]):
                return view, both
    # The instrument *alignment* may have seen a view of aligned memory.
    return (None, limits) if limits and case.by_address and is_contiguous(case) else None


NO_COPY_MADE = f"""
<create of view>
<convert of y>
{LOOK.strip()}
return addresses[0] == addresses[1]
"""
NO_VIEW_MADE = f"""
<create of copy>
try:
    y = <code>
except (ValueError, BufferError) as refusal:
    print("it refuses:", refusal)
    return False
<wait of y>
{LOOK.strip()}
return addresses[0] != addresses[1]
"""


def show_promise_broken(subject: Subject) -> Effect:
    does, template = "copies", NO_VIEW_MADE
    if subject.result.case.promise == "copy":
        is_writable = CaseView(0, subject.result).writable.source is not False
        can_show = subject.writable and is_writable and subject.has("values", "y")
        does, template = "is a view", WRITE_SHOWS if can_show else NO_COPY_MADE
    return subject.shown(f"{does}, although {_promise_text(subject.result)}", template)


def _is_broken(case: CaseView) -> bool:
    """Whether the documentation's promise was broken, here or at another address."""
    elsewhere = case.promise == "copy" and "view" in case.words_by_address
    return bool(case.broken_promises) or elsewhere


@partial(
    Rule,
    "DLP018",
    "promise-broken",
    {
        "error": "if a documented copy is a view",
        "info": "if neither side can be written",
        "warning": "if a documented view copies",
    },
    "The call keeps what its keyword or its documentation says about copies.",
    show_promise_broken,
    source=COPY,
    instrument="ownership",
    fault=Fault(_is_broken),
    changes=("view",),
)
def promise_broken(cases: Cases) -> Iterator[FindingRecord]:
    """The documentation says copy and the result is a view, or the other way round."""
    for group in cases.groups(
        lambda case: (
            _is_broken(case) and bool(case.kinds) and (case.entry, case.promise, _is_harmless(case))
        ),
        lambda case: (case.broken_promises, *by_size(case)),
    ):
        worst = group[0]
        severity: Severity = "warning"
        verb, effect, word = ("copies", "copy"), "", "copy"
        if worst.promise == "copy":
            severity, word = "error", "view"
            verb = "shares memory with x", "share memory with x"
            pair = ("the result", "x") if worst.loses_read_only else ("x", "the result")
            effect = "Writing to {} changes {}.".format(*pair)
        if _is_harmless(worst):
            severity, effect = "info", "Both are read-only."
        other = cases.replacement(worst, partial(_keeps, worst.promise))
        yield finding(
            group,
            verb,
            f"although {_promise_text(worst.result)}",
            brief=effect,
            advice=_advice(cases, group, other),
            look=("ownership", word),
            against=other,
            severity=severity,
        )


def _promise_text(result: Result) -> str:
    if result.case.is_statement:
        asks = "forbids" if result.case.promise == "view" else "asks for"
        return f"its keyword {asks} a copy"
    return f"a {result.case.promise} is documented"


def _is_harmless(case: CaseView) -> bool:
    sides = case.writable.source, case.writable.result
    return case.promise == "copy" and sides == (False, False)


def _keeps(promise: str | None, case: CaseView) -> bool:
    return case.kind == promise


def _advice(cases: Cases, group: Sequence[CaseView], other: CaseView | None) -> str:
    case, first = group[0], producer_prefix(group)
    if case.promise != "copy":
        if other is None:
            return f"{NONE_INSTEAD} Count on a copy."
        return f"{first}{code(other)} is a view{cases.scope_text(other)}."
    if other is not None:
        return f"{first}{code(other)} is a copy."
    if _is_harmless(case):
        return ""
    if (late := cases.late_copy(case)) is not None:
        return f"{first}{code(late)} is a copy once it is ready: wait for it before you write x."
    return f"{NONE_INSTEAD} Do not write x while you use the result."


COPIED = "x is copied"
"""The condition of a torn copy if other results are views."""
TORN = """
copies, torn = 0, False
end = perf_counter() + 20
while not torn and copies < 1000 and perf_counter() < end:
    <create>
    before = <values of x>
    y = <code>
    <write of x>
    <wait of y>
    copied = <copied>
    copies += copied
    torn = copied and bool((before != <flat_values of y>).any())
print("a write to x right after the call changed a copy:", torn, "- copies made:", copies)
return torn
"""


def show_torn_copy(subject: Subject) -> Effect:
    """Make the array whose copy was torn."""
    looks = [evidence for _, evidence in all_looks(subject.result.early_write)]
    made = next((look for look in looks if look.create is not None), EarlyWrite())
    subject = subject.with_array(made)
    has_addresses = subject.has("address", "x") and subject.has("address", "y")
    # A view must show the write.
    copied = subject.filled("<address of y> != <address of x>") if has_addresses else "True"
    condition = " when it copies" if subject.finding.evidence.get("only_where") else ""
    does = f"returns before it finishes reading x{condition}"
    return subject.shown(does, TORN, create=subject.recreate(made), copied=copied)


@partial(
    Rule,
    "DLP020",
    "unsafe-copy",
    "error",
    "The result is a view, which shows every write to `x`, or a copy, which shows none.",
    show_torn_copy,
    source=f"{LIKE_OTHERS} The specification does not say when a copy must be complete.",
    instrument="early_write",
    fault=Fault(lambda case: case.is_torn, ends_with_wait=True),
    changes=("unsafe",),
    other_arrays=True,
)
def unsafe_copy(cases: Cases) -> Iterator[FindingRecord]:
    """The copy still reads its source after the call has returned."""
    for group in cases.groups(
        lambda case: (
            case.is_torn and (case.pair[1], case.result.case.device, _torn_condition(case))
        ),
        lambda case: -_torn_bytes(case),
    ):
        worst, condition = group[0], _torn_condition(group[0])
        size = _torn_bytes(worst)
        recipe = worst.result.recipe
        advice = "Wait for the result before you write x."
        if recipe is not None and not recipe.result.get("wait"):
            advice = f"Do not write x after the call: {worst.pair[1]} offers no wait for a copy."
        if condition:
            advice = "Do not write x while you use the result: it may be a view."
        whole = replacements(
            cases,
            group,
            "is not torn",
            lambda other: _is_whole(other) and cases.copies(other),
        )
        copy = f"the copy of {size_text(size)}" if size else "the copy"
        yield finding(
            group,
            ("returns before it finishes reading x", "return before they finish reading x"),
            evidence={"size_bytes": size or None, "only_where": condition or None},
            more=(f"Seen only where {condition}. " if condition else "")
            + f"A write right after the call changed {copy}."
            + f" {worst.how_often('early_write', 'unsafe')}".rstrip(),
            advice=f"{advice}{whole and f' Or: {whole}'}",
        )


def _is_whole(case: CaseView) -> bool:
    look = case.result.early_write
    return look is not None and look.says("safe") and not has_gap(case, "early_write")


def _torn_condition(case: CaseView) -> str:
    looks = [
        look for _, evidence in all_looks(case.result.early_write) for look in _looks(evidence)
    ]
    words = {word for word, _ in case.kinds} | {word for _, word in looks}
    aligned = {evidence.aligned for evidence in _torn_evidence(case)}
    return COPIED if "view" in words | case.words_by_address or "view" in aligned else ""


def _torn_evidence(case: CaseView) -> list[EarlyWrite]:
    return [evidence for word, evidence in all_looks(case.result.early_write) if word == "unsafe"]


def _looks(evidence: EarlyWrite) -> list[tuple[str, str]]:
    """Return sizes in bytes and their verdicts, for aligned sources and others."""
    return [*(evidence.sizes_bytes or {}).items(), *(evidence.unaligned_bytes or {}).items()]


def _torn_bytes(case: CaseView) -> int:
    """Return the smallest torn size that the first process saw; 0 if it is not known."""
    looks = [look for evidence in _torn_evidence(case)[:1] for look in _looks(evidence)]
    return min((int(size) for size, verdict in looks if verdict == "torn"), default=0)
