"""Files: what a name stands for, and files that are replaced only when they are whole.

Files that gzip or xz packed are read like others. A name that ends in ``.gz`` or ``.xz`` is packed.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import itertools
import lzma
import re
import secrets
import stat
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from dlprof.errors import UsageError

MOST_BYTES = 1 << 30
"""What is read of a packed file: a small one may unpack to more than the memory holds."""
UNPACKED: dict[bytes, Callable[[IO[bytes]], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"\xfd7zXZ\0": lzma.open,
}
"""By how a packed file begins: gzip and xz."""
BEGIN_CHARACTERS = 256
STDIN = Path("/dev/stdin")
OPEN = ("/dev/fd/", "/proc/self/fd/")
"""The folders of files that this process was given already open."""
KINDS = (
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
)


def version_fault(schema: object, known: str) -> str | None:
    """What to say of a file whose ``schema`` is of a newer major version than ``known``, such as
    ``dlprof.session/1``; empty if this dlprof reads it, None if it is no file of this kind.
    """
    kind, _, major = known.rpartition("/")
    found = re.fullmatch(re.escape(kind) + r"/(\d{1,9})(\.\d{1,9})?", str(schema))
    if found is None or int(found[1]) <= int(major):
        return None if found is None else ""
    return f"was written by a newer dlprof ({schema}); this one reads {known}"


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


@contextmanager
def opened_text(path: Path, content: bytes | None = None) -> Iterator[IO[str]]:
    """The text of a file, unpacked as it is read: it is never in memory as a whole.

    ``content`` is that of a file elsewhere. Raises OSError, and ValueError where it cannot be
    unpacked or is no UTF-8.
    """
    opened: Any = path.open("rb") if content is None else io.BufferedReader(io.BytesIO(content))
    with opened as file:
        begin = file.peek(len(max(UNPACKED, key=len)))
        unpacked = next((made for magic, made in UNPACKED.items() if begin.startswith(magic)), None)
        plain: Any = file if unpacked is None else _Unpacked(unpacked(file))
        with io.TextIOWrapper(plain, encoding="utf-8-sig", newline="") as text:
            yield text


class _Unpacked(io.BufferedIOBase):
    """What a packed file holds, up to :data:`MOST_BYTES`. Its errors are ValueError, in words."""

    def __init__(self, content: IO[bytes]) -> None:
        self._content, self._left = content, MOST_BYTES

    def readable(self) -> bool:
        return True

    def read1(self, size: int = -1, /) -> bytes:
        try:
            found = self._content.read(size)
        except EOFError:
            raise ValueError("its end is missing") from None
        except (zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
            raise ValueError(f"it cannot be unpacked: {error}") from None
        self._left -= len(found)
        if self._left < 0:
            raise ValueError(f"it unpacks to more than {MOST_BYTES >> 30} GiB")
        return found


def begins_as(path: Path, schema: str) -> bool:
    """Whether the file there begins as one of ``schema`` does, whatever its version.

    One that cannot be read does not.
    """
    kind = re.escape(schema.rpartition("/")[0])
    try:
        if not path.is_file():  # reading a pipe would wait, and take from it
            return False
        with opened_text(path) as text:
            begin = text.read(BEGIN_CHARACTERS)
    except (OSError, ValueError):
        return False
    return re.match(rf'\s*\{{\s*"schema"\s*:\s*"{kind}/', begin) is not None


def free_names(path: Path, is_taken: bool) -> Iterator[Path]:
    """``path``, if it is not taken, then ``a-2.json`` and so on beside it, as far as they are
    free.
    """
    if not is_taken:
        yield path
    name, dot, kinds = path.name[1:].partition(".")
    for number in itertools.count(2):
        free = path.with_name(f"{path.name[:1]}{name}-{number}{dot}{kinds}")
        if not free.exists():
            yield free


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
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
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
