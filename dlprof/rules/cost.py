"""What does it cost? Rules on slow paths, slow directions and conversions in loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dlprof.analysis import thresholds
from dlprof.analysis.alignment import aligned_as
from dlprof.analysis.case_view import CaseView
from dlprof.analysis.cases import Cases, by, groups
from dlprof.analysis.quantity import loop_time_text
from dlprof.analysis.slower import compared, is_known, longer_by_itself, surely_saved_ns
from dlprof.rules import words
from dlprof.rules.rule import Claim, Rule
from dlprof.session.model import Result


def slow_path(survey: Cases) -> Iterator[Claim]:
    """Another measured path of the pair gives the same and is clearly faster."""
    faster = {case.index: _faster(survey, case) for case in survey.cases}
    slow = [case for case in survey.cases if faster[case.index]]
    for cases in groups(slow, lambda case: (case.pair, case.owner)):
        ranked = sorted(cases, key=lambda case: _saved_ns(case, faster[case.index]), reverse=True)
        worst, best = ranked[0], faster[ranked[0].index]
        if best is None:
            continue
        saved = _saved_ns(worst, best)
        kind = {"view": "a view", "copy": "a copy"}[worst.owner or ""]
        yield Claim(
            _severity(worst, best),
            ranked,
            f"{words.codes(ranked)}, {kind}{words.several(ranked, '', ' each')},"
            f" {_as_long(ranked, words.longer_text(worst, best, _than(survey, best)))}",
            {"cost_ns": saved or None, **compared(("slow", worst), ("fast", best))},
            words.instead_of(worst, best, f"is {kind} too{survey.where(best)}"),
            against=best,
        )


def _as_long(ranked: Sequence[CaseView], ratio: str) -> str:
    """How long the first takes, which is not always the slowest: it wastes most."""
    worst = ranked[0]
    if words.several(ranked, "", "many"):
        return (
            f"take longer{words.of_first(ranked)}: {words.time(worst)}{ratio.replace(':', ',', 1)}"
        )
    return f"takes {words.time(worst)}{ratio}{words.where(worst, ranked)}"


def _severity(slow: CaseView, fast: CaseView) -> str:
    surely = surely_saved_ns(slow.ready, fast.ready)
    return "warning" if surely >= thresholds.COSTLY_GAP_NS else "info"


def _than(survey: Cases, best: CaseView) -> str:
    """What is called the fastest must be so: nothing of its kind may stand above it in the table.

    A time that is not known is at most what it is said to be, so that it may be the least.
    """
    alike = [case for case in survey.arrays[best.array] if case.owner == best.owner and case.right]
    least = min(_least_ns(case) for case in alike)
    return (
        " as long as the fastest"
        if best.modes_ns[0] <= least
        else f" as long as {words.code(best)}"
    )


def _least_ns(case: CaseView) -> float:
    """What the case takes at least, as far as is known: its fastest sample, or its own time in its
    fastest mode.
    """
    if case.ready is None or is_known(case.ready):
        return case.modes_ns[0]
    return case.ready.min_ns


def _faster(survey: Cases, case: CaseView) -> CaseView | None:
    if case.owner not in ("view", "copy") or not case.right:
        return None
    best = survey.instead(case, lambda other: _is_alike(survey, case, other))
    slow = best is not None and longer_by_itself(
        case.ready, best.ready, thresholds.SLOW_RATIO, thresholds.SLOW_GAP_NS
    )
    return best if slow else None


def _is_alike(survey: Cases, case: CaseView, other: CaseView) -> bool:
    """Whether ``other`` is what ``case`` is, for memory that is aligned no better."""
    if other.owner != case.owner or other.kept or not is_known(other.ready):
        return False
    return survey.copies(other) if case.owner == "copy" else aligned_as(other, case)


def _saved_ns(case: CaseView, other: CaseView | None) -> float:
    """What the better path saves at least."""
    return max(case.modes_ns[0] - other.modes_ns[1], 0.0) if other is not None else 0.0


def asymmetric(survey: Cases) -> Iterator[Claim]:
    """One direction costs many times the other, each by its best path."""
    best = _best_of_pairs(survey)
    slow = [
        (case, back)
        for (pair, spec), case in best.items()
        if (back := best.get((pair[::-1], spec))) is not None
        and pair[0] != pair[1]
        and survey.is_safe(back)
        and not back.kept
        and all(_least_ns(one) >= case.modes_ns[0] for one in _right_ones(survey, case))
        and longer_by_itself(
            case.ready, back.ready, thresholds.ASYMMETRIC_RATIO, thresholds.ASYMMETRIC_GAP_NS
        )
    ]
    for found in by(slow, lambda both: both[0].pair).values():
        case, back = max(found, key=lambda both: both[0].cost_ns / both[1].cost_ns)
        cases = [case, *(there for there, _ in found if there is not case)]
        yield Claim(
            "info",
            cases,
            f"from {case.pair_text} costs {words.time(case)} at best ({_kind(case)}), back"
            f" {words.time(back)} ({_kind(back)}){words.longer_text(case, back, '')}"
            f"{words.where(case, cases)}",
            compared(("there", case), ("back", back)),
            f"Fastest there: {words.code(case)}{'' if survey.is_safe(case) else UNSAFE};"
            f" back: {words.code(back)}.",
            against=back,
        )


def lacks_direction(results: Sequence[Result]) -> str:
    """What :func:`asymmetric` would need that none of these has."""
    timed = {
        (
            one.producer,
            one.consumer,
            result.environment,
            one.shape,
            one.dtype,
            one.layout,
            one.device,
        )
        for result in results
        if result.ready_time is not None
        for one in (result.case,)
    }
    if any(there != back and (back, there, *array) in timed for there, back, *array in timed):
        return ""
    return "the same array in both directions, as dlprof run A,B A,B and dlprof matrix have it"


UNSAFE = ", which is not known to be safe"


def _right_ones(survey: Cases, case: CaseView) -> Iterator[CaseView]:
    """What could be the best way there, if its time were known."""
    alike = survey.arrays[case.array]
    return (other for other in alike if other.ready is not None and other.right)


def _best_of_pairs(survey: Cases) -> dict[tuple[tuple[str, str], Any], CaseView]:
    """The cheapest right case of each pair and array, safe or not: nobody can do it for less."""
    best: dict[tuple[tuple[str, str], Any], CaseView] = {}
    for case in sorted(survey.cases, key=lambda case: (case.cost_ns, case.index)):
        if case.ready is not None and case.right:
            best.setdefault((case.pair, case.spec), case)
    return best


def _kind(case: CaseView) -> str:
    return {"view": "a view", "copy": "a copy"}.get(case.owner or "", "a view or a copy")


def convert_in_loop(survey: Cases) -> Iterator[Claim]:
    """The conversion takes a good part of a loop that it could stand before.

    Each process compares its own two loops, and the interval of the share must lie above zero.
    """
    costly = [case for case in survey.cases if _share(case) >= thresholds.LOOP_SHARE]
    for cases in groups(costly, lambda case: case.pair):
        ranked: Sequence[CaseView] = sorted(cases, key=_share, reverse=True)
        in_loop, hoisted = _loops(ranked[0])
        yield Claim(
            "warning",
            ranked,
            f"{words.codes(ranked)} {words.several(ranked, 'takes', 'take up to')}"
            f" {_share(ranked[0]):.0%} of a loop{words.of_first(ranked)}: {_turns(ranked[0])}",
            {
                "cost_ns": in_loop - hoisted,
                "in_loop_ns": in_loop,
                "hoisted_ns": hoisted if _is_hoisted_known(ranked[0]) else None,
            },
            _hoist(survey, ranked),
        )


def lacks_loops(results: Sequence[Result]) -> str:
    """What :func:`convert_in_loop` would need that none of these has."""
    found = (result.placement for result in results)
    if any(one is not None and one.in_loop and one.hoisted for one in found):
        return ""
    return "the conversion in a loop and before it (see --placement)"


def _hoist(survey: Cases, cases: Sequence[CaseView]) -> str:
    if all(case.owner == "view" and survey.holds(case) for case in cases):
        return "Convert once, before the loop: the result is a view and shows later writes."
    return "Convert once, before the loop, if the source does not change in it."


def _loops(case: CaseView) -> tuple[float, float]:
    """Time per turn with the conversion inside and before the loop; zeros if not known apart."""
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
    inside = (
        f"{loop_time_text(found.in_loop if found else None)} per turn with the conversion inside"
    )
    if not _is_hoisted_known(case):
        return inside
    return f"{inside}, {loop_time_text(found.hoisted if found else None)} with it before the loop"


def _is_hoisted_known(case: CaseView) -> bool:
    return is_known(case.result.placement.hoisted if case.result.placement else None)


def _share(case: CaseView) -> float:
    """The conversion's part, as each process found it in its own loops."""
    in_loop, hoisted = _loops(case)
    found = case.result.placement
    if found is None or found.share is None or in_loop - hoisted < thresholds.LOOP_GAP_NS:
        return 0.0
    return found.share.median


RULES = (
    Rule("DLP012", "slow-path", slow_path, times=True),
    Rule("DLP013", "asymmetric", asymmetric, lacks=lacks_direction, times=True),
    Rule("DLP014", "convert-in-loop", convert_in_loop, lacks=lacks_loops, times=True),
)
