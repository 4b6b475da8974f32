"""What stands under a name: a file, or something that may never end."""

from __future__ import annotations

import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dlprof.errors import UsageError

STDIN = Path("/dev/stdin")
OPEN = ("/dev/fd/", "/proc/self/fd/")
"""Where the files are that this process was given already open."""
KINDS = (
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
)


def at_home(path: Path) -> Path:
    """The path with ``~`` as the user's home; as it is where that is nobody's."""
    try:
        return path.expanduser()
    except RuntimeError:
        return path


@contextmanager
def temporary_folder(what: str) -> Iterator[str]:
    """A folder that is gone afterwards, in which ``what`` is done. Raises :class:`UsageError`."""
    try:
        made = tempfile.TemporaryDirectory(prefix="dlprof-", ignore_cleanup_errors=True)
    except OSError as error:
        raise UsageError(f"there is no folder in which {what}: {error.strerror}") from None
    with made as folder:
        yield folder


def special(path: Path) -> str:
    """``a device``, ``a pipe`` or ``a socket``; empty for files, folders and what is not there."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return ""
    return next((name for is_one, name in KINDS if is_one(mode)), "")


def endless(path: Path) -> str:
    """What ``path`` is if reading it may never end, else empty.

    A pipe that this process was given open, as stdin or by ``<(...)`` of a shell, ends with the
    program that writes it. One that is opened by its name waits for somebody to come.
    """
    given = path == STDIN or str(path).startswith(OPEN)
    found = special(path)
    return "" if given and found != "a device" else found
