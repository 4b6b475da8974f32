"""The sentences that answer with trips in a row: the dearest, beside what its halves take alone."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from dlprof.analysis.quantity import brief_text, plain_time, process_medians, ratio_text
from dlprof.reports import trip_owners, trip_paths
from dlprof.reports.row import Row
from dlprof.reports.trips_in_a_row import HALVES, MOST_TRIPS, InARow
from dlprof.session.model import ProcessSamples

FAR = 3.0
"""From this ratio on, either way, a trip is called far from what its halves take alone."""
MOST = 0.5
"""A way that takes this share of a trip has made it what it is."""
LEAST_FAULTS = 100
"""Fewer page faults are no word's worth."""


def sentences(trips: Sequence[InARow]) -> list[str]:
    """The dearest trip in a row; and where it is far from what its halves take alone, or is a view
    where that is a copy, or the reverse: what was seen of it.
    """
    known = [one for one in trips if one.made.idle is not None]
    if not known:
        return []
    dearest = max(known, key=_each_ns)
    each_ns = _each_ns(dearest)
    iterations = dearest.made.iterations
    text = (
        f"In a row the dearest trip is {dearest.there.frameworks} and back,"
        f" {_each_text(dearest)} each{_named(dearest)}: {iterations:,} take"
        f" {plain_time(float(min(iterations, MOST_TRIPS)) * each_ns)}."
    )
    return [text, *_beside_alone(dearest, each_ns)]


def _processes(trips: InARow) -> list[ProcessSamples]:
    return trips.made.idle.processes if trips.made.idle is not None else []


def _each_ns(trips: InARow) -> float:
    return trips.made.idle.median_ns if trips.made.idle is not None else 0.0


def _each_text(trips: InARow) -> str:
    idle = trips.made.idle
    return brief_text(idle, process_medians(idle)) if idle is not None else "?"


def _named(trips: InARow) -> str:
    """The paths, where another was to be taken or one of them is not safe."""
    told = [
        f"{name} by {row.code}{_since(instead)}{f', {unsafe}' if unsafe else ''}"
        for name, row in (("there", trips.there), ("back", trips.back))
        if (instead := _instead(trips, row)) + (unsafe := trip_paths.unsafe_text(row))
    ]
    return f" ({'; '.join(told)})" if told else ""


def _instead(trips: InARow, row: Row) -> str:
    """The paths of the same direction that did not work."""
    return ", ".join(one.code for one, _ in trips.refused if one.frameworks == row.frameworks)


def _since(codes: str) -> str:
    return f", since the array of the trips is refused by {codes}" if codes else ""


def _beside_alone(trips: InARow, each_ns: float) -> Iterator[str]:
    alone_ns = trips.alone_ns
    if not alone_ns > 0 or not each_ns > 0:
        return
    far = not 1 / FAR < each_ns / alone_ns < FAR
    differing = [way for way in trips.ways if way.differs]
    seen = f"in the trips {'; '.join(map(trip_owners.text, differing))}"
    if not far:
        if differing:
            yield f"{seen[0].upper()}{seen[1:]}."
        return
    if each_ns > alone_ns:
        text = f"That is {ratio_text(each_ns / alone_ns)} times what its halves take"
    else:
        text = f"Its halves take {ratio_text(alone_ns / each_ns)} times as long"
    text += " when one array is converted again and again: "
    if differing:
        yield f"{text}{seen}{_taken(trips, each_ns)}."
    elif all(way.is_known for way in trips.ways):
        told = "; ".join(map(trip_owners.text, trips.ways))
        yield f"{text}why is not known. In the trips {told}{_faults(trips)}."
    else:
        yield f"{text}why is not known, since whether the trips copy was not seen."


def _faults(trips: InARow) -> str:
    """That a trip touches far more new memory than its halves alone, where it was seen."""
    alone = [row.page_faults for row in (trips.there, trips.back)]
    seen = [one.page_faults_per_call for one in _processes(trips)]
    known = [fault for fault in seen if fault is not None]
    if not known or None in alone:
        return ""
    few, many = sum(fault or 0.0 for fault in alone), statistics.median(known)
    if many < LEAST_FAULTS or many < FAR * few:
        return ""
    return f"; a trip touches new memory: {many:,.0f} page faults, and {few:,.0f} alone"


def _taken(trips: InARow, each_ns: float) -> str:
    """How much of a trip the way takes that is not as alone; or that the rest is not known."""
    parts = trips.made.parts
    if each_ns < trips.alone_ns or not parts.keys() >= HALVES:
        return ""
    whole = parts["there_ns"] + parts["back_ns"] + parts["release_ns"]
    taken = sum(parts[f"{way.name}_ns"] for way in trips.ways if way.differs)
    if whole <= 0:
        return ""
    told = f"; timed by halves, that is {plain_time(taken)} of {plain_time(whole)}"
    return told if taken > MOST * whole else f"{told}, and why the rest takes longer is not known"
