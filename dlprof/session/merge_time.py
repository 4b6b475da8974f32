"""A time over the processes of a case: the median of their medians, its interval, its modes."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from dlprof.session import stats
from dlprof.session.model import Mode, ProcessSamples, TimeMeasure


def merged(parts: Sequence[tuple[int, dict[str, Any]]], name: str) -> TimeMeasure | None:
    """The time called ``name`` of several rounds; None where no process took it."""
    processes = [
        ProcessSamples(
            round=round_,
            loops=part[name]["loops"],
            samples_ns=[round(sample, 2) for sample in part[name]["samples_ns"]],
            page_faults_per_call=part[name].get("page_faults_per_call"),
            disturbed=part[name].get("disturbed"),
        )
        for round_, part in parts
        if name in part
    ]
    if not processes:
        return None
    medians = [statistics.median(process.samples_ns) for process in processes]
    found = stats.estimate(medians, [process.page_faults_per_call for process in processes])
    return TimeMeasure(
        median_ns=found.median_ns,
        ci95_ns=found.ci95_ns,
        min_ns=min(min(process.samples_ns) for process in processes),
        processes=processes,
        modes=[_mode(mode, processes, medians) for mode in found.modes]
        if len(found.modes) > 1
        else [],
    )


def _mode(
    mode: tuple[int, ...], processes: Sequence[ProcessSamples], medians: Sequence[float]
) -> Mode:
    faults = [processes[index].page_faults_per_call for index in mode]
    known = [fault for fault in faults if fault is not None]
    return Mode(
        median_ns=statistics.median(medians[index] for index in mode),
        rounds=[processes[index].round for index in mode],
        page_faults_per_call=statistics.median(known) if known else None,
    )
