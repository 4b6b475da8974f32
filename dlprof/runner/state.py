"""The user's folder for the last sessions, if no file is named for them."""

from __future__ import annotations

import contextlib
import datetime
import errno
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
from dlprof.text import private_folder


def default_path(command: str) -> Path:
    """A new file in the user's state folder, which keeps the newest twenty sessions."""
    return _new_in(state_folder(), command)


def _new_in(folder: Path, command: str) -> Path:
    try:
        for one in (state_folder(), folder):
            private_folder.make(one)
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
    return _new_in(state_folder() / TRACES, "trace")


def kept_sessions() -> list[Path]:
    """The sessions in the user's state folder, newest first. Raises :class:`UsageError`."""
    return _kept_in(_trusted())


def is_kept(path: Path) -> bool:
    """Whether a session or a trace lies where those without a name do."""
    with contextlib.suppress(UsageError):
        return path.parent in (state_folder(), state_folder() / TRACES) and path.exists()
    return False


def _kept_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.json"), key=lambda path: path.name, reverse=True)


def journal_of(session: Path) -> Path:
    """The journal of the session file ``session``, which is there until the run is complete."""
    return session.with_name(f"{session.name}.journal")


def state_folder() -> Path:
    """The user's state folder. Raises :class:`UsageError` if the user has no home."""
    base = os.environ.get("XDG_STATE_HOME", "")
    if Path(base).is_absolute():  # the XDG specification has others ignored
        return Path(base) / "dlprof"
    with contextlib.suppress(RuntimeError):  # no HOME, and no entry for the user
        if (home := Path.home()).is_absolute() and home != Path("/"):  # an empty HOME is / there
            return home / ".local" / "state" / "dlprof"
    raise UsageError("no home folder keeps sessions: name a file with -o, or set XDG_STATE_HOME")


def _trusted() -> Path:
    """The state folder, if it is not there yet, or nobody else writes there."""
    folder = state_folder()
    try:
        private_folder.check(folder)
    except PermissionError as error:
        raise UsageError(f"cannot trust {folder}: {error.strerror}") from None
    except OSError:
        pass  # nothing is kept, which is for the caller to say
    return folder


def remember_last(session: Path, is_trace: bool = False) -> None:
    """Keep the name of the newest session: the word ``LAST`` stands for it on the command line.

    ``--from LAST:1`` names the newest trace, whatever was measured since.
    """
    # A full, read-only or foreign folder costs the name only.
    with contextlib.suppress(OSError, UsageError):
        folder = private_folder.make(state_folder())
        for name in (LAST, LAST_TRACE) if is_trace else (LAST,):
            (folder / name).write_text(str(session.absolute()), encoding="utf-8")


def last_session() -> Path:
    """The newest session. Raises :class:`UsageError` where there is none."""
    try:
        return _named(LAST)
    except (OSError, ValueError):
        raise UsageError("LAST names the newest session, and nothing was measured yet") from None


def last_trace() -> Path:
    """The newest trace. Raises :class:`UsageError` where there is none."""
    try:
        return _named(LAST_TRACE)
    except (OSError, ValueError):
        raise UsageError("LAST names the newest trace, and nothing was traced yet") from None


def _named(name: str) -> Path:
    return Path(_content(_trusted() / name, LONGEST_PATH).decode())


def _content(path: Path, most: int) -> bytes:
    """A small file. A FIFO or a device there is not waited for. Raises OSError."""
    if not path.is_file():
        raise OSError(errno.ENOENT, "no such file")
    with path.open("rb") as file:
        return file.read(most)


def untrusted_reason() -> str:
    """Why :func:`is_own` is false of everything here; empty where it is not."""
    try:
        folder = _trusted()
    except UsageError as error:
        return str(error)
    return "" if _key() else f"no key can be kept in {folder}"


def mark(content: Mapping[str, Any]) -> str:
    """What only this user can write of ``content``, for :func:`is_own`; empty without a key."""
    read = json.loads(json.dumps({**content, "mark": ""}))  # as it comes back from the file
    text = json.dumps(read, sort_keys=True)
    key = _key()
    return hmac.new(key, text.encode(), "sha256").hexdigest() if key else ""


def is_own(content: Mapping[str, Any]) -> bool:
    """Whether this user wrote ``content`` here, with its ``mark`` in it."""
    told, found = str(content.get("mark")), mark(content)
    return bool(found) and hmac.compare_digest(told.encode("utf-8", "replace"), found.encode())


def _key() -> bytes:
    """A secret of this user, made once; empty where there is none, or others can have it."""
    try:
        folder = private_folder.make(state_folder())
        path = folder / "key"
        if not path.exists():
            with (
                contextlib.suppress(FileExistsError),  # another process was first
                tempfile.NamedTemporaryFile(dir=folder) as new,  # which only the user may read
            ):
                new.write(secrets.token_bytes(KEY_BYTES))
                new.flush()
                os.link(new.name, path)
        private_folder.check(path)
        return b"" if path.lstat().st_mode & 0o077 else _content(path, KEY_BYTES)
    except (OSError, UsageError):
        return b""


KEY_BYTES = 32
LONGEST_PATH = 1 << 14
LAST, LAST_TRACE = "last", "last-trace"
TRACES = "traces"
KEPT_SESSIONS = 19
_runs = itertools.count()


def stamp() -> str:
    # The number tells two runs apart that one process begins in the same second.
    now = f"{datetime.datetime.now(datetime.timezone.utc):%Y%m%d-%H%M%S}"
    return f"{now}-{os.getpid()}-{next(_runs)}"
