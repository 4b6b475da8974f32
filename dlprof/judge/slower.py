"""Comparison of two times of one session."""

from __future__ import annotations

from dlprof.judge import thresholds
from dlprof.judge.case_view import CaseView, is_known
from dlprof.runner.quantity import is_wide
from dlprof.runner.session import TimeMeasure


def clearly_longer(
    longer: TimeMeasure | None, shorter: TimeMeasure | None, ratio: float, gap_ns: float
) -> bool:
    """Whether ``longer`` clearly takes ``ratio`` times as long, and ``gap_ns`` more.

    Its interval must lie above that of ``shorter``, or it must take ``ratio`` times as long in
    every process that measured both. Without intervals the ratio must be larger. Its fastest sample
    must confirm it: other programs only ever add time.
    """
    if longer is None or shorter is None or shorter.median_ns <= 0:
        return False
    if longer.median_ns - shorter.median_ns < gap_ns:
        return False
    if longer.min_ns < thresholds.LEAST_RATIO * shorter.median_ns:
        return False
    long, short = longer.ci95_ns, shorter.ci95_ns
    low, high = longer.median_ns, shorter.median_ns
    if long is None or short is None:
        ratio = max(ratio, thresholds.UNREPEATED_RATIO)
        low = min(low, longer.min_ns)
    elif _longer_in_every_process(longer, shorter, ratio):
        return longer.median_ns >= ratio * shorter.median_ns
    elif long[0] <= short[1]:
        return False
    return low >= ratio * high and low - high >= gap_ns


def longer_by_itself(
    longer: TimeMeasure | None, shorter: TimeMeasure | None, ratio: float, gap_ns: float
) -> bool:
    """Whether it is clearly longer, and both times are known."""
    known = is_known(longer) and is_known(shorter)
    return known and clearly_longer(longer, shorter, ratio, gap_ns)


def is_too_fast_to_copy(case: CaseView) -> bool:
    """Whether a copy is too fast to have copied all its bytes.

    The reference copies as many bytes in the same process, on all processors. A broadcast array,
    whose one row is read from a cache, and a copy of another dtype are not judged.
    """
    cost, ready = case.result.copy_cost, case.ready
    if cost is None or cost.least_ns is None or ready is None or case.kind != "copy":
        return False
    if case.result.case.layout == "broadcast" or case.changed.dtype:
        return False
    is_one = case.is_known and not is_wide(ready)
    return is_one and case.cost_ns * thresholds.LEAST_RATIO < cost.least_ns


def saved_ns(case: CaseView, other: CaseView | None) -> float:
    """Return the time that the other path saves; 0 if a time is not known."""
    if other is None or not (case.is_known and other.is_known):
        return 0.0
    return max(case.cost_ns - other.cost_ns, 0.0)


def surely_saved_ns(longer: TimeMeasure | None, shorter: TimeMeasure | None) -> float:
    """Return the least difference: between the intervals, or in every process that measured both;
    of the fastest sample if there is one process only.
    """
    if longer is None or shorter is None or not (is_known(longer) and is_known(shorter)):
        return 0.0
    long, short = longer.ci95_ns, shorter.ci95_ns
    if long is None or short is None:
        return max(longer.min_ns - shorter.median_ns, 0.0)
    slow, fast = _known_medians(longer), _known_medians(shorter)
    gaps = [slow[round_] - fast[round_] for round_ in slow.keys() & fast.keys()]
    enough = len(gaps) >= thresholds.LEAST_PROCESSES
    return max(long[0] - short[1], min(gaps) if enough else 0.0, 0.0)


def _longer_in_every_process(longer: TimeMeasure, shorter: TimeMeasure, ratio: float) -> bool:
    # Load makes the intervals wide, but it slows both paths of a process.
    long, short = _known_medians(longer), _known_medians(shorter)
    ratios = [long[round_] / short[round_] for round_ in long.keys() & short.keys()]
    return len(ratios) >= thresholds.LEAST_PROCESSES and min(ratios) >= ratio


def _known_medians(measure: TimeMeasure) -> dict[int, float]:
    return {round_: ns for round_, ns in measure.medians_by_round.items() if ns > 0}
