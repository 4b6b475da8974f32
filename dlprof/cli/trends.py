"""Read a history and show it: in the terminal, as JSON, as a page."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from dlprof import session as sessions
from dlprof.clean import clean
from dlprof.cli.distinct import check_distinct
from dlprof.cli.show import colour, say, width, write
from dlprof.compare.floors import MEASURES
from dlprof.errors import HistoryError, Unmeasured, UsageError
from dlprof.history.address import given
from dlprof.history.folder import folder_at
from dlprof.history.series import series_of
from dlprof.history.store import History, read
from dlprof.history.trend import Trend, chosen, trends_of
from dlprof.reports import history as terminal
from dlprof.reports import history_json
from dlprof.reports.sparkline import BARS, DIGITS


def show_trends(
    address: str | None,
    globs: Sequence[str],
    measure: str,
    last: int | None,
    json: str | None,
    html: str | None,
) -> None:
    """Show the trends of a history.

    Raises :class:`UsageError` for what makes no sense or cannot be read, :class:`Unmeasured` for
    a history without sessions.
    """
    if measure not in MEASURES:
        raise UsageError(f"--measure is {', '.join(MEASURES)}, not {measure!r}")
    _check_targets({"--json": json, "--html": html})
    history, trends = trends_at(address, globs, measure, last)
    if json is not None:
        _give(json, history_json.render(history, trends, measure))
    if html is not None:
        from dlprof.reports.html.history_page import render

        _give(html, render(history, trends, measure))
    if "-" not in (json, html):
        say(terminal.render(history, trends, measure, width(), colour(), _marks()))


def trends_at(
    address: str | None,
    globs: Sequence[str] = (),
    measure: str = "ready",
    last: int | None = None,
    option: str = "an ADDRESS",
) -> tuple[History, tuple[Trend, ...]]:
    """What is at an address; files that are no part of it are named on stderr."""
    place = given(address, option)
    history = read(folder_at(place), last)
    for name, reason in history.ignored:
        typer.echo(f"dlprof: {name} is left out: {clean(reason)}", err=True)
    if not history.entries:
        raise Unmeasured(f"the history {place.shown} holds no session")
    found = chosen(series_of(history.entries, measure), globs)
    if not found:
        raise HistoryError(f"no case of the history matches --case {' '.join(globs)}")
    return history, trends_of(found, measure)


def _check_targets(targets: dict[str, str | None]) -> None:
    check_distinct(targets)
    if list(targets.values()).count("-") > 1:
        raise UsageError(f"only one of {', '.join(targets)} can be printed")
    for target in targets.values():
        if target not in (None, "-"):
            sessions.check_writable(Path(target or ""))


def _give(target: str, text: str) -> None:
    if target == "-":
        say(text)
    else:
        write(Path(target), text)


def _marks() -> str:
    """Bars, or digits where the output has no characters for bars."""
    try:
        BARS.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return DIGITS
    return BARS
