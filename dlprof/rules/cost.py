"""What does it cost? Rules on slow paths, slow directions and conversions in loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dlprof.analysis import thresholds
from dlprof.analysis.alignment import aligned_as
from dlprof.analysis.case_view import CaseView
from dlprof.analysis.cases import Cases, by, groups
from dlprof.analysis.quantity import loop_time_text
from dlprof.analysis.slower import (
    compared,
    is_known,
    least_ns,
    longer_by_itself,
    saved_ns,
    surely_saved_ns,
)
from dlprof.rules import words
from dlprof.rules.rule import Rule, expect, finding
from dlprof.rules.script import HYSTERESIS, TIMED, Effect, Subject, function
from dlprof.rules.script import compared as compared_subject
from dlprof.rules.standards import ZERO_COPY
from dlprof.session.model import FindingRecord, Result

KINDS = {"view": "a view", "copy": "a copy"}


def slow_path(cases: Cases) -> Iterator[FindingRecord]:
    """Another measured path of the pair gives the same and is clearly faster."""
    faster = {case.index: _faster(cases, case) for case in cases.cases}
    slow = [case for case in cases.cases if faster[case.index]]
    for found in groups(slow, lambda case: (case.pair, case.owner)):
        ranked = sorted(found, key=lambda case: saved_ns(case, faster[case.index]), reverse=True)
        worst, best = ranked[0], faster[ranked[0].index]
        if best is None:
            continue
        kind = KINDS[worst.owner or ""]
        surely = surely_saved_ns(worst.ready, best.ready)
        takes = words.several(ranked, "takes", "take")
        yield finding(
            "warning" if surely >= thresholds.COSTLY_GAP_NS else "info",
            ranked,
            f"{words.paths(ranked)} {takes} longer than another path that is {kind}:"
            f" {words.time(worst)} instead of {words.time(best)}.",
            f"{words.subject(ranked)} {takes} longer than needed. The result is {kind} in"
            f" {words.time(worst)}{words.example(ranked)}.",
            {
                "cost_ns": saved_ns(worst, best) or None,
                **compared(("slow", worst), ("fast", best)),
            },
            words.instead_of(worst, best, f"is {kind} too{cases.where(best)}"),
            against=best,
        )


def _faster(cases: Cases, case: CaseView) -> CaseView | None:
    if case.owner not in KINDS or not case.right:
        return None
    best = cases.instead(case, lambda other: _is_alike(cases, case, other))
    slow = best is not None and longer_by_itself(
        case.ready, best.ready, thresholds.SLOW_RATIO, thresholds.SLOW_GAP_NS
    )
    return best if slow else None


def _is_alike(cases: Cases, case: CaseView, other: CaseView) -> bool:
    """Whether ``other`` is what ``case`` is, for memory that is aligned no better."""
    if other.owner != case.owner or other.kept or not is_known(other.ready):
        return False
    return cases.copies(other) if case.owner == "copy" else aligned_as(other, case)


RACE = f"""{TIMED}
<create>

<slow>
<fast>
times = timed(slow), timed(fast)
print("slow: %.2f us, fast: %.2f us" % times)
return times[0] > <ratio> * times[1] + <gap_us>
"""


def race(subject: Subject, fast: Subject) -> str:
    """A script's body that times two conversions of one array."""
    return subject.filled(
        RACE,
        create=subject.create_as_seen(),
        slow=function("slow", subject),
        fast=function("fast", fast),
        ratio=f"{thresholds.LEAST_RATIO:g}",
        gap_us=f"{thresholds.SLOW_GAP_NS / HYSTERESIS / 1e3:g}",
    )


def show_slow_path(subject: Subject, other: Subject | None, _: FindingRecord) -> Effect:
    fast = compared_subject(other)
    symptom = f"{subject.code} takes clearly longer than {fast.code}"
    return Effect(symptom, race(subject, fast), subject)


def asymmetric(cases: Cases) -> Iterator[FindingRecord]:
    """One direction costs many times the other, each by its best path."""
    # The cheapest right path of each array, safe or not: none costs less.
    best: dict[tuple[object, ...], CaseView] = {}
    for case in sorted(cases.cases, key=lambda case: (case.cost_ns, case.index)):
        if case.ready is not None and case.right:
            best.setdefault(case.array, case)
    slow = [
        (case, back)
        for case in best.values()
        if (back := best.get((*case.pair[::-1], *case.spec))) is not None
        and case.pair[0] != case.pair[1]
        and _costs_more(cases, case, back)
    ]
    for found in by(slow, lambda both: both[0].pair).values():
        case, back = max(found, key=lambda both: both[0].cost_ns / both[1].cost_ns)
        ranked = [case, *(there for there, _ in found if there is not case)]
        there_text, back_text = words.time(case), words.time(back)
        sure = "" if cases.may_be_advised(case) else ", which is not known to be safe"
        yield finding(
            "info",
            ranked,
            f"From {case.pair_text} takes {there_text} at best, but back takes {back_text}.",
            f"From {case.pair_text} takes {there_text} at best ({_kind(case)}). Back takes"
            f" {back_text} ({_kind(back)}){words.example(ranked)}.",
            compared(("there", case), ("back", back)),
            f"Fastest there: {words.code(case)}{sure}. Fastest back: {words.code(back)}.",
            against=back,
        )


def _costs_more(cases: Cases, case: CaseView, back: CaseView) -> bool:
    """Whether the direction of ``case`` costs more for sure: no other path may be its best."""
    there = (one for one in cases.arrays[case.array] if one.ready is not None and one.right)
    return (
        cases.may_be_advised(back)
        and not back.kept
        and all(least_ns(one) >= case.modes_ns[0] for one in there)
        and longer_by_itself(
            case.ready, back.ready, thresholds.ASYMMETRIC_RATIO, thresholds.ASYMMETRIC_GAP_NS
        )
    )


