"""Read a history and show it: in the terminal, as JSON, as a page."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from dlprof.cli.distinct import check_distinct, check_no_session
from dlprof.cli.show import colour, say, width, write
from dlprof.compare.match import code_key
from dlprof.errors import DlprofError, HistoryError, Unmeasured, UsageError
from dlprof.history.address import Address, given
from dlprof.history.entry import entry_of
from dlprof.history.folder import folder_at
from dlprof.history.label import Label
from dlprof.history.machine import recognised
from dlprof.history.series import series_of
from dlprof.history.store import History, read
from dlprof.history.trend import Trend, chosen, trends_of
from dlprof.plan.floors import MEASURES
from dlprof.reports import history as terminal
from dlprof.reports import history_json
from dlprof.reports.sparkline import BARS, DIGITS
from dlprof.session import replaced
from dlprof.session.model import Session
from dlprof.text.clean import clean

READY = "ready"


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
    history, trends = _trends_at(given(address, "an ADDRESS"), globs, measure, last)
    if json is not None:
        _give(json, history_json.render(history, trends, measure))
    if html is not None:
        from dlprof.reports.html.history_page import render

        _give(html, render(history, trends, measure))
    if "-" not in (json, html):
        say(terminal.render(history, trends, measure, width(), colour(), _marks()))


def trends_with(session: Session, address: str) -> tuple[Trend, ...]:
    """The trends of a session's cases on its machine, with the session itself at their end."""
    try:
        entry = entry_of(session, Label())
    except DlprofError as error:
        raise type(error)(f"the session has no place in a history: {error}") from None
    kept = list(_read(given(address, "--history ADDRESS"), None).entries)
    if entry.id not in {one.id for one in kept}:
        kept = sorted([*kept, entry], key=lambda one: one.created)
    found = series_of(kept, READY)
    machines = {one.machine for one in found}
    own = {
        (recognised(one.machine, machines), one.environment, code_key(one.case))
        for one in series_of([entry], READY)
    }
    return trends_of(
        [one for one in found if (one.machine, one.environment, code_key(one.case)) in own]
    )


def _read(place: Address, last: int | None) -> History:
    """What is at an address; files that are no part of it are named on stderr."""
    history = read(folder_at(place), last)
    for name, reason in history.ignored:
        typer.echo(f"dlprof: {name} is left out: {clean(reason)}", err=True)
    return history


def _trends_at(
    place: Address, globs: Sequence[str], measure: str, last: int | None
) -> tuple[History, tuple[Trend, ...]]:
    history = _read(place, last)
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
            replaced.check_writable(Path(target or ""))
            check_no_session(Path(target or ""))


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
