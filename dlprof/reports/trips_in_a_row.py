"""Trips there and back in a row: what each costs, its halves, and who waits behind queued work."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from dlprof.clean import clean, first_line
from dlprof.quantity import plain_time, ratio_text, time_text
from dlprof.reports.row import Row
from dlprof.session import RoundTrip

FAR_MORE = 3.0
"""From this ratio on a trip is called far more than an idle one, or than its halves alone."""
DEARER = 1.5
"""The last trips in a row cost more than the first by this factor before a word is lost on it."""
NOTICED = 0.1
"""A part of the queue that a first trip must take longer, to be called a wait for it."""
MOST = 0.5
"""What takes this share of the time that the queue adds has waited for it."""
LOADED = {"queued_ns", "there_ns", "back_ns", "others_ns", "wait_ns"}
HALVES = {"there_ns", "back_ns", "wait_ns"}

FIRST_WAITS = "the first trip waits for the work"
LATER_WAITS = "a later trip waits for the work"
NONE_WAITS = "no call waits for the work"
CANNOT_TELL = "cannot tell what waits: the trips and the wait do not account for the work"


def lines(there: Row, back: Row, made: RoundTrip) -> list[str]:
    """What the trips cost, why they begin anew, whether they grow dearer, and what waits."""
    if made.idle is None:
        return [f"{made.iterations:,} trips in a row: not measured: {clean(made.reason or '?')}"]
    samples = (one.samples_ns for one in made.idle.processes if one.samples_ns)
    each = time_text(made.idle, [statistics.median(one) for one in samples])
    whole = plain_time(made.iterations * made.idle.median_ns)
    line = f"{made.iterations:,} trips in a row take {whole}: {each} each"
    return [
        line,
        *_halves(made, made.idle.median_ns),
        *_restarted(made),
        *_dearer(made),
        *_loaded(there, back, made, made.idle.median_ns),
    ]


def _halves(made: RoundTrip, each_ns: float) -> list[str]:
    """The halves are the mean of a run with a clock in it, a trip the median of runs without."""
    if not made.parts.keys() >= HALVES:
        return []
    there, back, wait = (made.parts[name] for name in ("there_ns", "back_ns", "wait_ns"))
    line = (
        f"in another run, timed by halves: {plain_time(there)} there and {plain_time(back)} back"
        f" on average; the wait at the end {plain_time(wait)}"
    )
    whole = there + back + wait / max(made.iterations, 1)
    apart = max(whole, each_ns) > DEARER * min(whole, each_ns)
    return [line + (": that does not add up to a trip, so the runs differ" if apart else "")]


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


def sentences(rows: Sequence[Row], made: Sequence[RoundTrip]) -> list[str]:
    """The dearest trip in a row; and where a trip is far more than its halves are alone.

    ``made`` are trips by the indices of ``rows``.
    """
    known = [
        (one.idle.median_ns, rows[one.there], rows[one.back], one)
        for one in made
        if one.idle is not None and max(one.there, one.back) < len(rows)
    ]
    if not known:
        return []
    each, there, back, dearest = max(known, key=lambda one: one[0])
    text = (
        f"In a row the dearest trip is {there.frameworks} and back, {plain_time(each)} each:"
        f" {dearest.iterations:,} take {plain_time(dearest.iterations * each)}"
    )
    alone = there.cost_ns + back.cost_ns
    if not 0 < alone < each / FAR_MORE:
        return [f"{text}."]
    text += (
        f". That is {ratio_text(each / alone)} times what its halves take when one array is"
        f" converted again and again: {_other_arrays(dearest)}"
    )
    return [f"{text}.", *_depends(there, back)]


def _other_arrays(made: RoundTrip) -> str:
    """What is another thing in a row; why that costs more is not known."""
    if made.restarted:
        return "in a row only the way back gets a new array each time"
    return "in a row each trip converts the array that the one before made"


def _depends(there: Row, back: Row) -> list[str]:
    """The arrays in a row may begin elsewhere than the one that was converted alone."""
    return [
        f"{row.code} gives {row.depends}: in a row it may be the other."
        for row in (there, back)
        if row.depends
    ] + [
        f"{row.code} was a view in some processes and a copy in others."
        for row in (there, back)
        if row.owner == "varies"
    ]
