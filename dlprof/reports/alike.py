"""Paths that a reader cannot tell apart: they share a line of a table, and one stands for all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from dlprof.analysis.quantity import plain_time
from dlprof.reports.paths import Path

NEAR = 1.1
"""Times within this ratio are one time to a reader."""


def lines_of(paths: Iterable[Path]) -> list[list[Path]]:
    """Paths with the same result and problems and about the same time, the fastest first.

    Of an array without times, what the call does about queued work takes the time's place.
    """
    groups: dict[tuple[object, ...], list[list[Path]]] = defaultdict(list)
    for path in sorted(paths, key=lambda path: path.place):
        queued = "" if path.is_timed else queued_work(path)
        key = path.result_cell.text, path.problems, path.safety.level, path.is_copy, queued
        found = groups[key]
        if found and path.cost_ns <= NEAR * found[-1][0].cost_ns:
            found[-1].append(path)
        else:
            found.append([path])
    lines = [line for lines in groups.values() for line in lines]
    return sorted(lines, key=lambda line: plainest(line).place)


def plainest(line: Sequence[Path]) -> Path:
    """The path that stands for a line: the shortest code, with its own time."""
    return min(line, key=lambda path: len(path.code))


def queued_work(path: Path) -> str:
    """What the call does behind queued work: ``waits 45 ms of 45 ms``, ``ordered``, ``race``."""
    order, loaded = path.case.order, path.case.loaded
    words = {None: "", "synchronous": "", "stream-ordered": "ordered", "unordered": "race"}
    word = words.get(order, order or "")
    if path.case.waits_for is None:
        return word
    race = "race, " if order == "unordered" else ""
    if loaded is None:
        return f"{race}waits {_share(path)}".rstrip()
    call, queue = loaded
    if path.case.share_text == "all":
        return f"{race}waits for all {plain_time(queue)}"
    return f"{race}waits {plain_time(call)} of {plain_time(queue)}"


def _share(path: Path) -> str:
    """What a call waits for, of a device without times: ``for the queue``, ``for 40 % of it``."""
    whole = "for the device" if path.case.order == "device-sync" else "for the queue"
    share = path.case.share_text
    return {"": "", "all": whole}.get(share, f"for {share} of it")
