"""What ``dlprof history`` does: add sessions, read them, show their trends."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from dlprof.cli.outputs import Outputs
from dlprof.cli.show import say, show
from dlprof.compare.matching import code_key
from dlprof.errors import DlprofError, HistoryError, Unmeasured, UsageError
from dlprof.history.address import Address, given
from dlprof.history.entry import Entry, entry_of, label_for, moment
from dlprof.history.series import series_of
from dlprof.history.store import Added, History, add, folder_at, read
from dlprof.history.trend import Trend, chosen, trends_of
from dlprof.plan.floors import MEASURES
from dlprof.reports import history_json
from dlprof.reports.document import Document
from dlprof.reports.history_document import history_document, label_text
from dlprof.session import model as sessions
from dlprof.session.files import STDIN
from dlprof.session.model import Session
from dlprof.text.clean import clean

READY = "ready"


def add_sessions(files: Sequence[Path], to: str | None, label: str | None) -> None:
    """Add the files' sessions. All are read before the first is added.

    Raises :class:`~dlprof.errors.UsageError` for what cannot be read or added, and
    :class:`~dlprof.errors.Unmeasured` for a session without results.
    """
    if files.count(STDIN) > 1:
        raise UsageError("only one session can be on stdin")
    address = given(to, "--to ADDRESS")
    folder = folder_at(address)
    entries = [_entry(file, label) for file in files]
    for file, done in zip(files, add(folder, entries), strict=True):
        say(_added_text(file, done, address) + "\n")


def _entry(file: Path, label: str | None) -> Entry:
    session = sessions.load(file)
    try:
        return entry_of(session, label_for(moment(session.created), label))
    except DlprofError as error:
        raise type(error)(f"cannot add {file}: {error}") from None


def _added_text(file: Path, done: Added, address: Address) -> str:
    if not done.new:
        return f"{clean(str(file))}: this measurement is in {address.shown} already; nothing added"
    label = done.entry.label
    told = f"label {label_text(label.text)} (from {label.source})" if label.text else "no label"
    count = len(done.entry.session.results)
    cases = f"{count:,} case{'s' if count != 1 else ''}"
    where = f"{'the new history ' if done.first else ''}{address.shown}"
    gone = " (kept in the memory of this process alone)" if "memory" in address.protocols else ""
    return f"{clean(str(file))}: added to {where}{gone}: {cases}, {told}"


def show_trends(
    address: str | None,
    globs: Sequence[str],
    measure: str,
    last: int | None,
    json: str | None,
    html: str | None,
    full: bool = False,
) -> None:
    """Show the trends of a history.

    Raises :class:`UsageError` for what makes no sense or cannot be read, :class:`Unmeasured` for
    a history without sessions.
    """
    if measure not in MEASURES:
        raise UsageError(f"--measure is {', '.join(MEASURES)}, not {measure!r}")
    outputs = Outputs.of({"json": json, "html": html}, over_sessions=False)
    outputs.check()
    place = given(address, "an ADDRESS")
    history = _read(place, last)
    if not history.entries:
        raise Unmeasured(f"the history {place.shown} holds no session")
    found = chosen(series_of(history.entries, measure), globs)
    if not found:
        raise HistoryError(f"no case of the history matches --case {' '.join(globs)}")
    trends = trends_of(found, measure)
    document = history_document(history, trends, measure)
    outputs.write(
        {
            "--json": lambda: [history_json.render(history, trends, measure)],
            "--html": lambda: [_page(document)],
        }
    )
    if not outputs.printed:
        show(document, full)


def trends_with(session: Session, address: str) -> tuple[Trend, ...]:
    """The trends of a session's cases on its machine, with the session itself at their end."""
    try:
        entry = entry_of(session)
    except DlprofError as error:
        raise type(error)(f"the session has no place in a history: {error}") from None
    kept = list(_read(given(address, "--history ADDRESS"), None).entries)
    if entry.id not in {one.id for one in kept}:
        kept = sorted([*kept, entry], key=lambda one: one.created)
    own = {(one.machine, code_key(one.case)) for one in series_of([entry], READY)}
    found = series_of(kept, READY)
    return trends_of([one for one in found if (one.machine, code_key(one.case)) in own])


def _read(place: Address, last: int | None) -> History:
    """What is at an address; files that are no part of it are named on stderr."""
    history = read(folder_at(place), last)
    for name, reason in history.ignored:
        typer.echo(f"dlprof: {name} is left out: {clean(reason)}", err=True)
    return history


def _page(document: Document) -> str:
    from dlprof.reports.html import render

    return render(document)
