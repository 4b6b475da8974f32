"""Files that are replaced only when they are whole."""

from __future__ import annotations

import io
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from dlprof.errors import UsageError
from dlprof.session import files

NEW_MODE = 0o644


@contextmanager
def atomic(path: Path) -> Iterator[IO[str]]:
    """A text file that replaces ``path`` only when it is whole.

    A link stays a link; a device or a pipe is written to and never replaced. Raises
    :class:`UsageError` where the file cannot be written.
    """
    with atomic_bytes(path) as file, io.TextIOWrapper(file, encoding="utf-8") as text:
        yield text


@contextmanager
def atomic_bytes(path: Path) -> Iterator[IO[bytes]]:
    """As :func:`atomic`, for what is not text."""
    try:
        with _stream(path) if files.special(path) else _replacing(path.resolve()) as file:
            yield file
    except (OSError, RuntimeError) as error:
        raise UsageError(f"cannot write {path}: {_cause(error)}") from None


def check_writable(path: Path) -> None:
    """Raises :class:`UsageError` where :func:`atomic` would."""
    if files.special(path):
        return
    if path.is_dir():
        raise UsageError(f"cannot write {path}: Is a directory")
    try:
        tempfile.TemporaryFile(dir=path.resolve().parent).close()
    except (OSError, RuntimeError) as error:  # a loop of links is a RuntimeError
        raise UsageError(f"cannot write {path}: {_cause(error)}") from None


def _stream(path: Path) -> IO[bytes]:
    return path.open("wb")


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".partial")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        temporary.chmod(stat.S_IMODE(path.stat().st_mode) if path.exists() else NEW_MODE)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _cause(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
