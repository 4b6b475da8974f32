"""Conversions again and again: inside of a loop or before it, and there and back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from dlprof.judge.slower import NOT_EQUAL, is_slower
from dlprof.report.document import Answer, Cell, Column, Level, Lines, Section, Table
from dlprof.report.matrix import fastest
from dlprof.report.paths import Array, Path
from dlprof.runner.quantity import MARK, legend, plain_time, time_text, times_text
from dlprof.runner.session import (
    Placement,
    RoundTrip,
    Session,
    Share,
    TimeMeasure,
    WayLook,
    pair_text,
)
from dlprof.text.clean import first_line

NOISE = 0.05
"""A share further below zero than this is no part of a loop."""
COLUMNS = (
    Column("in the loop", right=True),
    Column("before the loop", right=True),
    Column("share", right=True),
    Column("pays from", right=True),
    Column("path"),
)

Looped = tuple[Path, Placement]


def loop_sections(arrays: Sequence[Array]) -> Iterator[Section]:
    """One for each array and operation that was looped."""
    for array in arrays:
        groups: dict[str, list[Looped]] = defaultdict(list)
        for path in array.paths:
            placement = path.case.result.placement
            if placement is not None:
                groups[placement.use or ""].append((path, placement))
        for use, looped in groups.items():
            where = f"{array.pair_text}, {array.text}" if len(arrays) > 1 else array.pair_text
            yield _section(use, looped, where)


def _section(use: str, looped: Sequence[Looped], where: str) -> Section:
    timed = [one for one in looped if _cost_ns(one[1]) is not None]
    timed.sort(key=lambda one: _cost_ns(one[1]) or 0.0)
    refused = dict.fromkeys(
        f"{placement}: {first_line(why)}"
        for _, one in looped
        for placement, why in one.refused.items()
    )
    heading = f"In a loop{f' with {use}' if use else ''}: {where}"
    rows = tuple(_loop_row(*one) for one in timed)
    shown: list[TimeMeasure | Share | None] = []
    for _, one in timed:
        shown += one.in_loop, one.hoisted, one.share
    tables = (Table(COLUMNS, rows, legend(shown)),)
    lines = (*_advice(timed), *_implicit(looped), *(f"refused {reason}" for reason in refused))
    return Section(
        heading, (*tables * bool(rows), *((Lines(lines),) if lines else ())), Level.FIRST
    )


def _cost_ns(found: Placement) -> float | None:
    time = found.in_loop or found.hoisted
    return None if time is None else time.median_ns


def _loop_row(path: Path, found: Placement) -> tuple[Cell, ...]:
    pays = _pays_from(found)
    share = found.share
    # A part is not negative, beyond noise.
    is_part = share is None or share.median >= -NOISE or (share.ci95 or (0.0, -1.0))[1] >= 0
    return (
        Cell(_time(found.in_loop)),
        Cell(_time(found.hoisted)),
        Cell("?" if _is_disturbed(found) or not is_part else share_text(share)),
        Cell("-" if pays is None else f"{pays:,} iterations"),
        Cell(path.code, code=True),
    )


def _time(measure: TimeMeasure | None) -> str:
    return time_text(measure, measure is not None and measure.is_disturbed)


def _is_disturbed(found: Placement) -> bool:
    return any(one is not None and one.is_disturbed for one in (found.in_loop, found.hoisted))


def share_text(share: Share | None) -> str:
    """``61 ±3 %``; ``~61 %`` of one process; ``?`` where the processes do not agree."""
    if share is None:
        return "-"
    if share.ci95 is None:
        return f"{MARK}{round(100 * share.median)} %"
    if share.half is None or not share.is_known:
        return "?"
    half = 100 * share.half
    shown = "<1" if half < 0.5 else f"{half:.0f}"  # noqa: PLR2004 - no interval is of nothing
    return f"{round(100 * share.median) or 0} ±{shown} %"


def _pays_from(found: Placement) -> int | None:
    """From how many iterations on it pays to convert before the loop, where that is known."""
    known = found.share is not None and found.share.is_known and not _is_disturbed(found)
    return found.break_even_iterations if known else None


def _advice(looped: Sequence[Looped]) -> Iterator[str]:
    """The path that pays most, if one is known to."""
    paying = [(path, one) for path, one in looped if _pays_from(one) is not None and one.share]
    if not paying:
        if looped:
            yield "No loop is known to be faster with the conversion before it."
        return
    path, one = max(paying, key=lambda found: found[1].share.median if found[1].share else 0.0)
    share = one.share.median if one.share else 0.0
    yield (
        f"{path.code} takes {100 * share:.0f} % of the loop. Convert before the loop"
        f" from {_pays_from(one):,} iterations on."
    )


def _implicit(looped: Sequence[Looped]) -> Iterator[str]:
    """What the operation takes with the array itself, without a conversion."""
    times = [(path, one.implicit) for path, one in looped if one.implicit is not None]
    for path, implicit in times[:1]:
        time = plain_time(implicit.median_ns)
        yield f"{path.case.pair[1]} takes {path.source} itself: {time} per iteration."


Trip = tuple[Path, Path]
"""The slower direction, and the way back."""

MUCH = 0.5
"""What takes this share of the time that the queue adds has waited for it."""
NOTICED = 0.1
"""A part of the queue that a first trip must take longer, to be called a wait for it."""
FAR_MORE = 3.0
"""From this ratio on a trip takes far longer than an idle one."""
LOADED = frozenset(("queued_ns", "there_ns", "back_ns", "others_ns", "wait_ns"))
HALVES = ("there_ns", "back_ns", "release_ns")
TRIPS = (
    Column("round trip"),
    *(Column(title, right=True) for title in ("time", "times as long")),
    Column("path"),
)
MADE = (
    Column("round trip"),
    *(Column(title, right=True) for title in ("trips", "each", "there", "back", "release")),
    Column("who waits"),
)


def trips_of(arrays: Sequence[Array]) -> list[Trip]:
    """Every pair and array with a path in both directions, the most lopsided first."""
    paths = {
        (path.case.pair, path.case.spec): path
        for array in arrays
        if (path := fastest(array)) is not None
    }
    found = []
    for (pair, spec), path in paths.items():
        back = paths.get((pair[::-1], spec))
        if back is not None and pair[0] < pair[1] and min(path.cost_ns, back.cost_ns) > 0:
            slow, fast = sorted((path, back), key=lambda one: -one.cost_ns)
            found.append((slow, fast))
    return sorted(found, key=lambda trip: -trip[0].cost_ns / trip[1].cost_ns)


def trip_answers(trips: Sequence[Trip]) -> tuple[Answer, ...]:
    """Which pair is the most lopsided."""
    lopsided = [trip for trip in trips if _differs(trip)]
    if not lopsided:
        why = f"none of {len(trips)} round trips" if trips else "no pair has a path both ways"
        return (Answer("slower in one direction", "", "", why),)
    there, back = lopsided[0]
    times = _times_longer(lopsided[0])
    note = f"{there.brief_time} there, {back.brief_time} back"
    return (
        Answer("slower in one direction", "", "", f"{len(lopsided)} of {len(trips)} round trips"),
        Answer("most lopsided", there.pair_text, f"{times} times" if times else "", note),
    )


def trip_sections(session: Session, trips: Sequence[Trip]) -> Iterator[Section]:
    """Both directions of each trip; then the trips that were made in a row."""
    if trips:
        several = len({there.array[1:] for there, _ in trips}) > 1
        rows = tuple(row for trip in trips for row in _trip_rows(trip, several))
        yield Section("Round trips", (Table(TRIPS, rows),), Level.FIRST)
    made = session.round_trips
    if made:
        rows = tuple(_made_row(session, one) for one in made)
        yield Section("Round trips in a row", (Table(MADE, rows),), Level.FIRST)
        notes = tuple(
            f"{_name(session, one)}: {note}" for one in made for note in _notes(session, one)
        )
        yield Section("Notes on round trips in a row", (Lines(notes),))


def _differs(trip: Trip) -> bool:
    there, back = trip
    return there.is_known and is_slower(there.case.ready, back.case.ready, NOT_EQUAL)


def _times_longer(trip: Trip) -> str:
    there, back = (one.case.ready for one in trip)
    return "" if there is None or back is None else times_text(there, back)


def _trip_rows(trip: Trip, several: bool) -> Iterator[tuple[Cell, ...]]:
    """The slower direction, and the way back under it."""
    there, back = trip
    array = f", {' '.join(there.array[1:])}" if several else ""
    longer = _times_longer(trip) if _differs(trip) else "the same"
    for way, name, ratio in ((there, f"{there.pair_text}{array}", longer), (back, "and back", "")):
        result = f"{way.result_cell.text}{_note(way)}"
        yield Cell(name), Cell(way.brief_time, under=result), Cell(ratio), Cell(way.code, code=True)


def _note(path: Path) -> str:
    unsafe = " unsafe" if path.safety.level == "unsafe" else ""
    return f"{unsafe} waits" if path.case.waits_for else unsafe


def _made_row(session: Session, made: RoundTrip) -> tuple[Cell, ...]:
    """What a trip costs where many are made, its halves, and what it waits for."""
    each = time_text(made.idle, made.idle is not None and made.idle.is_disturbed)
    halves = [plain_time(made.parts[part]) if part in made.parts else "-" for part in HALVES]
    texts = (f"{made.iterations:,}", each, *halves)
    return tuple(map(Cell, (_name(session, made), *texts, _waits(made))))


def _name(session: Session, made: RoundTrip) -> str:
    return f"{pair_text(session.results[made.there].case.pair)} and back"


def _notes(session: Session, made: RoundTrip) -> Iterator[str]:
    """The paths, what was seen of each way, and all parts of the time by their names."""
    if made.reason:
        yield f"not by every process: {made.reason}" if made.idle else f"no time: {made.reason}"
    for one in made.refused:
        yield f"{session.results[one.result].case.code} does not work there: {one.reason}"
    for way, index in (("there", made.there), ("back", made.back)):
        yield f"{way} by {session.results[index].case.code}"
        for at, name in (("in_a_row", "in a row"), ("by_halves", "by halves")):
            looks: list[WayLook] = [getattr(getattr(one, at), way) for one in made.processes]
            if looks:
                yield f"{way} {name}: {_looks(looks)}"
    if made.restarted:
        yield f"each trip begins with the same array: {made.restarted}"
    if made.not_loaded:
        yield f"nothing was queued: {made.not_loaded}"
    for name, parts in (("a trip", made.parts), (f"from {made.loaded_from}", made.loaded or {})):
        told = ", ".join(
            f"{part.removesuffix('_ns').replace('_', ' ')} {plain_time(ns)}"
            for part, ns in parts.items()
        )
        yield from [f"{name}: {told}"] if told else []


def _looks(looks: Sequence[WayLook]) -> str:
    counts = [
        f"{count} {name}"
        for name in ("views", "copies", "unknown")
        if (count := sum(getattr(look, name) for look in looks))
    ]
    sizes = {size for look in looks for size in (*look.view_alignments, *look.copy_alignments)}
    at = f", of arrays at multiples of {', '.join(map(str, sorted(sizes)))} bytes" if sizes else ""
    return f"{', '.join(counts) or 'nothing seen'}{at}"


def _waits(made: RoundTrip) -> str:
    if made.idle is None or not made.loaded or not made.loaded.keys() >= LOADED:
        return "-"
    idle_ns = max(made.idle.median_ns, made.parts.get("first_ns", 0.0))
    return who_waits(made.loaded, idle_ns, made.iterations)


def who_waits(loaded: Mapping[str, float], idle_ns: float, iterations: int) -> str:
    """Where the time is that the queue adds to idle trips.

    The length of the queue is that of an earlier one like it, so it is only a measure of what is
    much: the trips must tell by themselves.
    """
    left = max(loaded["queued_ns"] - loaded.get("queueing_ns", 0.0), 0.0)
    first = loaded["there_ns"] + loaded["back_ns"]
    longer = max(first - idle_ns, 0.0)
    later = max(loaded["others_ns"] - (iterations - 1) * idle_ns, 0.0)
    added = longer + later + loaded["wait_ns"]
    if longer >= MUCH * added and first > FAR_MORE * idle_ns and longer > NOTICED * left:
        return "the first trip"
    if first + loaded["others_ns"] + loaded["wait_ns"] < MUCH * left or added <= 0:
        return "not known"
    if loaded["wait_ns"] > MUCH * added and longer <= NOTICED * left:
        return "no call"
    return "a later trip" if later > MUCH * added and later > MUCH * left else "not known"
