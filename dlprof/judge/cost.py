"""Rules on avoidable copies, slow paths and conversions in loops."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial

from dlprof.errors import NoReproducer
from dlprof.judge import thresholds
from dlprof.judge.case_view import (
    WORDS,
    CaseView,
    is_known,
    longer_by_itself,
    saved_ns,
    surely_saved_ns,
)
from dlprof.judge.cases import Cases, capped
from dlprof.judge.evidence_text import trace
from dlprof.judge.rule import (
    BY_COST,
    NONE_INSTEAD,
    ZERO_COPY,
    Rule,
    finding,
    replacement_text,
    time,
)
from dlprof.judge.script import HYSTERESIS, TIMED, Effect, Subject, shows
from dlprof.runner.axes import NO_TIMES
from dlprof.runner.evidence import PeakMemory
from dlprof.runner.quantity import brief_text
from dlprof.runner.session import FindingRecord


def _slower(
    cases: Cases,
    fits: Callable[[CaseView, CaseView], bool],
    cause: Callable[[CaseView], Hashable],
) -> Iterator[tuple[Sequence[CaseView], CaseView]]:
    """Yield the cases of each cause that take clearly longer than a replacement that fits, and
    the replacement of the first. The case that loses most stands first.
    """

    def is_faster(case: CaseView, other: CaseView) -> bool:
        ratio, gap_ns = thresholds.SLOW_RATIO, thresholds.SLOW_GAP_NS
        return longer_by_itself(case.ready, other.ready, ratio, gap_ns) and fits(case, other)

    replacements = {
        case.index: other
        for case in cases.cases
        if (other := cases.replacement(case, partial(is_faster, case))) is not None
    }
    for group in cases.groups(
        lambda case: case.index in replacements and cause(case),
        lambda case: saved_ns(case, replacements[case.index]),
    ):
        yield group, replacements[group[0].index]


def _costs_more(
    group: Sequence[CaseView],
    other: CaseView,
    verb: tuple[str, str],
    does: str,
    claim: str,
) -> FindingRecord:
    worst = group[0]
    surely = surely_saved_ns(worst.ready, other.ready)
    return finding(
        group,
        verb,
        does,
        f"{time(worst)} instead of {time(other)}",
        evidence={"cost_ns": saved_ns(worst, other) or None},
        advice=replacement_text(worst, other, claim),
        against=other,
        severity="warning" if surely >= thresholds.COSTLY_GAP_NS else "info",
    )


def _aligned_as(view: CaseView, case: CaseView) -> bool:
    """Whether the view's source was aligned no better than the case's, as far as is known.

    A view of a source at 64 bytes may be a copy of one at 16, as JAX's imports are.
    """
    needed, had = view.alignments, case.alignments
    return not needed or not had or capped(min(needed)) <= min(had)


AVOIDABLE = """
<create of copy>
<convert of y>
<other>
addresses = <address of x>, <address of y>, <address of z>
print("x is at %#x, y at %#x, z at %#x" % addresses)
return addresses[2] == addresses[0] != addresses[1]
"""


def show_avoidable_copy(subject: Subject) -> Effect:
    view = subject.other
    return subject.shown(
        f"copies, although {view.code} is a view",
        AVOIDABLE,
        other=view.filled("<convert of z>"),
    )


@partial(
    Rule,
    "DLP004",
    "avoidable-copy",
    BY_COST,
    "The result is a view: another path between these frameworks gives one.",
    show_avoidable_copy,
    source=ZERO_COPY,
    instrument="ownership",
    times=True,
)
def avoidable_copy(cases: Cases) -> Iterator[FindingRecord]:
    """It copies although no code asked for it, and another measured path of the pair is a view."""

    def is_avoided(case: CaseView, other: CaseView) -> bool:
        is_copy = case.kind == "copy" and case.promise is None and case.is_right
        is_view = other.kind == "view" and not other.is_cached and _aligned_as(other, case)
        return is_copy and case.stays_on_device and is_view

    for group, view in _slower(cases, is_avoided, lambda case: case.pair):
        yield _costs_more(
            group,
            view,
            ("copies", "copy"),
            "although a view exists",
            f"is a view{cases.scope_text(view)}",
        )


AMPLIFIED = (1 + thresholds.AMPLIFIED_ARRAYS) / 2
"""Halfway between a copy, which needs one array, and the rule's limit."""
PEAK = r"""
def status(name):
    text = Path("/proc/self/status").read_text()
    return int(re.search(name + r":\s+(\d+)", text)[1]) * 1024

<create>
# once before: what is made at first and kept does not count
<convert of y>
del y
gc.collect()
ctypes.CDLL(None).malloc_trim(0)  # memory that was freed would hide a copy
before = status("VmRSS")
Path("/proc/self/clear_refs").write_text("5")  # begins a new high-water mark
<convert of y>
arrays = (status("VmHWM") - before) / <size>
print(f"the resident memory grew by {arrays:.2f} arrays at its peak")
return arrays > <most>
"""


