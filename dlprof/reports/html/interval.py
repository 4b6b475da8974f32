"""Estimates with their intervals, fit for an axis that the estimates choose.

An interval over two processes can reach over many powers of ten. It must not choose the axis:
what reaches beyond is cut off there, marked by an arrow, and said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dlprof.reports.html.entry import Entry
from dlprof.reports.html.theme import span

ROOM = 3.0
"""An axis goes so many times beyond the outermost estimates, where intervals reach as far."""


@dataclass(frozen=True)
class Estimate:
    """A time with its interval and its modes, in ns; without an interval both ends are None."""

    ns: float
    low: float | None
    high: float | None
    modes: tuple[float, ...] = ()


def estimate(entry: Entry) -> Estimate:
    ready = entry.row.ready
    low, high = (ready.ci95_ns if ready is not None else None) or (None, None)
    modes = tuple(mode.median_ns for mode in ready.modes) if ready is not None else ()
    return Estimate(entry.row.cost_ns, low, high, tuple(ns for ns in modes if ns > 0))


def domain(estimates: Sequence[Estimate], others: Iterable[float] = ()) -> tuple[float, float]:
    """A logarithmic axis that holds every estimate and mode, and intervals as far as is useful."""
    points = [*(ns for one in estimates for ns in (one.ns, *one.modes)), *others]
    low, high = span(points, 1.0)
    ends = [end for one in estimates for end in (one.low, one.high) if end is not None and end > 0]
    within = [min(max(end, low / ROOM), high * ROOM) for end in ends]
    return span([low, high, *within])


def bar(one: Estimate, axis: tuple[float, float]) -> dict[str, Any]:
    """``low`` and ``high`` on the axis, and where the interval goes beyond it."""
    low = one.ns if one.low is None else one.low
    high = one.ns if one.high is None else one.high
    return {"low": min(max(low, axis[0]), axis[1]), "high": min(max(high, axis[0]), axis[1])}


def arrows(one: Estimate, axis: tuple[float, float]) -> list[dict[str, Any]]:
    """One at each end of the axis that the interval reaches beyond."""
    found = []
    if one.low is not None and one.low < axis[0]:
        found.append({"end": axis[0], "beyond": "low"})
    if one.high is not None and one.high > axis[1]:
        found.append({"end": axis[1], "beyond": "high"})
    return found


def said(drawn: Iterable[Mapping[str, Any]]) -> str:
    """For the caption: how many intervals go beyond the axis."""
    count = len({tuple(map(arrow.get, ("y", "size", "code", "where"))) for arrow in drawn})
    if not count:
        return ""
    which = "One interval reaches" if count == 1 else f"{count} intervals reach"
    return (
        f" {which} beyond the axis, which is chosen by the estimates: an arrow marks where it is"
        " cut. Few processes that disagree know no more; more rounds would."
    )
