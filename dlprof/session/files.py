"""Files: what a name stands for, and files that are replaced only when they are whole.

Files that gzip or xz packed are read like others. A name that ends in ``.gz`` or ``.xz`` is packed.
"""

from __future__ import annotations

import gzip
import io
import lzma
import os
import stat
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

from dlprof.errors import UsageError

NEW_MODE = 0o644
MOST_BYTES = 1 << 30
"""What is read of a packed file: a small one may unpack to more than the memory holds."""
PACKED_BEGIN_BYTES = 1 << 12
UNPACKERS: dict[bytes, Callable[[], Any]] = {
    b"\x1f\x8b": partial(zlib.decompressobj, wbits=31),
    b"\xfd7zXZ\0": partial(lzma.LZMADecompressor, memlimit=MOST_BYTES),
}
"""By how a packed file begins: gzip and xz."""
STDIN = Path("/dev/stdin")
OPEN = ("/dev/fd/", "/proc/self/fd/")
"""The folders of files that this process was given already open."""
KINDS = (
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
)


def at_home(path: Path) -> Path:
    """The path with ``~`` as the user's home; unchanged if there is no such user."""
    try:
        return path.expanduser()
    except RuntimeError:
        return path


@contextmanager
def temporary_folder(what: str) -> Iterator[str]:
    """A temporary folder, in which ``what`` is done. Raises :class:`UsageError`."""
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
    program that writes it. A pipe that is opened by its name may wait forever.
    """
    given = path == STDIN or str(path).startswith(OPEN)
    found = special(path)
    return "" if given and found != "a device" else found


def read(path: Path) -> bytes:
    """The file, unpacked. Raises OSError, and ValueError where it cannot be unpacked."""
    content = path.read_bytes()
    unpacker = _unpacker(content)
    if unpacker is None:
        return content
    found = _unpacked(unpacker, content, MOST_BYTES)
    if not unpacker.eof:
        more = len(found) == MOST_BYTES
        raise ValueError(
            f"it unpacks to more than {MOST_BYTES >> 30} GiB" if more else "its end is missing"
        )
    return found


def beginning(path: Path, size_bytes: int) -> bytes:
    """The first bytes of a file, unpacked. Raises as :func:`read` does."""
    with path.open("rb") as file:
        content = file.read(PACKED_BEGIN_BYTES)
    unpacker = _unpacker(content)
    found = content if unpacker is None else _unpacked(unpacker, content, size_bytes)
    return found[:size_bytes]


def _unpacker(content: bytes) -> Any:
    """What unpacks a file that begins so; None where it is not packed."""
    return next((make() for magic, make in UNPACKERS.items() if content.startswith(magic)), None)


def _unpacked(unpacker: Any, content: bytes, most_bytes: int) -> bytes:
    try:
        return bytes(unpacker.decompress(content, most_bytes))
    except (zlib.error, lzma.LZMAError) as error:
        raise ValueError(f"it cannot be unpacked: {error}") from None


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
        with path.open("wb") if special(path) else _replacing(path.resolve()) as file:
            packed = _packer(path, file)
            yield packed or file
            if packed is not None:
                packed.close()
    except (OSError, RuntimeError) as error:
        raise UsageError(f"cannot write {path}: {_cause(error)}") from None


def _packer(path: Path, file: IO[bytes]) -> Any:
    """What packs a file of that name; None where it is not packed."""
    if path.suffix == ".gz":  # without the time of day: the same content gives the same file
        return gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0)
    return lzma.open(file, "wb") if path.suffix == ".xz" else None


def check_writable(path: Path) -> None:
    """Raises :class:`UsageError` where :func:`atomic` would."""
    if special(path):
        return
    if path.is_dir():
        raise UsageError(f"cannot write {path}: Is a directory")
    try:
        tempfile.TemporaryFile(dir=path.resolve().parent).close()
    except (OSError, RuntimeError) as error:  # a loop of links is a RuntimeError
        raise UsageError(f"cannot write {path}: {_cause(error)}") from None


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
