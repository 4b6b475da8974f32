"""Which session files did this user's dlprof write on this machine?

A session file is input from anybody, and a reproducer is made of its text. So dlprof remembers the
digest of every session it has written, in the user's state folder; what is run without being asked
for comes from one of these, to the byte.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

NAME = "written"
MOST = 2000
"""Digests that are kept, the newest last."""


def remember(path: Path, folder: Path) -> None:
    """Note that ``path`` was written here. Nothing happens where the note cannot be kept."""
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        digests = [*_known(folder), digest(path)][-MOST:]
        temporary = folder / f".{NAME}.{os.getpid()}"
        temporary.write_text("\n".join(dict.fromkeys(digests)) + "\n", encoding="ascii")
        temporary.replace(folder / NAME)


def is_ours(path: Path, folder: Path) -> bool:
    """Whether this user's dlprof wrote exactly this file."""
    try:
        return digest(path) in _known(folder)
    except OSError:
        return False


def digest(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            found.update(chunk)
    return found.hexdigest()


def _known(folder: Path) -> list[str]:
    try:
        return (folder / NAME).read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return []
