"""Folders whose files dlprof trusts, because only this user can have put them there."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

OTHERS_WRITE = 0o022


def make(folder: Path) -> Path:
    """Make the folder if it is not there. Raises :class:`OSError`, as :func:`check` does."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o777 & ~OTHERS_WRITE, exist_ok=True)
    check(folder)
    return folder


def check(path: Path) -> None:
    """Raise :class:`OSError` where another user may have written what is there."""
    found = path.stat()
    if found.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "it belongs to another user")
    if found.st_mode & OTHERS_WRITE:
        raise PermissionError(errno.EPERM, f"other users can write it (chmod go-w {path})")


def cache() -> Path | None:
    """The user's cache folder; None if the user has no home."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if Path(base).is_absolute():  # the XDG specification has others ignored
        return Path(base) / "dlprof"
    with contextlib.suppress(RuntimeError):  # no HOME, and no entry for the user
        if (home := Path.home()).is_absolute():
            return home / ".cache" / "dlprof"
    return None
