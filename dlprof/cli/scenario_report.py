"""The report of a sweep on a terminal: the question, the tables, and the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rich.text import Text

from dlprof.analysis.known import mapping
from dlprof.cli.ingest_table import ingest_answer, show_ingest
from dlprof.cli.matrix_table import matrix_answer, show_grids, show_matrix
from dlprof.cli.round_trip_table import round_trip_answer, show_round_trips
from dlprof.cli.show import Show, say, show_table, width
from dlprof.cli.side_by_side_table import show_side_by_side
from dlprof.errors import DlprofError, ExpectationsMissed, ExpectationsUnknown
from dlprof.reports import placement, scenario
from dlprof.reports.row import Row
from dlprof.reports.terminal import printed
from dlprof.scenario.expectation import MISSED, UNKNOWN
from dlprof.session.environments import environments_of
from dlprof.session.model import Header

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
