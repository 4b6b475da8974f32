"""The user's folder for the last sessions, if no file is named for them."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import os
import tempfile
from pathlib import Path

from dlprof.errors import UsageError


def default_path(command: str) -> Path:
    """A new file in the user's state folder, which keeps the newest twenty sessions."""
    folder = state_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"cannot keep the session in {folder}: {error.strerror}; name a file with -o"
        ) from None
    for old in kept_sessions()[KEPT_SESSIONS:]:
        for path in (old, journal_of(old)):
            with contextlib.suppress(OSError):
                path.unlink()
    return folder / f"{stamp()}-{command}.json"


def kept_sessions() -> list[Path]:
    """The sessions in the user's state folder, newest first."""
    return sorted(state_folder().glob("*.json"), key=lambda path: path.name, reverse=True)


def journal_of(session: Path) -> Path:
    """The journal of the session file ``session``, which is there until the run is complete."""
    return session.with_name(f"{session.name}.journal")


def state_folder() -> Path:
    """The user's state folder; a folder for temporary files if the user has no home."""
    base = os.environ.get("XDG_STATE_HOME", "")
    if Path(base).is_absolute():  # the XDG specification has others ignored
        return Path(base) / "dlprof"
    try:
        return Path.home() / ".local" / "state" / "dlprof"
    except RuntimeError:  # no HOME, and no entry for the user
        # Others write there, too: what is in their folder is not this user's.
        return Path(tempfile.gettempdir()) / f"dlprof-{os.getuid()}"


def remember_last(session: Path) -> None:
    """Keep the name of the newest session: the word ``LAST`` stands for it on the command line."""
    with contextlib.suppress(OSError):  # a full or read-only folder costs the name only
        folder = state_folder()
        folder.mkdir(parents=True, exist_ok=True)
        (folder / LAST).write_text(str(session.absolute()), encoding="utf-8")


def last_session() -> Path:
    """The newest session. Raises :class:`UsageError` where there is none."""
    try:
        return Path((state_folder() / LAST).read_text(encoding="utf-8"))
    except OSError:
        raise UsageError("LAST names the newest session, and nothing was measured yet") from None


LAST = "last"
KEPT_SESSIONS = 19
_runs = itertools.count()


def stamp() -> str:
    # The number tells two runs apart that one process begins in the same second.
    now = f"{datetime.datetime.now(datetime.timezone.utc):%Y%m%d-%H%M%S}"
    return f"{now}-{os.getpid()}-{next(_runs)}"
