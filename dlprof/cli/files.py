"""Sessions as the command line names them: a file, ``LAST`` for the newest, ``-`` for stdin."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from dlprof.errors import UsageError
from dlprof.text.clean import clean

if TYPE_CHECKING:
    from dlprof.runner.trace_file import Row

LAST = "LAST"


def session(text: str) -> Path:
    """The session that was named; a number counts the kept sessions from the newest on."""
    from dlprof.runner import files, state

    if text == LAST:
        return state.last_session()
    if text.isascii() and text.isdecimal() and not Path(text).exists():
        kept = state.kept_sessions()
        if not 1 <= int(text[:9]) <= len(kept):
            raise UsageError(f"there is no session {text}: dlprof list sessions lists them")
        return kept[int(text) - 1]
    return files.STDIN if text == "-" else Path(text)


def made_folder(folder: Path) -> Path:
    """The folder, made if it is not there. Raises :class:`UsageError`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = "it is a file" if isinstance(error, FileExistsError) else error.strerror
        raise UsageError(f"cannot write the folder {folder}: {why}") from None
    return folder


def row_of_trace(text: str) -> tuple[Path, Row]:
    """What ``TRACE:ROW`` names; the first row is 1. Raises :class:`UsageError`."""
    from dlprof.runner import state, trace_file

    name, _, number = text.rpartition(":")
    if not name or not (number.isascii() and number.isdecimal()):
        raise UsageError(f"--from {text}: expected a trace and a row, such as LAST:1")
    path = state.last_trace() if name == LAST else Path(name)
    rows = trace_file.load(path).rows
    if not 1 <= int(number[:9]) <= len(rows):
        raise UsageError(f"--from {text}: the trace has {len(rows)} rows")
    return path, rows[int(number[:9]) - 1]


def session_name(path: Path) -> str:
    """What stands for a session in commands: its file, or ``LAST`` for the newest without a name.

    Another command may run before these do, and then ``LAST`` is another session.
    """
    from dlprof.runner import state

    try:
        is_last = path == state.last_session() and state.is_kept(path)
    except UsageError:
        is_last = False
    return LAST if is_last else shlex.quote(clean(str(path)))


def check_no_session(path: Path) -> None:
    """Raise :class:`UsageError` where a report would replace what was measured."""
    from dlprof.runner import session as model
    from dlprof.runner.files import begins_as

    if begins_as(path, model.SCHEMA):
        raise UsageError(f"cannot write {path}: a session is in it; name another file")
