"""Cells of a table as text: the same words in a terminal and on a page."""

from __future__ import annotations

from dlprof.analysis import thresholds
from dlprof.analysis.quantity import (
    bound_text,
    is_range,
    plain_time,
    ratio_text,
    size_text,
    time_text,
)
from dlprof.reports.row import Row

LEAST_BYTES = 64 * 2**10
"""A bandwidth of fewer bytes tells of the call, not of the copy."""


DISTURBED = "disturbed"
WHY_DISTURBED = (
    "disturbed: in half of the samples or more, other programs had the processor for half of the"
    " time or more; what the path takes by itself is less, and not known"
)
SCATTERED = "scattered"
WHY_SCATTERED = (
    f"scattered: one process, whose median is over {thresholds.SCATTER_RATIO:.0f} times its fastest"
    " sample; what the path takes by itself is not known"
)


def device_text(row: Row) -> str:
    if row.device_ns is None:
        return "?"
    if row.device_ns < row.device_resolution_ns:
        return f"<{bound_text(row.device_resolution_ns)}"
    return plain_time(row.device_ns, 3)


def speed_text(row: Row) -> str:
    """GB/s of a copy; one for each mode of its time, in the same order, or the range of those of
    the processes where the time is one.
    """
    if row.gb_per_s is None or row.size_bytes < LEAST_BYTES or not row.is_known:
        return "-"
    medians = row.process_medians_ns
    if row.ready is not None and is_range(row.ready, medians):
        ends = (row.gb_per_s * row.cost_ns / ns for ns in (max(medians), min(medians)))
        return "-".join(map(ratio_text, ends))
    return " | ".join(ratio_text(speed) for speed in in_modes(row, row.gb_per_s))


def in_modes(row: Row, per_time: float) -> list[float]:
    """What is so much at the median of the time, in each of its modes: less where that is slow."""
    modes = row.ready.modes if row.ready is not None else []
    found = [per_time * row.cost_ns / mode.median_ns for mode in modes if mode.median_ns > 0]
    return found or [per_time]


def told_speed(row: Row) -> str:
    """``5.8 GB/s``; empty where nothing is copied or little is known."""
    speed = speed_text(row)
    return "" if speed == "-" else f"{speed} GB/s"


def owner_text(row: Row) -> str:
    """View or copy; with a star where that depends on where the source begins."""
    return f"{row.owner}*" if row.depends else row.owner


def status_text(row: Row) -> str:
    """The status; of a time that is not known to be the path's own, why."""
    if row.changed:
        return "wrong"
    return why_not_known(row) if row.status == "ok" and not row.is_known else row.status


def why_not_known(row: Row) -> str:
    """In a word, why the time is not known to be the path's own."""
    return DISTURBED if row.disturbed else SCATTERED


def told_time(row: Row) -> str:
    """The time for a sentence, as its table writes it; in brackets why it is not known."""
    time = time_text(row.ready, row.process_medians_ns)
    return time if row.ready is None or row.is_known else f"{time} ({why_not_known(row)})"


def fault_text(row: Row) -> str:
    """The status; of a path in which a rule found an error, that rule instead of ``ok``."""
    if row.changed or row.status != "ok" or not row.faults:
        return status_text(row)
    first, *more = row.faults
    return f"{first} +{len(more)}" if more else first


def modes_text(row: Row) -> str:
    modes = row.ready.modes if row.ready is not None else []
    return ", ".join(
        plain_time(mode.median_ns)
        + (
            ""
            if mode.page_faults_per_call is None
            else f" with {mode.page_faults_per_call:.0f} page faults"
        )
        for mode in modes
    )


def kept_text(row: Row) -> str:
    """What the first conversion of a new array takes, and of which size; empty if nothing more."""
    if row.kept_ns is None:
        return ""
    first, second = (plain_time(value) for value in row.kept_ns)
    of = f" of {size_text(int(row.kept_bytes))}" if row.kept_bytes is not None else ""
    return f"the first conversion of a new array{of} takes {first}, the next {second}"
