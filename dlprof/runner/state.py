"""The user's folder for the last sessions, if no file is named for them."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import os
from pathlib import Path

from dlprof.errors import UsageError

LAST, LAST_TRACE = "last", "last-trace"
TRACES = "traces"
KEPT_SESSIONS = 19
_runs = itertools.count()


def default_path(command: str) -> Path:
    """A new file in the user's state folder, which keeps the newest twenty sessions."""
    return _new_in(state_folder(), command)


def default_trace() -> Path:
    """A new file for a traced program, as :func:`default_path` for a session."""
    return _new_in(state_folder() / TRACES, "trace")


def kept_sessions() -> list[Path]:
    """The sessions in the user's state folder, newest first. Raises :class:`UsageError`."""
    return _kept_in(state_folder())


def is_kept(path: Path) -> bool:
    """Whether a session or a trace lies where those without a name do."""
    with contextlib.suppress(UsageError):
        return path.parent in (state_folder(), state_folder() / TRACES) and path.exists()
    return False


def state_folder() -> Path:
    """The user's state folder. Raises :class:`UsageError` if the user has no home."""
    base = os.environ.get("XDG_STATE_HOME", "")
    if Path(base).is_absolute():  # the XDG specification has others ignored
        return Path(base) / "dlprof"
    with contextlib.suppress(RuntimeError):  # no HOME, and no entry for the user
        return Path.home() / ".local" / "state" / "dlprof"
    raise UsageError("no home folder keeps sessions: name a file with -o, or set XDG_STATE_HOME")


def remember_last(session: Path, is_trace: bool = False) -> None:
    """Keep the name of the newest session: ``LAST`` stands for it on the command line.

    ``--from LAST:1`` names the newest trace, whatever was measured since.
    """
    with contextlib.suppress(OSError, UsageError):  # a read-only folder costs the name only
        folder = _made(state_folder())
        for name in (LAST, LAST_TRACE) if is_trace else (LAST,):
            (folder / name).write_text(str(session.absolute()), encoding="utf-8")


def last_session() -> Path:
    """The newest session. Raises :class:`UsageError` where there is none."""
    return _named(LAST, "LAST names the newest session, and nothing was measured yet")


def last_trace() -> Path:
    """The newest trace. Raises :class:`UsageError` where there is none."""
    return _named(LAST_TRACE, "LAST names the newest trace, and nothing was traced yet")


def stamp() -> str:
    """A name for a new file: the time, the process, and the number of the run in it."""
    now = f"{datetime.datetime.now(datetime.timezone.utc):%Y%m%d-%H%M%S}"
    return f"{now}-{os.getpid()}-{next(_runs)}"


def _new_in(folder: Path, command: str) -> Path:
    try:
        _made(folder)
    except OSError as error:
        raise UsageError(
            f"cannot keep the session in {folder}: {error.strerror}; name a file with -o"
        ) from None
    for old in _kept_in(folder)[KEPT_SESSIONS:]:
        with contextlib.suppress(OSError):
            old.unlink()
    return folder / f"{stamp()}-{command}.json"


def _made(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _kept_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.json"), key=lambda path: path.name, reverse=True)


def _named(name: str, otherwise: str) -> Path:
    try:
        return Path((state_folder() / name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise UsageError(otherwise) from None
