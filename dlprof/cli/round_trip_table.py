"""Round trips on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from dlprof.cli.show import say, width
from dlprof.reports import round_trip, trips_in_a_row
from dlprof.reports.faults import suspected
from dlprof.reports.row import Row
from dlprof.reports.terminal import circumstances_text, findings_text, printed, unmeasured_text
from dlprof.session.model import Header

MOST_TRIPS = 24


def round_trip_answer(header: Header, rows: Sequence[Row]) -> str:
    """Which pair is the most lopsided, and where its time goes."""
    return round_trip.answer(suspected(rows, header.findings), header.round_trips)


def show_round_trips(header: Header, rows: Sequence[Row]) -> None:
    """A paragraph for each pair and array, the most lopsided first."""
    rows = suspected(rows, header.findings)
    found = round_trip.trips(rows)
    say(f"{circumstances_text(header, width())}\n")
    made = trips_in_a_row.of(rows, header.round_trips)
    for trip in found[:MOST_TRIPS]:
        say(printed(round_trip.text(trip, made), width()))
    if len(found) > MOST_TRIPS:
        say(f"… and {len(found) - MOST_TRIPS:,} more in the session file\n")
    lost = round_trip.one_way(rows)
    if lost:
        say(printed(f"no path that is right: {', '.join(lost)}", width()))
    say(f"\n{unmeasured_text(rows)}")
    say(findings_text(header, rows, width()))
