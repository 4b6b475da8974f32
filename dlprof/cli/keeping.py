"""Add session files to a history, and say so."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dlprof.cli.show import say
from dlprof.errors import DlprofError, UsageError
from dlprof.history.address import Address, given
from dlprof.history.entry import Entry, entry_of, moment
from dlprof.history.folder import folder_at
from dlprof.history.label import label_for
from dlprof.history.store import Added, add
from dlprof.reports.history_text import label_text
from dlprof.session import model as sessions
from dlprof.session.files import STDIN
from dlprof.text.clean import clean


def keep(files: Sequence[Path], to: str | None, label: str | None) -> None:
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
        say(_told(file, done, address) + "\n")


def _entry(file: Path, label: str | None) -> Entry:
    session = sessions.load(file)
    try:
        return entry_of(session, label_for(moment(session.created), label))
    except DlprofError as error:
        raise type(error)(f"cannot add {file}: {error}") from None


def _told(file: Path, done: Added, address: Address) -> str:
    if not done.new:
        return f"{clean(str(file))}: this measurement is in {address.shown} already; nothing added"
    label = done.entry.label
    said = f"label {label_text(label.text)} (from {label.source})" if label.text else "no label"
    count = len(done.entry.session.results)
    cases = f"{count:,} case{'s' if count != 1 else ''}"
    where = f"{'the new history ' if done.first else ''}{address.shown}"
    gone = " (kept in the memory of this process alone)" if address.protocol == "memory" else ""
    return f"{clean(str(file))}: added to {where}{gone}: {cases}, {said}"
