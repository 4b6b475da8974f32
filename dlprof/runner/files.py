"""Read and replace files whole, and keep the last sessions in a folder of the user."""

from __future__ import annotations

import contextlib
import datetime
import errno
import fcntl
import io
import itertools
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from dlprof.errors import UsageError

BEGINNING = 256
"""Characters that tell the kind of a file."""
MOST_BYTES = 512 << 20
"""The limit of a file that is read."""
STDIN = Path("/dev/stdin")


def begins_as(path: Path, schema: str) -> bool:
    """Whether the file at ``path`` begins like one of ``schema``, in any version."""
    kind = re.escape(schema.rpartition("/")[0])
    try:
        if not path.is_file():  # reading a pipe would wait, and take from it
            return False
        with path.open(encoding="utf-8-sig") as file:
            beginning = file.read(BEGINNING)
    except (OSError, ValueError):
        return False
    return re.match(rf'\s*\{{\s*"schema"\s*:\s*"{kind}/', beginning) is not None


def is_readable(path: Path) -> bool:
    """Whether it is a regular file that is not too large. Others may block, or have no end."""
    return path.is_file() and path.stat().st_size <= MOST_BYTES


def read_bytes(path: Path) -> bytes:
    """Read a whole file, or stdin. Raises :class:`OSError`, also for a file over ``MOST_BYTES``.

    Of other pipes it reads those that the shell opened: ``<(command)`` is ``/dev/fd/63``.
    """
    is_open = path == STDIN or path.parent == Path("/dev/fd")
    if path.exists() and not (is_open or path.is_file() or path.is_dir()):
        raise OSError(errno.EINVAL, "it is not a regular file")
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise OSError(errno.EFBIG, f"it has more than {MOST_BYTES >> 20} MiB")
    return content


def expand_home(path: Path) -> Path:
    """Return the path with ``~`` as the user's home; unchanged if there is no such user."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - Path raises for no such user


@contextmanager
def atomic(path: Path) -> Iterator[IO[str]]:
    """Open a text file that replaces ``path`` when it is complete. Raises :class:`UsageError`."""
    try:
        is_special = path.exists() and not path.is_file() and not path.is_dir()
        # A device or a pipe is written to, and never replaced.
        file = path.open("wb") if is_special else _replacing(path.resolve())
        with file as binary, io.TextIOWrapper(binary, encoding="utf-8") as text:
            yield text
    except (OSError, RuntimeError) as error:
        raise UsageError(f"cannot write {path}: {_cause(error)}") from None


def check_writable(path: Path) -> None:
    """Raise :class:`UsageError` if :func:`atomic` would."""
    if path.is_dir():
        raise UsageError(f"cannot write {path}: Is a directory")
    if path.exists() and not path.is_file():
        return
    try:
        import tempfile  # takes long, and `dlprof --help` does not need it

        tempfile.TemporaryFile(dir=path.resolve().parent).close()
    except (OSError, RuntimeError) as error:  # a loop of links is a RuntimeError
        raise UsageError(f"cannot write {path}: {_cause(error)}") from None


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}.partial")
    try:
        with temporary.open("xb") as file:  # with the permissions that the user's umask leaves
            yield file
        if path.exists():
            temporary.chmod(stat.S_IMODE(path.stat().st_mode))
        temporary.replace(path)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def _cause(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


LAST, LAST_TRACE = "last", "last-trace"
"""Files that name the newest session and the newest trace."""
TRACE = "trace"
KEPT_SESSIONS = 19
"""Besides the new one."""
_runs = itertools.count()


def default_path(command: str) -> Path:
    """Return a new file in the state folder, which keeps twenty sessions and twenty traces."""
    folder = state_folder() / "traces" if command == TRACE else state_folder()
    try:
        _make_folder(folder)
    except OSError as error:
        raise UsageError(
            f"cannot keep the session in {folder}: {error.strerror}; name a file with -o"
        ) from None
    for old in _files(folder)[KEPT_SESSIONS:]:
        # A run still writes a session that is locked.
        with contextlib.suppress(OSError), old.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
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


def remember_last(path: Path, kind: str = LAST) -> None:
    """Keep the name of the newest session, or trace, which ``LAST`` names in commands."""
    # A read-only folder costs the name only.
    with (
        contextlib.suppress(OSError, UsageError),
        _replacing(_make_folder(state_folder()) / kind) as file,
    ):
        file.write(os.fsencode(path.absolute()))


def newest(*kinds: str) -> Path:
    """Return the newest session, or trace. Raises :class:`UsageError` without any."""
    names = [name for kind in kinds if (name := state_folder() / kind).is_file()]
    try:
        name = max(names, key=lambda name: name.stat().st_mtime_ns)
        return Path(os.fsdecode(read_bytes(name)))
    except (OSError, ValueError):
        what = "session or trace" if LAST_TRACE in kinds else "session"
        raise UsageError(f"LAST names the newest {what}: there is none yet") from None


def _make_folder(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.json"), key=lambda path: path.name, reverse=True)
