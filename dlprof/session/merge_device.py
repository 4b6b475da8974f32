"""Device time over the processes of a case, and back again."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from dlprof.session import stats

SERIES = ("warm", "cold")


def merged(found: Sequence[tuple[int, dict[str, Any]]]) -> dict[str, Any] | None:
    """One device time from those of several rounds, as far as they could tell; ``reason`` says why
    some could not. The newest where none could.

    ``warm`` and ``cold`` are the median of the process medians, their 95 % interval (None for one
    process, or where a process took no time that can be told from none) and the samples by round.
    """
    if not found:
        return None
    told = [(round_, one) for round_, one in found if one["verdict"] == "ok"]
    if not told:
        return found[-1][1]
    reasons = [one["reason"] for _, one in found if one["verdict"] != "ok"]
    reasons += [one["reason"] for _, one in told if one.get("reason")]
    reason = reasons[-1] if reasons else None
    measured = {series: _series(told, series) for series in SERIES}
    return {**told[-1][1], "reason": reason, **measured}


def of_round(merged_time: dict[str, Any], round_: int) -> dict[str, Any] | None:
    """What the process of ``round_`` said; None where it said nothing."""
    if merged_time.get("verdict") != "ok":
        return merged_time
    samples = {
        series: process["samples_ns"]
        for series in SERIES
        for process in merged_time[series]["processes"]
        if process["round"] == round_
    }
    if len(samples) < len(SERIES):
        return None
    return {**merged_time, **{series: {"samples_ns": samples[series]} for series in SERIES}}


def _series(told: Sequence[tuple[int, dict[str, Any]]], series: str) -> dict[str, Any]:
    medians = [statistics.median(one[series]["samples_ns"]) for _, one in told]
    return {
        "median_ns": statistics.median(medians),
        "ci95_ns": stats.student_interval(medians),
        "processes": [
            {"round": round_, "samples_ns": one[series]["samples_ns"]} for round_, one in told
        ],
    }
