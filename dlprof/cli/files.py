"""Sessions as the command line names them: a file, ``LAST`` for the newest, ``-`` for stdin."""

from __future__ import annotations

import shlex
from pathlib import Path

from dlprof.errors import UsageError
from dlprof.runner import files, state
from dlprof.runner.files import begins_as
from dlprof.text.clean import clean

LAST = "LAST"


def session(text: str) -> Path:
    """Return the session that was named; a number counts the kept sessions from the newest on."""
    if text == LAST:
        return state.last_session()
    if text.isascii() and text.isdecimal() and not Path(text).exists():
        kept = state.kept_sessions()
        if not 1 <= int(text[:9]) <= len(kept):
            raise UsageError(f"there is no session {text}: dlprof list sessions lists them")
        return kept[int(text) - 1]
    return files.STDIN if text == "-" else Path(text)


def session_name(path: Path) -> str:
    """Return a session's name for commands: its file, or ``LAST`` for the newest without a name.

    Another command may run before these do, and then ``LAST`` is another session.
    """
    try:
        is_last = path == state.last_session() and state.is_kept(path)
    except UsageError:
        is_last = False
    return LAST if is_last else shlex.quote(clean(str(path)))


def check_no_session(path: Path) -> None:
    """Raise :class:`UsageError` where a report would replace what was measured."""
    from dlprof.runner import session as model

    if begins_as(path, model.SCHEMA):
        raise UsageError(f"cannot write {path}: a session is in it; name another file")
