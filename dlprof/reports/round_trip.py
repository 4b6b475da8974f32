"""There and back: what each direction of a pair costs by its cheapest safe path, and why.

Where a direction has no safe path it is the cheapest that is right, and that is told with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dlprof.analysis.quantity import brief_text, plain_time, ratio_text, times_text
from dlprof.reports import trip_answer, trips_in_a_row
from dlprof.reports.answer import KINDS, slower
from dlprof.reports.cell_text import told_speed, why_not_known
from dlprof.reports.row import Row
from dlprof.reports.trip_paths import key_of, ranked, unsafe_text, way_back
from dlprof.reports.trips_in_a_row import InARow
from dlprof.session.model import RoundTrip

TRIPS = 100


@dataclass(frozen=True)
class Trip:
    """One pair and array; ``there`` is the slower direction. None of them costs nothing."""

    there: Row
    back: Row

    @property
    def array(self) -> str:
        row = self.there
        inside = f" in {row.environment}" if row.environment else ""
        return f"{row.shape} {row.dtype} {row.layout} on {row.device}{inside}"

    @property
    def ratio(self) -> float:
        return self.there.cost_ns / self.back.cost_ns

    @property
    def differs(self) -> bool:
        """Whether the directions can be told apart.

        They cannot where the time of the slower one may be that of other programs.
        """
        return self.there.is_known and slower(self.back, self.there)

    @property
    def times(self) -> str:
        """``3.3``: how many times as long the slower direction takes; ``at least 3.3`` where its
        processes differ much. Empty where they leave no number.
        """
        there, back = self.there, self.back
        if there.ready is None or back.ready is None:
            return ratio_text(self.ratio)
        medians = there.process_medians_ns, back.process_medians_ns
        return times_text(there.ready, back.ready, *medians)

    @property
    def trip_ns(self) -> float:
        return self.there.cost_ns + self.back.cost_ns


def trips(rows: Sequence[Row]) -> list[Trip]:
    """Every pair and array that was measured in both directions, the most lopsided first."""
    best = {key: paths[0] for key, paths in ranked(rows).items()}
    found = [
        Trip(*sorted((row, best[back]), key=lambda side: -side.cost_ns))
        for key, row in best.items()
        if (back := way_back(key)) in best
        and key < back
        and min(row.cost_ns, best[back].cost_ns) > 0
    ]
    return sorted(found, key=lambda trip: -trip.ratio)


def candidates(rows: Sequence[Row]) -> list[tuple[list[Row], list[Row]]]:
    """For each trip the paths that may lead there, the best first, and those that may lead back."""
    paths = ranked(rows)
    return [(paths[key_of(trip.there)], paths[key_of(trip.back)]) for trip in trips(rows)]


def one_way(rows: Sequence[Row]) -> list[str]:
    """Pairs that were measured in one direction only, or have no right path in one."""
    best = ranked(rows)
    wanted = {key_of(row): row for row in rows}
    return list(dict.fromkeys(row.pair for key, row in wanted.items() if key not in best))


def text(trip: Trip, made: Sequence[InARow] = ()) -> str:
    """A paragraph for one trip: both directions, where the time goes, and what many trips cost.

    ``made`` are the trips in a row of the session; those of this pair and array are told.
    """
    longer = f"{trip.times} times as long as back" if trip.times else "longer than back"
    ratio = longer if trip.differs else "not told apart"
    lines = [
        f"{trip.there.frameworks} and back, {trip.array}: {ratio}",
        f"    there {_side(trip.there)}",
        f"    back  {_side(trip.back)}",
        *(f"    {line}" for line in (_in_a_row(trip, made))),
    ]
    return "\n".join(lines)


def _in_a_row(trip: Trip, made: Sequence[InARow]) -> list[str]:
    key = key_of(trip.there), key_of(trip.back)
    for one in made:
        if one.key in (key, key[::-1]):
            return trips_in_a_row.lines(one)
    return [f"{TRIPS} round trips take about {plain_time(TRIPS * trip.trip_ns)} (not measured)"]


def answer(rows: Sequence[Row], made: Sequence[RoundTrip] = ()) -> str:
    """The sentences that answer: which pair is the most lopsided, and where its time goes.

    ``made`` are trips in a row, by the indices of ``rows``.
    """
    return " ".join([_lopsided(rows), *trip_answer.sentences(trips_in_a_row.of(rows, made))])


def _lopsided(rows: Sequence[Row]) -> str:
    found = trips(rows)
    if not found:
        return "No pair has a path in both directions that was measured and seen to be right."
    lopsided = [trip for trip in found if trip.differs]
    if not lopsided:
        return (
            f"In none of {len(found)} round trips can the directions be told apart with so few"
            f" processes, or they cost the same. Furthest apart is {_directions(found[0])}."
        )
    worst = lopsided[0]
    waits = [trip for trip in found if "waits" in trip.there.loaded + trip.back.loaded]
    text = (
        f"Of {len(found)} round trips, {len(lopsided)} cost more in one direction. The most"
        f" lopsided is {_directions(worst)}{f', {worst.times} times' if worst.times else ''};"
        f" {_why(worst)}."
    )
    if waits:
        text += (
            f" In {len(waits)} of them a call waits for work that was queued before it: that time"
            " is the work's, not the conversion's."
        )
    return text


def _directions(trip: Trip) -> str:
    there, back = _cost(trip.there), _cost(trip.back)
    return (
        f"{trip.there.frameworks}: {there} there{_by(trip.there)} and {back} back{_by(trip.back)}"
    )


def _cost(row: Row) -> str:
    """The time; in brackets why it is not known to be the path's own."""
    if row.ready is None:
        return plain_time(row.cost_ns)
    time = brief_text(row.ready, row.process_medians_ns)
    return time + ("" if row.is_known else f" ({why_not_known(row)})")


def _by(row: Row) -> str:
    """Which path it is and why it is not safe; nothing of one that is."""
    unsafe = unsafe_text(row)
    return f" by {row.code} ({unsafe})" if unsafe else ""


def _side(row: Row) -> str:
    _, _, wait = row.loaded.partition(", ")
    loaded = {
        "": "",
        "ordered": "; ordered behind queued work, without a wait",
        "unordered": "; not ordered behind queued work",
        "unknown": "; whether it waits behind queued work is not known",
        f"unordered, {wait}": f"; not ordered behind queued work, although it {wait}",
    }.get(row.loaded, f"; behind queued work it {row.loaded}")
    unsafe = unsafe_text(row)
    told = f"; {unsafe}" if unsafe else ""
    return f"{_cost(row)}: {row.code}, {_kind(row)}{_speed(row)}{told}{loaded}"


def _why(trip: Trip) -> str:
    there, back = trip.there, trip.back
    if there.owner == "copy":
        return f"there it copies{_speed(there)}, back it is {_kind(back)}"
    depends = [f"{row.code} gives {row.depends}" for row in (there, back) if row.depends]
    if there.owner == back.owner == "view" and depends:
        return f"both are views of this array, but {' and '.join(depends)}"
    if there.owner == back.owner == "view":
        return f"both are views of this array{_begins(there)}: no bytes are moved"
    return f"there it is {_kind(there)}, back {_kind(back)}"


def _begins(row: Row) -> str:
    if not row.alignments:
        return ""
    return f" (there of a source at a multiple of {min(row.alignments):,} bytes)"


def _kind(row: Row) -> str:
    return KINDS.get(row.owner, "a view or a copy")


def _speed(row: Row) -> str:
    speed = told_speed(row)
    return f" at {speed}" if speed else ""
