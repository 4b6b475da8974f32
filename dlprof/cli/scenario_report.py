"""The report of a sweep on a terminal: the question, the tables, and the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Group
from rich.text import Text

from dlprof.analysis.case_view import mapping
from dlprof.cli.listing import plain_table, text_of
from dlprof.cli.matrix_table import matrix_answer, show_grids, show_matrix
from dlprof.cli.show import Show, say, show_table, width
from dlprof.errors import DlprofError, ExpectationsMissed, ExpectationsUnknown
from dlprof.reports import ingest, placement, round_trip, scenario, trips_in_a_row
from dlprof.reports.faults import suspected
from dlprof.reports.row import Row
from dlprof.reports.side_by_side import answer, cell, described, lines, names
from dlprof.reports.terminal import (
    circumstances_text,
    findings_text,
    printed,
    reasons,
    unmeasured_text,
)
from dlprof.scenario.expectation import MISSED, UNKNOWN
from dlprof.session.environments import environments_of
from dlprof.session.model import Header
from dlprof.text.clean import clean


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


MOST_LINES = 60


def show_side_by_side(header: Header, rows: Sequence[Row]) -> None:
    """A table for each pair and array: paths down, environments across."""
    rows = suspected(rows, header.findings)
    for words in described(header):
        say(printed(clean(words), width()))
    say(f"{circumstances_text(header, width())}\n")
    every, found = names(rows), lines(rows)
    arrays = dict.fromkeys((line.frameworks, line.array) for line in found[:MOST_LINES])
    for frameworks, array in arrays:
        table = plain_table(f"{frameworks}  {array}", *every)
        for line in found[:MOST_LINES]:
            if (line.frameworks, line.array) == (frameworks, array):
                table.add_row(line.code, *(cell(line.rows.get(name)) for name in every))
        say(f"{text_of(table)}\n")
    if len(found) > MOST_LINES:
        say(f"… and {len(found) - MOST_LINES:,} more paths in the session file\n")
    loops = placement.compose(rows)
    if loops:
        say(printed(Group(*loops), width()))
    say(unmeasured_text(rows))
    say(findings_text(header, rows, width()))
    say(printed(f"\n{answer(rows)}", width()))


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
    usual = _usual(header, rows)
    table, answer = REPORTS.get(str(told.get("report")), (usual, None))
    table(header, rows)
    lines = scenario.expectations(header)
    say(f"\n{printed(Text(lines), width())}" if lines else "")
    if answer is not None:
        say(f"\n{printed(Text(answer(header, rows)), width())}")


def _usual(header: Header, rows: Sequence[Row]) -> Show:
    """Several environments side by side; of steps one below the other: their tables are wide."""
    if len(header.environments) < 2:  # noqa: PLR2004 - several
        return show_table
    return _show_each if rows and all(row.is_step for row in rows) else show_side_by_side


def _show_each(header: Header, rows: Sequence[Row]) -> None:
    *others, last = environments_of(header)
    for name, environment in (*others, last):
        say(f"{printed(Text(f'In {name}:'), width())}\n")
        own: dict[str, Any] = {"environment": dict(environment)} | (
            {} if name == last[0] else {"left_out": []}
        )
        show_table(header.model_copy(update=own), [row for row in rows if row.environment == name])


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