def show_amplification(subject: Subject) -> Effect:
    case = CaseView(0, subject.result)
    if subject.result.case.device != "cpu":
        raise NoReproducer("each framework counts the memory of a device in its own way")
    peak = subject.result.peak_memory
    evidence = peak.evidence if peak else PeakMemory()
    size = evidence.size_bytes or case.size_bytes
    if size <= 0:
        raise NoReproducer("the size of the array is not known")
    subject = subject.with_array(evidence)
    return subject.shown(
        "needs more memory than one copy",
        PEAK,
        create=subject.recreate(evidence),
        size=f"{size:.0f}",
        most=f"{AMPLIFIED:g}",
    )


@partial(
    Rule,
    "DLP005",
    "copy-amplification",
    "warning",
    "At its peak, a copy needs the memory of one array, and a view none.",
    show_amplification,
    instrument="peak_memory",
    changes=("peak_memory",),
)
def copy_amplification(cases: Cases) -> Iterator[FindingRecord]:
    """At its peak it needs more memory than its copy."""

    def is_lean(case: CaseView) -> bool:
        # Peak memory is measured with another array: a view here may be a copy there.
        is_little = 0 <= _excess(case) <= thresholds.LEAN_ARRAYS
        return is_little and (case.kind != "view" or cases.is_constant(case))

    for group in cases.groups(
        lambda case: _excess(case) >= thresholds.AMPLIFIED_ARRAYS and case.pair, _excess
    ):
        worst = group[0]
        lean = cases.replacement(worst, is_lean)
        advice = ""
        if lean is not None:
            advice = replacement_text(worst, lean, f"grows it by {lean.peak_arrays:.1f} arrays")
        most = "up to " if len(group) > 1 else ""
        yield finding(
            group,
            ("needs", "need"),
            "more memory than one copy",
            f"resident memory grows by {most}{worst.peak_arrays:.2g} arrays",
            advice=advice,
            against=lean,
        )


def _excess(case: CaseView) -> float:
    return case.peak_arrays if case.peak_arrays is not None and case.is_right else -1.0


TO_HOST = f"""{TIMED}
<create>

<function of convert>
times = timed(convert), timed(lambda: <values of x>)
print("the conversion takes %.1f us, a copy of x to the host %.1f us" % times)
return times[0] > 0.8 * times[1]
"""


def show_host_bounce(subject: Subject) -> Effect:
    """The conversion costs as much as a copy to the host."""
    if subject.result.untimed:
        raise NoReproducer(f"a bounce shows only in {NO_TIMES}")
    return subject.shown("goes through the host", TO_HOST)


@partial(
    Rule,
    "DLP006",
    "host-bounce",
    {"warning": "where another measured path is known to stay on the device", "info": ""},
    "The data stay on the device.",
    show_host_bounce,
    source=ZERO_COPY,
)
def host_bounce(cases: Cases) -> Iterator[FindingRecord]:
    """The data go from the device through a host array back to the device."""
    replacements = {
        case.index: cases.replacement(case, _is_known_to_stay)
        for case in cases.cases
        if case.bounces
    }
    for group in cases.groups(
        lambda case: case.index in replacements and (case.pair, replacements[case.index] is None),
        lambda case: saved_ns(case, replacements[case.index]),
    ):
        worst, other = group[0], replacements[group[0].index]
        yield finding(
            group,
            ("goes", "go"),
            "through the host, although source and result are on the device",
            evidence={"cost_ns": saved_ns(worst, other) if other else None},
            more=trace(worst.result),
            advice=replacement_text(worst, other, "stays on the device") if other else NONE_INSTEAD,
            against=other,
            severity="warning" if other else "info",
        )


def _is_known_to_stay(case: CaseView) -> bool:
    """Whether it is a view, or a copy that a trace or a simulated device saw stay."""
    trace, owned = case.result.trace, case.result.ownership
    is_traced = trace is not None and trace.says("traced")
    is_recorded = owned is not None and owned.evidence.crosses_twice is False
    return not case.bounces and (case.kind == "view" or is_recorded or is_traced)


