"""Is one time clearly longer than another? A rule asks here, and nowhere else."""

from __future__ import annotations

import statistics

from dlprof.rules import thresholds
from dlprof.session import TimeMeasure


def clearly_longer(
    longer: TimeMeasure | None, shorter: TimeMeasure | None, ratio: float, gap_ns: float
) -> bool:
    """Whether ``longer`` takes ``ratio`` times as long and ``gap_ns`` more, and that is no noise.

    Its interval must lie above that of ``shorter``, or it must take ``ratio`` times as long in
    every process that measured both; and its fastest sample must lie above by
    :data:`thresholds.LEAST_RATIO`. Without intervals, the ratio must be that of
    :data:`thresholds.UNREPEATED_RATIO`. Where processes fall into modes no one number stands for
    them: then the fastest mode of ``longer`` is taken, and the slowest of ``shorter``.
    """
    if longer is None or shorter is None or shorter.median_ns <= 0:
        return False
    if longer.median_ns - shorter.median_ns < gap_ns:
        return False
    if longer.min_ns < thresholds.LEAST_RATIO * shorter.median_ns:
        return False
    long, short = interval(longer), interval(shorter)
    if long is None or short is None:
        ratio = max(ratio, thresholds.UNREPEATED_RATIO)
    elif _longer_in_every_process(longer, shorter, ratio):
        return longer.median_ns >= ratio * shorter.median_ns
    elif long[0] <= short[1]:
        return False
    low, high = longer.modes_ns[0], shorter.modes_ns[1]
    return low >= ratio * high and low - high >= gap_ns


def longer_by_itself(
    longer: TimeMeasure | None, shorter: TimeMeasure | None, ratio: float, gap_ns: float
) -> bool:
    """The same of two paths: what other programs took of the processor is no path's cost."""
    disturbed = longer is not None and longer.is_disturbed
    return not disturbed and clearly_longer(longer, shorter, ratio, gap_ns)


def surely_saved_ns(longer: TimeMeasure | None, shorter: TimeMeasure | None) -> float:
    """By how much ``longer`` takes longer at least: from interval to interval, or in every process
    that measured both.

    A median just above a threshold is there by noise, now and then.
    """
    if longer is None or shorter is None:
        return 0.0
    long, short = interval(longer), interval(shorter)
    if long is None or short is None:
        return max(longer.modes_ns[0] - shorter.modes_ns[1], 0.0)
    medians, others = _process_medians(longer), _process_medians(shorter)
    gaps = [medians[round_] - others[round_] for round_ in medians.keys() & others.keys()]
    enough = len(gaps) >= thresholds.LEAST_PROCESSES
    return max(long[0] - short[1], min(gaps) if enough else 0.0, 0.0)


def _longer_in_every_process(longer: TimeMeasure, shorter: TimeMeasure, ratio: float) -> bool:
    # A load of the machine makes the processes differ, and so the intervals wide; but both are
    # measured in each process, and it slows both.
    long, short = _process_medians(longer), _process_medians(shorter)
    ratios = [long[round_] / short[round_] for round_ in long.keys() & short.keys()]
    return len(ratios) >= thresholds.LEAST_PROCESSES and min(ratios) >= ratio


def _process_medians(measure: TimeMeasure) -> dict[int, float]:
    medians = {
        one.round: statistics.median(one.samples_ns) for one in measure.processes if one.samples_ns
    }
    return {round_: median for round_, median in medians.items() if median > 0}


def interval(measure: TimeMeasure) -> tuple[float, float] | None:
    """The interval, or from the fastest to the slowest mode; None for one process."""
    if measure.modes:
        medians = [mode.median_ns for mode in measure.modes]
        return min(medians), max(medians)
    return measure.ci95_ns
