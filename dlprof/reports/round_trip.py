"""There and back: what each direction of a pair costs by its cheapest safe path, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dlprof.quantity import plain_time, ratio_text
from dlprof.reports import trips_in_a_row
from dlprof.reports.answer import slower
from dlprof.reports.row import Row
from dlprof.session import RoundTrip

TRIPS = 100
LEAST_BYTES = 64 * 2**10
"""A bandwidth of fewer bytes tells of the call, not of the copy."""


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
        """Whether the directions can be told apart."""
        return slower(self.back, self.there)

    @property
    def trip_ns(self) -> float:
        return self.there.cost_ns + self.back.cost_ns


def trips(rows: Sequence[Row]) -> list[Trip]:
    """Every pair and array that was measured in both directions, the most lopsided first."""
    best = _cheapest(row for row in rows if row.safe)
    found = [
        Trip(*sorted((row, best[back]), key=lambda side: -side.cost_ns))
        for key, row in best.items()
        if (back := _back(key)) in best and key < back and min(row.cost_ns, best[back].cost_ns) > 0
    ]
    return sorted(found, key=lambda trip: -trip.ratio)


def one_way(rows: Sequence[Row]) -> list[str]:
    """Pairs that were measured in one direction only, or have no safe path in one."""
    best = _cheapest(row for row in rows if row.safe)
    wanted = {_key(row): row for row in rows}
    return list(dict.fromkeys(row.pair for key, row in wanted.items() if key not in best))


def text(trip: Trip, made: RoundTrip | None = None) -> str:
    """A paragraph for one trip: both directions, where the time goes, and what many trips cost.

    ``made`` are trips in a row, if they were measured.
    """
    ratio = f"{ratio_text(trip.ratio)} times as long as back" if trip.differs else "not told apart"
    lines = [
        f"{trip.there.frameworks} and back, {trip.array}: {ratio}",
        f"    there {_side(trip.there)}",
        f"    back  {_side(trip.back)}",
        *(f"    {line}" for line in (_in_a_row(trip, made))),
    ]
    return "\n".join(lines)


def _in_a_row(trip: Trip, made: RoundTrip | None) -> list[str]:
    if made is not None:
        return trips_in_a_row.lines(trip.there, trip.back, made)
    return [f"{TRIPS} round trips take about {plain_time(TRIPS * trip.trip_ns)} (not measured)"]


def answer(rows: Sequence[Row], made: Sequence[RoundTrip] = ()) -> str:
    """The sentences that answer: which pair is the most lopsided, and where its time goes.

    ``made`` are trips in a row, by the indices of ``rows``.
    """
    return " ".join([_lopsided(rows), *trips_in_a_row.sentences(rows, made)])


def _lopsided(rows: Sequence[Row]) -> str:
    found = trips(rows)
    if not found:
        return "No pair could be measured safely in both directions."
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
        f" lopsided is {_directions(worst)}, {ratio_text(worst.ratio)} times; {_why(worst)}."
    )
    if waits:
        text += (
            f" In {len(waits)} of them a call waits for work that was queued before it: that time"
            " is the work's, not the conversion's."
        )
    return text


def _directions(trip: Trip) -> str:
    there, back = plain_time(trip.there.cost_ns), plain_time(trip.back.cost_ns)
    return f"{trip.there.frameworks}: {there} there and {back} back"


def _side(row: Row) -> str:
    loaded = {"": "", "ordered": "; ordered behind queued work, without a wait"}.get(
        row.loaded, f"; behind queued work it {row.loaded}"
    )
    return f"{plain_time(row.cost_ns)}: {row.code}, {_kind(row)}{_speed(row)}{loaded}"


def _why(trip: Trip) -> str:
    there, back = trip.there, trip.back
    if there.owner == "copy":
        return f"there it copies{_speed(there)}, back it is {_kind(back)}"
    depends = [f"{row.code} gives {row.depends}" for row in (there, back) if row.depends]
    if there.owner == back.owner == "view" and depends:
        return f"both are views of this array, but {' and '.join(depends)}"
    if there.owner == back.owner == "view":
        return "both are views of this array, so all of it is the call: no bytes are moved"
    return f"there it is {_kind(there)}, back {_kind(back)}"


def _kind(row: Row) -> str:
    return {"view": "a view", "copy": "a copy"}.get(row.owner, "a view or a copy")


def _speed(row: Row) -> str:
    if row.gb_per_s is None or row.size_bytes < LEAST_BYTES:
        return ""
    return f" at {row.gb_per_s:.2g} GB/s"


def _cheapest(rows: Iterator[Row]) -> dict[tuple[str, ...], Row]:
    best: dict[tuple[str, ...], Row] = {}
    for row in rows:
        key = _key(row)
        if key not in best or row.cost_ns < best[key].cost_ns:
            best[key] = row
    return best


def _key(row: Row) -> tuple[str, ...]:
    producer, _, consumer = row.frameworks.partition(" → ")
    return producer, consumer, row.shape, row.dtype, row.layout, row.device, row.environment


def _back(key: tuple[str, ...]) -> tuple[str, ...]:
    return (key[1], key[0], *key[2:])
