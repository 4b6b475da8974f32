"""Trips there and back in a row: what each costs, its halves, view or copy, and who waits."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dlprof.analysis.quantity import plain_time, time_text
from dlprof.reports import trip_owners, trip_paths
from dlprof.reports.cell_text import why_not_known
from dlprof.reports.faults import RACE
from dlprof.reports.row import Row
from dlprof.session.model import RoundTrip
from dlprof.text.clean import clean, first_line

FAR_MORE = 3.0
"""From this ratio on a trip is called far more than an idle one."""
DEARER = 1.5
"""The last trips in a row cost more than the first by this factor before a word is lost on it."""
EARLY = 0.5
"""A call that returns before this share of its half is over returns early."""
NOTICED = 0.1
"""A part of the queue that a first trip must take longer, to be called a wait for it."""
MOST = 0.5
"""What takes this share of the time that the queue adds has waited for it."""
MOST_TRIPS = 10**15
"""More nobody makes, whatever a file says."""
LOADED = {"queued_ns", "there_ns", "back_ns", "others_ns", "wait_ns"}
HALVES = {"there_ns", "back_ns", "release_ns", "there_call_ns", "back_call_ns"}
"""Those of a run that waits for the result of each half; older sessions have none."""

FIRST_WAITS = "the first trip waits for the work"
LATER_WAITS = "a later trip waits for the work"
NONE_WAITS = "no call waits for the work"
CANNOT_TELL = "cannot tell what waits: the trips and the wait do not account for the work"


@dataclass(frozen=True)
class InARow:
    """Trips that were made, with the rows of the paths that they took.

    ``refused`` are paths that did not work for their array, with the reason. ``racing``: a copy of
    the pair was seen torn, so that none is safe.
    """

    there: Row
    back: Row
    made: RoundTrip
    refused: tuple[tuple[Row, str], ...] = ()
    racing: tuple[bool, bool] = (False, False)

    @property
    def key(self) -> tuple[trip_paths.Key, trip_paths.Key]:
        return trip_paths.key_of(self.there), trip_paths.key_of(self.back)

    @property
    def alone_ns(self) -> float:
        """What both halves take when one array is converted again and again."""
        return self.there.cost_ns + self.back.cost_ns

    @property
    def ways(self) -> tuple[trip_owners.WayOwner, trip_owners.WayOwner]:
        return trip_owners.ways(self.there, self.back, self.made)


def of(rows: Sequence[Row], made: Sequence[RoundTrip]) -> list[InARow]:
    """The trips of a session, whose indices are those of ``rows``; without those that have none."""
    found = []
    for one in made:
        if not all(0 <= index < len(rows) for index in (one.there, one.back)):
            continue
        refused = tuple(
            (rows[each.result], each.reason) for each in one.refused if 0 <= each.result < len(rows)
        )
        there, back = rows[one.there], rows[one.back]
        racing = trip_paths.races(there, rows), trip_paths.races(back, rows)
        found.append(InARow(there, back, one, refused, racing))
    return found


def lines(trips: InARow) -> list[str]:
    """What the trips cost, by which paths, view or copy, why they begin anew, whether they grow
    dearer, and what waits.
    """
    made = trips.made
    others = [*_refused(trips)]
    if made.idle is None:
        reason = clean(made.reason or "?")
        return [f"{made.iterations:,} trips in a row: not measured: {reason}", *others]
    samples = (one.samples_ns for one in made.idle.processes if one.samples_ns)
    each = time_text(made.idle, [statistics.median(one) for one in samples])
    whole = plain_time(float(min(made.iterations, MOST_TRIPS)) * made.idle.median_ns)
    line = f"{made.iterations:,} trips in a row take {whole}: {each} each"
    return [
        line,
        *([f"not by every process: {first_line(made.reason)}"] if made.reason else []),
        *others,
        *_owners(trips),
        *_halves(made, made.idle.median_ns),
        *_restarted(made),
        *_dearer(made),
        *_loaded(trips.there, trips.back, made, made.idle.median_ns),
    ]


def _refused(trips: InARow) -> Iterator[str]:
    for row, reason in trips.refused:
        yield f"{row.code} does not work for the array of the trips: {first_line(reason)}"
    if trips.refused:
        yield f"so the trips go {_path(trips.there)}, and back {_path(trips.back)}"


def _path(row: Row) -> str:
    unsafe = trip_paths.unsafe_text(row)
    alone = f"{plain_time(row.cost_ns)}{_doubt(row)} alone"
    return f"by {row.code} ({alone}{f'; {unsafe}' if unsafe else ''})"


def _doubt(row: Row) -> str:
    return "" if row.is_known else f", {why_not_known(row)},"


def _owners(trips: InARow) -> Iterator[str]:
    if not trips.made.processes:
        yield "whether these trips copy was not looked at"
        return
    yield f"in these trips: {'; '.join(map(trip_owners.text, trips.ways))}"
    yield from filter(None, (trip_owners.times_by_kind(way, trips.made) for way in trips.ways))
    for way, racing in zip(trips.ways, trips.racing, strict=True):
        if racing and way.copied and way.row.safe:
            yield f"{way.name} these copies are not safe: {RACE} of another copy of the pair"


def _halves(made: RoundTrip, each_ns: float) -> Iterator[str]:
    """Each half until its result is ready, of runs that wait for it."""
    if not made.parts.keys() >= HALVES:
        return
    there, back, release = (made.parts[name] for name in ("there_ns", "back_ns", "release_ns"))
    line = (
        f"in other runs, which wait for the result of each half: {plain_time(there)} there"
        f"{_early(there, made.parts['there_call_ns'])} and {plain_time(back)} back"
        f"{_early(back, made.parts['back_call_ns'])} on average; {plain_time(release)} to release"
        " the arrays of the trip before"
    )
    whole = there + back + release
    apart = max(whole, each_ns) > DEARER * min(whole, each_ns)
    yield line + (": that does not add up to a trip, and why is not known" if apart else "")
    differing = trip_owners.by_halves(made)
    if differing:
        yield f"in those runs: {'; '.join(differing)}"


def _early(ready_ns: float, call_ns: float) -> str:
    return f" (the call returns after {plain_time(call_ns)})" if call_ns < EARLY * ready_ns else ""


def _restarted(made: RoundTrip) -> list[str]:
    if not made.restarted:
        return []
    why = first_line(made.restarted)
    return [f"each begins with the same array: what comes back cannot go again: {why}"]


def _dearer(made: RoundTrip) -> list[str]:
    first, last = made.parts.get("first_ns", 0.0), made.parts.get("last_ns", 0.0)
    if first <= 0 or last <= DEARER * first:
        return []
    return [f"the last of them cost {plain_time(last)} each, the first {plain_time(first)}"]


def _loaded(there: Row, back: Row, made: RoundTrip, each_ns: float) -> list[str]:
    found = made.loaded
    if not found or not found.keys() >= LOADED:
        return [f"nothing was queued: {clean(made.not_loaded)}"] if made.not_loaded else []
    begins = there if made.loaded_from == "there" else back
    whose = begins.frameworks.partition(" ")[0]
    idle_ns = max(each_ns, made.parts.get("first_ns", 0.0))
    line = (
        f"behind some {plain_time(found['queued_ns'])} of work of {whose}: the first trip takes"
        f" {plain_time(found['there_ns'] + found['back_ns'])}, the other {made.iterations - 1:,}"
        f" {plain_time(found['others_ns'])}, the wait at the end"
        f" {plain_time(found['wait_ns'])}: {waits(found, idle_ns, made.iterations)}"
    )
    return [line]


def waits(found: dict[str, float], idle_ns: float, iterations: int) -> str:
    """Who waits: where the time is that the queue adds to idle trips.

    The length of the queue is that of an earlier one like it, so it is only a measure of what is
    much: the trips must tell by themselves.
    """
    left = max(found["queued_ns"] - found.get("queueing_ns", 0.0), 0.0)
    first = found["there_ns"] + found["back_ns"]
    longer = max(first - idle_ns, 0.0)
    later = max(found["others_ns"] - (iterations - 1) * idle_ns, 0.0)
    added = longer + later + found["wait_ns"]
    if longer >= MOST * added and first > FAR_MORE * idle_ns and longer > NOTICED * left:
        return FIRST_WAITS
    if first + found["others_ns"] + found["wait_ns"] < MOST * left or added <= 0:
        return CANNOT_TELL
    if found["wait_ns"] > MOST * added and longer <= NOTICED * left:
        return NONE_WAITS
    return LATER_WAITS if later > MOST * added and later > MOST * left else CANNOT_TELL
