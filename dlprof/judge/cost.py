"""What does it cost? Rules on slow paths, slow directions and conversions in loops."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence

from dlprof.judge import thresholds
from dlprof.judge.alignment import aligned_as
from dlprof.judge.case_view import CaseView, is_known
from dlprof.judge.cases import Cases, groups
from dlprof.judge.rule import BY_COST, Rule, code, expect, finding, instead_of, time
from dlprof.judge.script import HYSTERESIS, TIMED, Effect, Subject, function
from dlprof.judge.script import compared as compared_subject
from dlprof.judge.slower import (
    compared,
    longer_by_itself,
    saved_ns,
    surely_saved_ns,
)
from dlprof.judge.standards import ZERO_COPY
from dlprof.runner.quantity import brief_text
from dlprof.runner.session import FindingRecord

KINDS = {"view": "a view", "copy": "a copy"}


def slower_cases(
    cases: Cases,
    other_of: Callable[[CaseView], CaseView | None],
    cause: Callable[[CaseView], Hashable],
) -> Iterator[tuple[Sequence[CaseView], CaseView]]:
    """The cases that take clearly longer than the replacement that ``other_of`` finds for them, by
    cause, and the other of the first. The case that loses most stands first.
    """
    others = {
        case.index: other
        for case in cases.cases
        if (other := other_of(case)) is not None
        and longer_by_itself(case.ready, other.ready, thresholds.SLOW_RATIO, thresholds.SLOW_GAP_NS)
    }
    slow = [case for case in cases.cases if case.index in others]
    for found in groups(slow, cause, lambda case: saved_ns(case, others[case.index])):
        yield found, others[found[0].index]


def costs_more(
    found: Sequence[CaseView],
    other: CaseView,
    verb: tuple[str, str],
    does: str,
    names: tuple[str, str],
    instead: str,
) -> FindingRecord:
    """The finding that a cheaper path stands for the first of ``found``."""
    worst = found[0]
    surely = surely_saved_ns(worst.ready, other.ready)
    return finding(
        found,
        verb,
        does,
        f"{time(worst)} instead of {time(other)}",
        evidence={
            "cost_ns": saved_ns(worst, other) or None,
            **compared((names[0], worst), (names[1], other)),
        },
        advice=instead_of(worst, other, instead),
        against=other,
        severity="warning" if surely >= thresholds.COSTLY_GAP_NS else "info",
    )


def slow_path(cases: Cases) -> Iterator[FindingRecord]:
    """Another measured path of the pair gives the same and is clearly faster."""

    def faster(case: CaseView) -> CaseView | None:
        if case.kind not in KINDS or not case.is_right:
            return None
        return cases.replacement(case, lambda other: is_alike(case, other))

    def is_alike(case: CaseView, other: CaseView) -> bool:
        """Whether ``other`` is what ``case`` is, for memory that is aligned no better."""
        if other.kind != case.kind or other.is_cached or not other.is_known:
            return False
        return cases.copies(other) if case.kind == "copy" else aligned_as(other, case)

    for found, best in slower_cases(cases, faster, lambda case: (case.pair, case.kind)):
        kind = KINDS[best.kind or ""]
        yield costs_more(
            found,
            best,
            ("is slower than", "are slower than"),
            f"another {best.kind}",
            ("slow", "fast"),
            f"is {kind} too{cases.where(best)}",
        )


TIME_BOTH = f"""{TIMED}
<create>

<slow>
<fast>
times = timed(slow), timed(fast)
print("slow: %.2f us, fast: %.2f us" % times)
return times[0] > <ratio> * times[1] + <gap_us>
"""


def show_slow_path(subject: Subject, other: Subject | None, _: FindingRecord) -> Effect:
    fast = compared_subject(other)
    return subject.shown(
        f"takes clearly longer than {fast.code}",
        TIME_BOTH,
        slow=function("slow", subject),
        fast=function("fast", fast),
        ratio=f"{thresholds.LEAST_RATIO:g}",
        gap_us=f"{thresholds.SLOW_GAP_NS / HYSTERESIS / 1e3:g}",
    )


def asymmetric(cases: Cases) -> Iterator[FindingRecord]:
    """One direction costs many times the other, each by its best path."""
    # The cheapest right path of each array, safe or not: none costs less.
    best: dict[tuple[object, ...], CaseView] = {}
    pairs = {case.pair for case in cases.cases}
    both_ways = [case for case in cases.cases if case.pair[::-1] in pairs]
    for case in sorted(both_ways, key=lambda case: (case.cost_ns, case.index)):
        if case.ready is not None and case.is_right:
            best.setdefault(case.array, case)
    backs = {
        case.index: back
        for case in best.values()
        if (back := best.get((*case.pair[::-1], *case.spec))) is not None
        and case.pair[0] != case.pair[1]
        and _costs_more(cases, case, back)
    }
    slow = [case for case in best.values() if case.index in backs]
    for found in groups(
        slow, lambda case: case.pair, lambda case: case.cost_ns / backs[case.index].cost_ns
    ):
        case, back = found[0], backs[found[0].index]
        sure = "" if cases.may_be_advised(case) else ", which is not known to be safe"
        yield finding(
            found,
            ("takes", "take"),
            "many times as long as the way back",
            f"{time(case)} from {case.direction}, {time(back)} back",
            evidence=compared(("there", case), ("back", back)),
            advice=f"Fastest there: {code(case)}{sure}. Fastest back: {code(back)}.",
            against=back,
        )


def _costs_more(cases: Cases, case: CaseView, back: CaseView) -> bool:
    """Whether the direction of ``case`` costs more for sure."""
    return (
        cases.may_be_advised(back)
        and not back.is_cached
        and longer_by_itself(
            case.ready, back.ready, thresholds.ASYMMETRIC_RATIO, thresholds.ASYMMETRIC_GAP_NS
        )
    )


BOTH_WAYS = f"""{TIMED}
<create>

