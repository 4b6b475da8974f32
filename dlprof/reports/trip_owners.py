"""View or copy in trips in a row, beside what the same path was when it was measured alone."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from dlprof.analysis.quantity import plain_time, range_text
from dlprof.reports.row import Row
from dlprof.session.model import RoundTrip, TripProcess, WayLook

KINDS = ("view", "copy")
MOST_ALIGNMENT = 4096
MIXED, UNKNOWN = "mixed", "unknown"


@dataclass(frozen=True)
class WayOwner:
    """One way of a trip: ``row`` is its path alone, ``looks`` what each process of trips saw."""

    name: str
    row: Row
    looks: tuple[WayLook, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(kind_of(look) for look in self.looks)

    @property
    def differs(self) -> bool:
        """Whether it was a view alone and a copy in trips, or the reverse, in some process."""
        if self.row.owner == "varies":
            return self.is_known
        other = {"view": "copy", "copy": "view"}.get(self.row.owner)
        return other in self.kinds or (other is not None and MIXED in self.kinds)

    @property
    def is_known(self) -> bool:
        return bool(self.looks) and UNKNOWN not in self.kinds

    @property
    def copied(self) -> bool:
        return any(look.copies for look in self.looks)


def ways(there: Row, back: Row, made: RoundTrip) -> tuple[WayOwner, WayOwner]:
    """Both ways of the trips whose times are told."""
    processes = made.processes
    return (
        WayOwner("there", there, tuple(one.in_a_row.there for one in processes)),
        WayOwner("back", back, tuple(one.in_a_row.back for one in processes)),
    )


def kind_of(look: WayLook) -> str:
    """``view`` or ``copy``; ``mixed`` where trips of one process differ, else ``unknown``."""
    if look.unknown > 0 or not (look.views > 0 or look.copies > 0):
        return UNKNOWN
    if look.views > 0 and look.copies > 0:
        return MIXED
    return "view" if look.views > 0 else "copy"


def text(way: WayOwner) -> str:
    """``there a copy of a source at a multiple of 16 bytes, alone a view of one at 4,096``."""
    if not way.is_known:
        return f"{way.name} unknown: it could not be looked at"
    told = f"{way.name} {_in_trips(way.looks)}"
    alone = {"view": "a view", "copy": "a copy"}.get(way.row.owner)
    if set(way.kinds) == {way.row.owner} == {"view"}:  # wherever the sources begin
        return f"{way.name} a view, as alone"
    if way.row.owner == "varies":
        return f"{told}, alone a view in some processes and a copy in others"
    if alone is None:
        return told
    if way.differs:
        return f"{told}, alone {alone}{_at(way.row.alignments)}"
    return f"{told}, as alone"


def _in_trips(looks: Sequence[WayLook]) -> str:
    kinds = [kind_of(look) for look in looks]
    if len(set(kinds)) == 1:
        return _told(kinds[0], looks)
    groups = {kind: [look for look in looks if kind_of(look) == kind] for kind in (*KINDS, MIXED)}
    parts = [
        f"{_told(kind, group)} in {len(group)} of {len(looks)} processes"
        for kind, group in groups.items()
        if group
    ]
    return ", ".join(parts)


def _told(kind: str, looks: Sequence[WayLook]) -> str:
    viewed = _at(tuple(size for look in looks for size in look.view_alignments))
    copied = _at(tuple(size for look in looks for size in look.copy_alignments))
    if kind == MIXED:
        views, copies = (sum(getattr(look, name) for look in looks) for name in ("views", "copies"))
        return f"a view{viewed} in {views:,} of {views + copies:,} trips, else a copy{copied}"
    return f"a view{viewed}" if kind == "view" else f"a copy{copied}"


def _at(alignments: Sequence[int]) -> str:
    known = sorted({size for size in alignments if 0 < size <= MOST_ALIGNMENT})
    if not known:
        return ""
    *most, last = (f"{size:,}" for size in known)
    listed = f"{', '.join(most)} or {last}" if most else last
    return f" of a source at a multiple of {listed} bytes"


def times_by_kind(way: WayOwner, made: RoundTrip) -> str:
    """``660 us a trip where there is a view, 5.1 ms where it is a copy``; empty if all are one."""
    times = {
        one.round: statistics.median(one.samples_ns)
        for one in (made.idle.processes if made.idle is not None else ())
        if one.samples_ns
    }
    found: dict[str, list[float]] = {}
    for kind, process in zip(way.kinds, made.processes, strict=True):
        if kind in KINDS and process.round in times:
            found.setdefault(kind, []).append(times[process.round])
    if len(found) != len(KINDS):
        return ""
    view, copy = (_range(found[kind]) for kind in KINDS)
    return f"{view} a trip where {way.name} is a view, {copy} where it is a copy"


def _range(times: Sequence[float]) -> str:
    low, high = plain_time(min(times)), plain_time(max(times))
    return low if low == high else range_text(min(times), max(times))


def by_halves(made: RoundTrip) -> list[str]:
    """How the runs that wait for each half differed in this from those that do not."""
    found = []
    for name in ("there", "back"):
        in_a_row = [_look(one, "in_a_row", name) for one in made.processes]
        halves = [_look(one, "by_halves", name) for one in made.processes]
        if [kind_of(look) for look in halves] != [kind_of(look) for look in in_a_row]:
            found.append(f"{name} {_in_trips(halves)}")
    return found


def _look(process: TripProcess, run: str, name: str) -> WayLook:
    look: WayLook = getattr(getattr(process, run), name)
    return look
