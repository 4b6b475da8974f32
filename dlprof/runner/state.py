"""Keep the last sessions in a folder of the user, if no file is named for them."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import os
from pathlib import Path

from dlprof.errors import UsageError

LAST = "last"
TRACE = "trace"
KEPT_SESSIONS = 19
_runs = itertools.count()


def default_path(command: str) -> Path:
    """Return a new file in the user's state folder, which keeps the newest twenty sessions.

    Traces have a folder of their own.
    """
    folder = state_folder() / "traces" if command == TRACE else state_folder()
    try:
        _make_folder(folder)
    except OSError as error:
        raise UsageError(
            f"cannot keep the session in {folder}: {error.strerror}; name a file with -o"
        ) from None
    for old in _files(folder)[KEPT_SESSIONS:]:
        with contextlib.suppress(OSError):
            old.unlink()
    now = f"{datetime.datetime.now(datetime.timezone.utc):%Y%m%d-%H%M%S}"
    return folder / f"{now}-{os.getpid()}-{next(_runs)}-{command}.json"


def kept_sessions() -> list[Path]:
    """Return the sessions in the user's state folder, newest first. Raises :class:`UsageError`."""
    return _files(state_folder())


def is_kept(path: Path) -> bool:
    """Whether a session or a trace is in the user's state folder."""
    with contextlib.suppress(UsageError):
        return state_folder() in path.parents and path.exists()
    return False


def state_folder() -> Path:
    """Return the user's state folder. Raises :class:`UsageError` if the user has no home."""
    base = os.environ.get("XDG_STATE_HOME", "")
    if Path(base).is_absolute():  # the XDG specification has others ignored
        return Path(base) / "dlprof"
    with contextlib.suppress(RuntimeError):  # no HOME, and no entry for the user
        return Path.home() / ".local" / "state" / "dlprof"
    raise UsageError("no home folder keeps sessions: name a file with -o, or set XDG_STATE_HOME")


def remember_last(session: Path) -> None:
    """Keep the name of the newest session or trace, which ``LAST`` names in commands."""
    with contextlib.suppress(OSError, UsageError):  # a read-only folder costs the name only
        (_make_folder(state_folder()) / LAST).write_text(str(session.absolute()), encoding="utf-8")


def last_session() -> Path:
    """Return the newest session or trace. Raises :class:`UsageError` without any."""
    try:
        return Path((state_folder() / LAST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise UsageError("LAST names the newest session or trace: there is none yet") from None


def _make_folder(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.json"), key=lambda path: path.name, reverse=True)