<there>
there_us = timed(there)
<create_back>

<back>
back_us = timed(back)
print(f"there: {{there_us:.2f}} us, back: {{back_us:.2f}} us")
return there_us > <ratio> * back_us and there_us - back_us > <gap_us>
"""


def show_asymmetric(subject: Subject, other: Subject | None, _: FindingRecord) -> Effect:
    back = compared_subject(other)
    body = subject.filled(
        BOTH_WAYS,
        there=function("there", subject),
        create_back=back.create(),
        back=function("back", back),
        ratio=f"{thresholds.ASYMMETRIC_RATIO / HYSTERESIS:g}",
        gap_us=f"{thresholds.ASYMMETRIC_GAP_NS / HYSTERESIS / 1e3:g}",
    )
    there = " to ".join(subject.result.case.pair)
    does = f"takes many times as long from {there} as {back.code} back"
    return Effect(does, body, subject)


def convert_in_loop(cases: Cases) -> Iterator[FindingRecord]:
    """The conversion takes a good part of a loop that it could stand before.

    Each process compares its own two loops, and the interval of the share must lie above zero.
    """
    costly = [case for case in cases.cases if _share(case) >= thresholds.LOOP_SHARE]
    for found in groups(costly, lambda case: case.pair, _share):
        loops = found[0].result.placement
        if loops is None or loops.in_loop is None or loops.hoisted is None:
            continue
        inside, before = loops.in_loop, loops.hoisted
        told = is_known(before)
        without = f" and {brief_text(before)} without" if told else ""
        is_view = all(case.kind == "view" and cases.is_constant(case) for case in found)
        advice = "Convert once, before the loop, if the source does not change in it."
        if is_view:
            advice = "Convert once, before the loop. The result is a view and shows later writes."
        yield finding(
            found,
            ("takes", "take up to"),
            f"{_share(found[0]):.0%} of a loop",
            f"{brief_text(inside)} per turn with it{without}",
            evidence={
                "cost_ns": inside.median_ns - before.median_ns,
                "in_loop_ns": inside.median_ns,
                "hoisted_ns": before.median_ns if told else None,
            },
            advice=advice,
        )


def _share(case: CaseView) -> float:
    """The conversion's part of the loop, as each process found it in its own loops; 0 where the
    loops cannot be told apart.
    """
    found = case.result.placement
    if found is None:
        return 0.0
    inside, before, share = found.in_loop, found.hoisted, found.share
    if case.result.status != "ok" or inside is None or before is None or share is None:
        return 0.0
    if share.ci95 is None or not share.is_known or share.ci95[0] <= 0:
        return 0.0
    # Foreign load only ever adds: what was as fast once is no slower. Too long a loop without the
    # conversion makes the share less, not more.
    if inside.min_ns <= before.min_ns or not is_known(inside):
        return 0.0
    is_worth_it = inside.median_ns - before.median_ns >= thresholds.LOOP_GAP_NS
    return share.median if is_worth_it else 0.0


LOOP = """
<create>

<convert>
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


def show_in_loop(subject: Subject, _: Subject | None, __: FindingRecord) -> Effect:
    return subject.shown(
        "takes a good part of a loop",
        LOOP,
        convert=function("convert", subject),
        share=f"{thresholds.LOOP_SHARE / HYSTERESIS:g}",
        gap_us=f"{thresholds.LOOP_GAP_NS / HYSTERESIS / 1e3:g}",
    )


RULES = (
    Rule(
        "DLP012",
        "slow-path",
        BY_COST,
        slow_path,
        expect("Both expressions give the same result, and cost about the same."),
        show_slow_path,
        times=True,
        needs_times=True,
    ),
    Rule(
        "DLP013",
        "asymmetric",
        "info",
        asymmetric,
        expect("Both directions hand over the same memory at a similar cost.", ZERO_COPY),
        show_asymmetric,
        times=True,
        needs_times=True,
    ),
    Rule(
        "DLP014",
        "convert-in-loop",
        "warning",
        convert_in_loop,
        expect("The conversion costs little compared with the work in the loop."),
        show_in_loop,
        times=True,
        needs_times=True,
    ),
)