def _kind(case: CaseView) -> str:
    return KINDS.get(case.owner or "", "a view or a copy")


def lacks_direction(results: Sequence[Result]) -> str:
    """What :func:`asymmetric` would need that none of these has."""
    timed = {
        (*case.pair, result.environment, *case.spec)
        for result in results
        if result.ready_time is not None
        for case in (CaseView(0, result),)
    }
    if any(there != back and (back, there, *array) in timed for there, back, *array in timed):
        return ""
    return "the same array in both directions, as dlprof run A,B A,B and dlprof matrix have it"


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
        create=subject.create_as_seen(),
        there=function("there", subject),
        create_back=back.create_as_seen(),
        back=function("back", back),
        ratio=f"{thresholds.ASYMMETRIC_RATIO / HYSTERESIS:g}",
        gap_us=f"{thresholds.ASYMMETRIC_GAP_NS / HYSTERESIS / 1e3:g}",
    )
    there = f"{subject.result.case.producer} to {subject.result.case.consumer}"
    symptom = f"from {there}, {subject.code} takes many times as long as {back.code} back"
    return Effect(symptom, body, subject)


def convert_in_loop(cases: Cases) -> Iterator[FindingRecord]:
    """The conversion takes a good part of a loop that it could stand before.

    Each process compares its own two loops, and the interval of the share must lie above zero.
    """
    costly = [case for case in cases.cases if _share(case) >= thresholds.LOOP_SHARE]
    for found in groups(costly, lambda case: case.pair):
        ranked = sorted(found, key=_share, reverse=True)
        worst = ranked[0]
        in_loop, hoisted = _loops(worst)
        takes = f"{words.several(ranked, 'takes', 'take up to')} {_share(worst):.0%} of a loop"
        yield finding(
            "warning",
            ranked,
            f"{words.paths(ranked)} {takes}. Convert once, before the loop.",
            f"{words.subject(ranked)} {takes}. {_turns(worst)}{words.example(ranked)}.",
            {
                "cost_ns": in_loop - hoisted,
                "in_loop_ns": in_loop,
                "hoisted_ns": hoisted if _is_hoisted_known(worst) else None,
            },
            _hoist(cases, ranked),
        )


def lacks_loops(results: Sequence[Result]) -> str:
    """What :func:`convert_in_loop` would need that none of these has."""
    found = (result.placement for result in results)
    if any(one is not None and one.in_loop and one.hoisted for one in found):
        return ""
    return "the conversion in a loop and before it (see --placement)"


def _hoist(cases: Cases, ranked: Sequence[CaseView]) -> str:
    if all(case.owner == "view" and cases.holds(case) for case in ranked):
        return "Convert once, before the loop. The result is a view and shows later writes."
    return "Convert once, before the loop, if the source does not change in it."


def _loops(case: CaseView) -> tuple[float, float]:
    """Time per turn with the conversion inside and before the loop; zeros if not told apart."""
    found = case.result.placement if case.result.status == "ok" else None
    if found is None or found.in_loop is None or found.hoisted is None:
        return 0.0, 0.0
    share = found.share
    if share is None or share.ci95 is None or not share.is_known or share.ci95[0] <= 0:
        return 0.0, 0.0
    if found.in_loop.min_ns <= found.hoisted.min_ns:
        return 0.0, 0.0  # foreign load only ever adds: what was as fast once is no slower
    if not is_known(found.in_loop):  # too long a hoisted loop makes the share less, not more
        return 0.0, 0.0
    return found.in_loop.median_ns, found.hoisted.median_ns


def _turns(case: CaseView) -> str:
    """Both times as the table of the loop writes them, as far as they are known."""
    found = case.result.placement
    inside = f"A turn takes {loop_time_text(found.in_loop if found else None)} with it"
    if not _is_hoisted_known(case):
        return inside
    return f"{inside} and {loop_time_text(found.hoisted if found else None)} without"


def _is_hoisted_known(case: CaseView) -> bool:
    return is_known(case.result.placement.hoisted if case.result.placement else None)


def _share(case: CaseView) -> float:
    """The conversion's part, as each process found it in its own loops."""
    in_loop, hoisted = _loops(case)
    found = case.result.placement
    if found is None or found.share is None or in_loop - hoisted < thresholds.LOOP_GAP_NS:
        return 0.0
    return found.share.median


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
    body = subject.filled(
        LOOP,
        create=subject.create_as_seen(),
        convert=function("convert", subject),
        share=f"{thresholds.LOOP_SHARE / HYSTERESIS:g}",
        gap_us=f"{thresholds.LOOP_GAP_NS / HYSTERESIS / 1e3:g}",
    )
    return Effect(f"{subject.code} takes a good part of a loop", body, subject)


RULES = (
    Rule(
        "DLP012",
        "slow-path",
        "warning from 10 µs per call on, else info",
        slow_path,
        expect("Both expressions give the same result, and cost about the same."),
        show_slow_path,
        times=True,
    ),
    Rule(
        "DLP013",
        "asymmetric",
        "info",
        asymmetric,
        expect("Both directions hand over the same memory at a similar cost.", ZERO_COPY),
        show_asymmetric,
        lacks=lacks_direction,
        times=True,
    ),
    Rule(
        "DLP014",
        "convert-in-loop",
        "warning",
        convert_in_loop,
        expect("The conversion costs little compared with the work in the loop."),
        show_in_loop,
        lacks=lacks_loops,
        times=True,
    ),
)
