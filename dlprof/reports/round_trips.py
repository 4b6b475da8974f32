"""There and back: what each direction of a pair costs, and trips in a row with what waits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dlprof.analysis.quantity import plain_time, time_text, times_text
from dlprof.analysis.slower import NOT_EQUAL, is_slower
from dlprof.reports.document import Answer, Cell, Column, Level, Lines, Section, Table
from dlprof.reports.matrix import ARROW, fastest
from dlprof.reports.paths import MARK, Array, Path
from dlprof.session.model import RoundTrip, Session, WayLook

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


def trips_of(arrays: Sequence[Array]) -> list[Trip]:
    """Every pair and array with a path in both directions, the most lopsided first."""
    paths = {array.name: path for array in arrays if (path := fastest(array)) is not None}
    found = []
    for (pair, *rest), path in paths.items():
        back = paths.get((_reverse(pair), *rest))
        if back is not None and pair < _reverse(pair) and min(path.cost_ns, back.cost_ns) > 0:
            slow, fast = sorted((path, back), key=lambda one: -one.cost_ns)
            found.append((slow, fast))
    return sorted(found, key=lambda trip: -trip[0].cost_ns / trip[1].cost_ns)


def answers(trips: Sequence[Trip]) -> tuple[Answer, ...]:
    """Which pair is the most lopsided."""
    lopsided = [trip for trip in trips if _differs(trip)]
    if not lopsided:
        why = f"none of {len(trips)} round trips" if trips else "no pair has a path both ways"
        return (Answer("slower in one direction", "", "", why),)
    there, back = lopsided[0]
    times = _times(lopsided[0])
    note = f"{there.brief_time} there, {back.brief_time} back"
    return (
        Answer("slower in one direction", "", "", f"{len(lopsided)} of {len(trips)} round trips"),
        Answer("most lopsided", there.pair, f"{times} times" if times else "", note),
    )


def sections(session: Session, trips: Sequence[Trip]) -> Iterator[Section]:
    """Both directions of each trip; then the trips that were made in a row."""
    columns = (
        Column("round trip"),
        Column("there", right=True),
        Column("back", right=True),
        Column("times as long", right=True),
        Column("path there"),
        Column("path back"),
    )
    rows = tuple(_row(trip, len({one[0].array[1:] for one in trips}) > 1) for trip in trips)
    if rows:
        yield Section("Round trips", (Table(columns, rows),), Level.FIRST)
    if session.round_trips:
        yield from _in_a_row(session)


def _reverse(pair: str) -> str:
    producer, _, consumer = pair.partition(ARROW)
    consumer, inside, environment = consumer.partition(" in ")
    return f"{consumer}{ARROW}{producer}{inside}{environment}"


def _differs(trip: Trip) -> bool:
    there, back = trip
    return there.is_known and is_slower(there.case.ready, back.case.ready, NOT_EQUAL)


def _times(trip: Trip) -> str:
    there, back = (one.case.ready for one in trip)
    return "" if there is None or back is None else times_text(there, back)


def _row(trip: Trip, several: bool) -> tuple[Cell, ...]:
    there, back = trip
    array = f"  {' '.join(there.array[1:])}" if several else ""
    return (
        Cell(f"{there.pair}{array}"),
        *(Cell(f"{one.brief_time} {one.result_cell.text}{_note(one)}") for one in trip),
        Cell(_times(trip) if _differs(trip) else "the same"),
        Cell(there.code, code=True),
        Cell(back.code, code=True),
    )


def _note(path: Path) -> str:
    unsafe = " unsafe" if path.safety.level == "unsafe" else ""
    return f"{unsafe} waits" if path.case.waits else unsafe


def _in_a_row(session: Session) -> Iterator[Section]:
    """What a trip costs where many are made, its halves, and what it waits for."""
    columns = ("round trip", "trips", "each", "there", "back", "release", "who waits")
    rows, lines = [], []
    for made in session.round_trips:
        if not all(0 <= index < len(session.results) for index in (made.there, made.back)):
            continue
        name = _name(session, made)
        each = time_text(made.idle) if made.idle is not None else "-"
        disturbed = made.idle is not None and made.idle.is_disturbed
        halves = [plain_time(made.parts[part]) if part in made.parts else "-" for part in HALVES]
        rows.append(
            (
                Cell(name),
                Cell(f"{made.iterations:,}"),
                Cell(f"{MARK}{each}" if disturbed else each),
                *map(Cell, halves),
                Cell(_who_waits(made)),
            )
        )
        lines += [f"{name}: {note}" for note in _notes(session, made)]
    titles = tuple(Column(title, right=title in columns[1:6]) for title in columns)
    table = Table(titles, tuple(rows))
    yield Section("Round trips in a row", (table,), Level.FIRST)
    if lines:
        yield Section("Notes on round trips in a row", (Lines(tuple(lines)),))


def _name(session: Session, made: RoundTrip) -> str:
    case = session.results[made.there].case
    return f"{case.producer}{ARROW}{case.consumer} and back"


def _notes(session: Session, made: RoundTrip) -> Iterator[str]:
    if made.reason:
        yield f"not by every process: {made.reason}" if made.idle else f"no time: {made.reason}"
    for one in made.refused:
        if 0 <= one.result < len(session.results):
            yield f"{session.results[one.result].case.code} does not work there: {one.reason}"
    yield f"there by {session.results[made.there].case.code}"
    yield f"back by {session.results[made.back].case.code}"
    for way in ("there", "back"):
        looks: list[WayLook] = [getattr(one.in_a_row, way) for one in made.processes]
        if looks:
            yield f"{way} {_looks(looks)}"
    if made.restarted:
        yield f"each trip begins with the same array: {made.restarted}"
    first, last = made.parts.get("first_ns"), made.parts.get("last_ns")
    if first and last:
        yield f"the first trips take {plain_time(first)} each, the last {plain_time(last)}"
    if made.loaded and made.loaded.keys() >= LOADED:
        of = made.loaded
        yield (
            f"behind {plain_time(of['queued_ns'])} of work: the first trip takes"
            f" {plain_time(of['there_ns'] + of['back_ns'])}, the others"
            f" {plain_time(of['others_ns'])}, the wait at the end {plain_time(of['wait_ns'])}"
        )
    elif made.not_loaded:
        yield f"nothing was queued: {made.not_loaded}"


def _looks(looks: Sequence[WayLook]) -> str:
    views, copies, unknown = (
        sum(getattr(look, name) for look in looks) for name in ("views", "copies", "unknown")
    )
    told = [f"{count} {word}" for count, word in ((views, "views"), (copies, "copies")) if count]
    if unknown or not told:
        told.append(f"{unknown} unknown")
    sizes = sorted(
        {size for look in looks for size in (*look.view_alignments, *look.copy_alignments)}
    )
    at = f" of arrays at multiples of {', '.join(map(str, sizes))} bytes" if sizes else ""
    return f"{', '.join(told)} seen{at}"


def _who_waits(made: RoundTrip) -> str:
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