TIME_BOTH = f"""{TIMED}
<create>

<function of first>
first_us = timed(first)

<other>
other_us = timed(other)
print(f"first: {{first_us:.2f}} us, other: {{other_us:.2f}} us")
return first_us > <ratio> * other_us and first_us - other_us > <gap_us>
"""


def show_slow_path(subject: Subject) -> Effect:
    fast = subject.other
    return subject.shown(
        f"takes clearly longer than {fast.code}",
        TIME_BOTH,
        other=fast.filled("<function of other>"),
        ratio=f"{thresholds.LEAST_RATIO:g}",
        gap_us=f"{thresholds.SLOW_GAP_NS / HYSTERESIS / 1e3:g}",
    )


@partial(
    Rule,
    "DLP012",
    "slow-path",
    BY_COST,
    "Both expressions give the same result, and cost about the same.",
    show_slow_path,
    times=True,
)
def slow_path(cases: Cases) -> Iterator[FindingRecord]:
    """Another measured path of the pair gives the same and is clearly faster."""

    def is_alike(case: CaseView, other: CaseView) -> bool:
        """Whether ``other`` is of the same kind, for memory that is aligned no better."""
        if other.kind != case.kind or other.is_cached:
            return False
        if case.kind not in WORDS or not case.is_right:
            return False
        return cases.copies(other) if case.kind == "copy" else _aligned_as(other, case)

    for group, best in _slower(cases, is_alike, lambda case: (case.pair, case.kind)):
        yield _costs_more(
            group,
            best,
            ("is slower than", "are slower than"),
            f"another {best.kind}",
            f"is a {best.kind} too{cases.scope_text(best)}",
        )


LOOP = """
<create>

<function of convert>
def convert_inside():
    y = convert()
    z = <use of y>
    <wait of z>

y = convert()

def convert_before():
    z = <use of y>
    <wait of z>

# in turns: what slows the machine for a while slows both
calls = max(Timer(convert_inside).autorange()[0] // 5, 1)
both = convert_inside, convert_before
turns = [[Timer(one).timeit(calls) for one in both] for _ in range(25)]
times = tuple(min(found) / calls * 1e6 for found in zip(*turns))
print("one turn: %.2f us with the conversion inside, %.2f us with it before" % times)
part = times[0] - times[1]
return part > <share> * times[0] and part > <gap_us>
"""


@partial(
    Rule,
    "DLP014",
    "convert-in-loop",
    "warning",
    "The conversion costs little compared with the work in the loop.",
    shows(
        "takes a good part of a loop",
        LOOP,
        share=f"{thresholds.LOOP_SHARE / HYSTERESIS:g}",
        gap_us=f"{thresholds.SLOW_GAP_NS / HYSTERESIS / 1e3:g}",
    ),
    times=True,
)
def convert_in_loop(cases: Cases) -> Iterator[FindingRecord]:
    """The conversion takes a good part of a loop, and could stand before it.

    Each process compares its own two loops, and the interval of the share must lie above zero.
    """
    for group in cases.groups(
        lambda case: _share(case) >= thresholds.LOOP_SHARE and case.pair, _share
    ):
        loops = group[0].result.placement
        if loops is None or loops.in_loop is None or loops.hoisted is None:
            continue
        inside, before = loops.in_loop, loops.hoisted
        hoisted_text = f" and {brief_text(before)} without" if is_known(before) else ""
        advice = "Convert once, before the loop, if the source does not change in it."
        if all(case.kind == "view" and cases.is_constant(case) for case in group):
            advice = "Convert once, before the loop. The result is a view and shows later writes."
        yield finding(
            group,
            ("takes", "take up to"),
            f"{_share(group[0]):.0%} of a loop",
            f"{brief_text(inside)} per turn with it{hoisted_text}",
            evidence={"cost_ns": inside.median_ns - before.median_ns},
            advice=advice,
        )


def _share(case: CaseView) -> float:
    """Return the conversion's share of the loop; 0 if the two loops cannot be told apart."""
    placement = case.result.placement
    if placement is None:
        return 0.0
    inside, before, share = placement.in_loop, placement.hoisted, placement.share
    if case.result.status != "ok" or inside is None or before is None or share is None:
        return 0.0
    if share.ci95 is None or not share.is_known or share.ci95[0] <= 0:
        return 0.0
    # Other programs only ever add time: a loop that was as fast once is not slower.
    if inside.min_ns <= before.min_ns or not is_known(inside):
        return 0.0
    is_worth_it = inside.median_ns - before.median_ns >= thresholds.SLOW_GAP_NS
    return share.median if is_worth_it else 0.0
