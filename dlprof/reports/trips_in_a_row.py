"""Trips there and back in a row: what each costs, its halves, view or copy, and who waits."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dlprof.clean import clean, first_line
from dlprof.quantity import plain_time, ratio_text, time_text
from dlprof.reports import trip_owners, trip_paths
from dlprof.reports.row import RACE, Row
from dlprof.session import ProcessSamples, RoundTrip

FAR_MORE = 3.0
"""From this ratio on a trip is called far more than an idle one, or than its halves alone."""
DEARER = 1.5
"""The last trips in a row cost more than the first by this factor before a word is lost on it."""
EARLY = 0.5
"""A call that returns before this share of its half is over returns early."""
LEAST_FAULTS = 100
"""Fewer page faults are no word's worth."""
NOTICED = 0.1
"""A part of the queue that a first trip must take longer, to be called a wait for it."""
MOST = 0.5
"""What takes this share of the time that the queue adds has waited for it."""
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
    whole = plain_time(made.iterations * made.idle.median_ns)
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
    return f"by {row.code} ({plain_time(row.cost_ns)} alone{f'; {unsafe}' if unsafe else ''})"


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
        f" {plain_time(each_ns)} each{_named(dearest)}: {iterations:,} take"
        f" {plain_time(iterations * each_ns)}."
    )
    return [text, *_beside_alone(dearest, each_ns)]


def _processes(trips: InARow) -> list[ProcessSamples]:
    return trips.made.idle.processes if trips.made.idle is not None else []


def _each_ns(trips: InARow) -> float:
    return trips.made.idle.median_ns if trips.made.idle is not None else 0.0


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
    far = not 1 / FAR_MORE < each_ns / alone_ns < FAR_MORE
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
    if many < LEAST_FAULTS or many < FAR_MORE * few:
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
