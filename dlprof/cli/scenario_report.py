"""The report of a sweep on a terminal: the question, the tables, and the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import Group
from rich.text import Text

from dlprof.analysis.case_view import mapping
from dlprof.cli.matrix_table import matrix_answer, show_grids, show_matrix
from dlprof.cli.show import Show, say, show_table, width
from dlprof.errors import DlprofError, ExpectationsMissed, ExpectationsUnknown
from dlprof.reports import ingest, placement, round_trip, scenario, trips_in_a_row
from dlprof.reports.faults import suspected
from dlprof.reports.row import Row
from dlprof.reports.terminal import (
    circumstances_text,
    findings_text,
    printed,
    reasons,
    unmeasured_text,
)
from dlprof.scenario.expectation import MISSED, UNKNOWN
from dlprof.session.model import Header


def show_ingest(header: Header, rows: Sequence[Row]) -> None:
    """A table for each source, what was not measured and why, and the findings."""
    rows = suspected(rows, header.findings)
    say(circumstances_text(header, width()))
    say(printed(Group(*ingest.blocks(rows)), width()))
    say(printed(Group(*reasons([row for row in rows if row.ready is None], rows)), width()))
    say(f"\n{unmeasured_text(rows)}")
    say(findings_text(header, rows, width()))


def ingest_answer(header: Header, rows: Sequence[Row]) -> str:
    """What copies and what does not, and what the copies cost."""
    return ingest.answer(suspected(rows, header.findings))


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


Answer = Callable[[Header, Sequence[Row]], str]


def loop_answer(_: Header, rows: Sequence[Row]) -> str:
    """What the conversion is in its loop, for each array."""
    return "\n".join(placement.answers(rows)) or "No loop could be measured."


REPORTS: dict[str, tuple[Show, Answer]] = {
    "matrix": (show_grids, matrix_answer),
    "round trip": (show_round_trips, round_trip_answer),
    "loop": (show_table, loop_answer),
    "ingest": (show_ingest, ingest_answer),
}
"""The table of a report, and the sentence that answers, which stands last."""


def show_scenario(header: Header, rows: Sequence[Row]) -> None:
    """What the scenario asks, its table, whether what it expects was found, and the answer."""
    told = mapping(header.request.get("scenario"))
    say(f"{printed(Text(scenario.heading(header)), width())}\n")
    table, answer = REPORTS.get(str(told.get("report")), (show_table, None))
    table(header, rows)
    lines = scenario.expectations(header)
    say(f"\n{printed(Text(lines), width())}" if lines else "")
    if answer is not None:
        say(f"\n{printed(Text(answer(header, rows)), width())}")


def shown_as(header: Header) -> Show:
    """How the report of a session is printed: as that of the command that made it."""
    if header.request.get("scenario"):
        return show_scenario
    return show_matrix if header.command[:1] == ["matrix"] else show_table


def check_missed(header: Header) -> None:
    """Raise :class:`ExpectationsMissed` for what is known not to be as expected."""
    _check(header, MISSED, ExpectationsMissed)


def check_unchecked(header: Header) -> None:
    """Raise :class:`ExpectationsUnknown` for what could not be checked."""
    _check(header, UNKNOWN, ExpectationsUnknown)


def _check(header: Header, verdict: str, kind: type[DlprofError]) -> None:
    found = [one.text for one in header.expectations if one.verdict == verdict]
    if found:
        raise kind(f"expectation {verdict}: {'; '.join(found)}")
