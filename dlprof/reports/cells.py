"""What stands in the cells of a table of paths: times, results, waits, problems."""

from __future__ import annotations

import statistics

from dlprof.analysis.quantity import (
    bound_text,
    is_range,
    plain_time,
    process_medians,
    ratio_text,
    significant,
    time_text,
)
from dlprof.reports.document import Cell, Tone
from dlprof.reports.paths import Path

MARK = "~"
"""Before a time that another process may not repeat."""
LEAST_BYTES = 64 * 2**10
"""A bandwidth of fewer bytes tells of the call, not of the copy."""
LEAST_MADE_BYTES = 1 << 20
"""Of fewer bytes the calls cost more than the memory."""
ALL = 0.95
"""From this share of a queue on, a call waits for all of it."""
TONES: dict[str, Tone] = {"view": "view", "copy": "copy", "refused": "dim", "?": ""}


def brief_time(path: Path) -> str:
    """Two significant digits, with a mark where the time is not known to be the path's own."""
    ready = path.case.result.ready_time
    if ready is None:
        return ""
    return ("" if path.is_certain else MARK) + plain_time(ready.median_ns)


def full_time(path: Path) -> str:
    """With its interval, its modes or its range."""
    ready = path.case.ready or path.case.result.ready_time
    text = time_text(ready, process_medians(ready)).removeprefix(MARK)
    return text if path.is_certain or ready is None else f"{MARK}{text}"


def result_cell(path: Path) -> Cell:
    """View or copy; with a star where that depends on where the array begins."""
    star = "*" if path.case.result.status == "ok" and path.elsewhere else ""
    return Cell(path.result + star, TONES.get(path.result, "bad"))


def problem_cell(path: Path) -> Cell:
    """The rules that were found of it; with a question mark one that was found of its like."""
    doubts = [f"{rule}?" for rule in path.safety.suspected]
    return Cell(" ".join((*path.rules, *doubts)))


def speed(path: Path) -> str:
    """GB/s of a copy; a range or one for each mode, as its time."""
    cost, ready = path.case.result.copy_cost, path.case.ready
    if cost is None or cost.gb_per_s is None or path.case.owner != "copy" or ready is None:
        return ""
    if path.case.size_bytes < LEAST_BYTES or not path.is_known:
        return ""
    bytes_ = cost.gb_per_s * ready.median_ns
    if ready.modes:
        return " | ".join(ratio_text(bytes_ / mode.median_ns) for mode in ready.modes)
    medians = process_medians(ready)
    if is_range(ready, medians):
        return f"{ratio_text(bytes_ / max(medians))}-{ratio_text(bytes_ / min(medians))}"
    return ratio_text(cost.gb_per_s)


def share_of_memcpy(path: Path) -> str:
    cost = path.case.result.copy_cost
    if cost is None or cost.share_of_memcpy is None or path.case.owner != "copy":
        return ""
    return f"{100 * cost.share_of_memcpy:.0f} %"


def device_time(path: Path) -> str:
    found = path.case.result.device_time
    median = found.warm.median_ns if found is not None and found.warm is not None else None
    if found is None or median is None:
        return ""
    if median < (found.resolution_ns or 0.0):
        return f"<{bound_text(found.resolution_ns or 0.0)}"
    return plain_time(median, 3)


def waiting(path: Path) -> str:
    """What the call does behind queued work: ``waits 45 ms of 45 ms``, ``ordered``, ``race``."""
    order = path.case.order
    if order in (None, "synchronous"):
        return ""
    words = {"stream-ordered": "ordered", "unordered": "race", "unknown": "?"}
    if path.case.waits is None:
        return words.get(order or "", order or "")
    race = "race, " if order == "unordered" else ""
    loaded = path.case.loaded
    if loaded is None:
        return f"{race}waits"
    call, queue = loaded
    if call >= ALL * queue:
        return f"{race}waits for all {plain_time(queue)}"
    return f"{race}waits {plain_time(call)} of {plain_time(queue)}"


def page_faults(path: Path) -> str:
    ready = path.case.ready
    known = [
        one.page_faults_per_call
        for one in (ready.processes if ready is not None else [])
        if one.page_faults_per_call is not None
    ]
    return f"{statistics.median(known):,.0f}" if known else ""


def first_call(path: Path) -> str:
    """The first call, where it was the first conversion of its process."""
    first = path.case.result.first_in_process_ns
    return "" if first is None else plain_time(first)


def host_time(path: Path) -> str:
    host = path.case.result.host_time
    return "" if host is None else plain_time(host.median_ns)


def peak(path: Path) -> str:
    """Memory at the peak beyond the source, in arrays of its size."""
    arrays = path.case.peak_arrays
    return "" if arrays is None else f"{max(arrays, 0.0):.2f}"


def of_making(path: Path) -> str:
    """The time as a share of what it takes to make such an array: what reading it once is worth."""
    made = path.case.result.create_ns
    if not made or not path.is_known or path.case.size_bytes < LEAST_MADE_BYTES:
        return ""
    share = path.cost_ns / made
    return "<0.1 %" if share < 0.001 else f"{significant(100 * share, 2)} %"  # noqa: PLR2004
