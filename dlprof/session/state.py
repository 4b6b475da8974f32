"""The user's folder for the last sessions, if no file is named for them."""

from __future__ import annotations

import contextlib
import datetime
import hmac
import itertools
import json
import os
import secrets
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dlprof.errors import UsageError


def default_path(command: str) -> Path:
    """A new file in the user's state folder, which keeps the newest twenty sessions."""
    return _new_in(state_folder(), command)


def _new_in(folder: Path, command: str) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"cannot keep the session in {folder}: {error.strerror}; name a file with -o"
        ) from None
    for old in _kept_in(folder)[KEPT_SESSIONS:]:
        for path in (old, journal_of(old)):
            with contextlib.suppress(OSError):
                path.unlink()
    return folder / f"{stamp()}-{command}.json"


def default_trace() -> Path:
    """A new file for a traced program, as :func:`default_path` for a session."""
    return _new_in(state_folder() / "traces", "trace")


def kept_sessions() -> list[Path]:
    """The sessions in the user's state folder, newest first."""
    return _kept_in(state_folder())


def _kept_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.json"), key=lambda path: path.name, reverse=True)


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


def mark(content: Mapping[str, Any]) -> str:
    """What only this user can write of ``content``, for :func:`is_own`; empty without a key."""
    read = json.loads(json.dumps({**content, "mark": ""}))  # as it comes back from the file
    text = json.dumps(read, sort_keys=True)
    key = _key()
    return hmac.new(key, text.encode(), "sha256").hexdigest() if key else ""


def is_own(content: Mapping[str, Any]) -> bool:
    """Whether this user wrote ``content`` here, with its ``mark`` in it."""
    told, found = str(content.get("mark")), mark(content)
    return bool(found) and hmac.compare_digest(told.encode(), found.encode())


def _key() -> bytes:
    """A secret of this user, made once; empty where there is none, or others can have it."""
    folder = state_folder()
    path = folder / "key"
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            with tempfile.NamedTemporaryFile(dir=folder) as new:  # which only the user may read
                new.write(secrets.token_bytes(32))
                new.flush()
                os.link(new.name, path)  # another process may have been first
    try:
        is_ours = _is_private(path.lstat(), 0o077) and _is_private(folder.stat(), 0o022)
        return path.read_bytes() if is_ours else b""
    except OSError:
        return b""


def _is_private(found: os.stat_result, forbidden: int) -> bool:
    return found.st_uid == os.getuid() and not found.st_mode & forbidden


LAST = "last"
KEPT_SESSIONS = 19
_runs = itertools.count()


def stamp() -> str:
    # The number tells two runs apart that one process begins in the same second.
    now = f"{datetime.datetime.now(datetime.timezone.utc):%Y%m%d-%H%M%S}"
    return f"{now}-{os.getpid()}-{next(_runs)}"
