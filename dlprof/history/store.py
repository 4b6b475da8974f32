"""Add sessions to a history, and read it back. Nothing in it is ever replaced."""

from __future__ import annotations

import contextlib
import posixpath
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from dlprof.compare.matching import key
from dlprof.errors import HistoryError
from dlprof.history.address import Address
from dlprof.history.entry import MAJOR, NAME, SCHEMA, Entry, Foreign, Newer, decode, encode
from dlprof.session import files
from dlprof.session.files import NEW_MODE
from dlprof.text.clean import clean

DRIVERS = {
    "s3": "s3fs",
    "s3a": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "az": "adlfs",
    "abfs": "adlfs",
    "abfss": "adlfs",
    "http": "requests aiohttp",
    "https": "requests aiohttp",
    "sftp": "paramiko",
    "ssh": "paramiko",
    "smb": "smbprotocol",
    "hf": "huggingface_hub",
}
"""What to install for a protocol."""

OBJECT_STORES = frozenset(("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "hf", "oci", "oss"))
"""They have no folders: what is not there is the bucket, and a wrong name must not make one."""


@dataclass(frozen=True)
class Folder:
    """A place for files that fsspec reaches. All methods raise :class:`HistoryError` in words."""

    address: Address
    system: Any
    root: str

    def names(self) -> list[str] | None:
        """The files that are there; None if there is no such place."""
        with _in_words(self.address, "read"):
            try:
                self.system.invalidate_cache()
                if self.system.isfile(self.root):
                    raise OSError("it is a file, not a folder")
                return [
                    posixpath.basename(path) for path in self.system.ls(self.root, detail=False)
                ]
            except FileNotFoundError:
                return None

    def read(self, name: str) -> bytes:
        path = posixpath.join(self.root, name)
        with _in_words(self.address, "read", name):
            kind = files.special(Path(path)) if self.address.folder is not None else None
            if kind:  # reading may never end
                raise OSError(f"it is {kind}, not a regular file")
            return bytes(self.system.cat_file(path))

    def create(self, name: str, content: bytes) -> bool:
        """Add a file, whole or not at all; False if one of that name is there."""
        path = posixpath.join(self.root, name)
        with _in_words(self.address, "add to"):
            if self.system.exists(path):
                return False
            if self.address.protocols[-1] in OBJECT_STORES:
                return self._put(path, content)
            return self._write(path, content)

    def _put(self, path: str, content: bytes) -> bool:
        """An object store shows an object when it is whole."""
        try:
            self.system.pipe_file(path, content, mode="create")
        except FileExistsError:
            return False
        except (TypeError, NotImplementedError):  # a driver that has no such mode
            self.system.pipe_file(path, content)
        return True

    def _write(self, path: str, content: bytes) -> bool:
        """Elsewhere a file gets its name when it is whole.

        A transfer that breaks off leaves a part under a name that is never read.
        """
        self.system.makedirs(self.root, exist_ok=True)
        partial = posixpath.join(self.root, f".{posixpath.basename(path)}.{uuid4().hex}.partial")
        try:
            self.system.pipe_file(partial, content)
            if self.address.folder is not None:
                return _name(Path(partial), Path(path))
            self.system.mv(partial, path)
            return True
        finally:
            with contextlib.suppress(Exception):  # it is gone, or so is the connection
                self.system.rm_file(partial)


def _name(partial: Path, path: Path) -> bool:
    """Give a whole file its name in one step; False if the name is taken."""
    partial.chmod(NEW_MODE)
    try:
        path.hardlink_to(partial)
    except FileExistsError:
        return False
    except OSError:  # a file system without hard links: the content is that of the name
        partial.rename(path)
    return True


def folder_at(address: Address) -> Folder:
    """The place of an address. Raises :class:`HistoryError` for one that cannot be opened."""
    import fsspec
    from fsspec.core import url_to_fs

    if address.folder is not None:
        return Folder(address, fsspec.filesystem("file"), str(address.folder.absolute()))
    start = f"cannot open the history {address.shown}"
    for protocol in address.protocols:
        try:
            fsspec.get_filesystem_class(protocol)
        except ImportError as error:
            driver = DRIVERS.get(protocol)
            how = (
                f"python -m pip install {driver}" if driver else address.without_secrets(str(error))
            )
            raise HistoryError(f"{start}: {protocol} needs a driver: {how}") from None
        except ValueError:
            raise HistoryError(f"{start}: fsspec knows no protocol {protocol!r}") from None
    with _in_words(address, "open"):
        system, root = url_to_fs(address.text)
        return Folder(address, system, root.rstrip("/") or root)


@contextlib.contextmanager
def _in_words(address: Address, verb: str, name: str = "") -> Iterator[None]:
    """Raise what goes wrong inside as :class:`HistoryError`."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - drivers raise anything, and may print the address
        what = f"{address.shown}: {name}" if name else address.shown
        words = getattr(error, "strerror", None) or str(error) or type(error).__name__
        reason = address.without_secrets(str(words))
        raise HistoryError(f"cannot {verb} the history {what}: {reason}") from None


@dataclass(frozen=True)
class History:
    """Sessions in order of time.

    ``ignored`` are files that are none, and why. ``left_out`` counts older sessions that were not
    asked for.
    """

    entries: tuple[Entry, ...]
    ignored: tuple[tuple[str, str], ...] = ()
    left_out: int = 0


@dataclass(frozen=True)
class Added:
    """``new`` is false if the measurement was there, ``first`` if anything was."""

    entry: Entry
    new: bool
    first: bool


def add(folder: Folder, entries: Sequence[Entry]) -> list[Added]:
    """Add entries; those that are there stay as they are.

    Raises :class:`HistoryError`, also if the file of an entry is there and damaged.
    """
    names = _names(folder) or []
    known = {match[3]: match[0] for match in map(NAME.fullmatch, names) if match}
    done: list[Added] = []
    for entry in entries:
        if entry.id in known:
            _check_whole(folder, known[entry.id])
            done.append(Added(entry, False, False))
            continue
        known[entry.id] = entry.name
        new = folder.create(entry.name, encode(entry))
        done.append(Added(entry, new, new and not names and not done))
    return done


def _check_whole(folder: Folder, name: str) -> None:
    try:
        decode(folder.read(name))
    except Newer as error:
        raise _newer(folder, name, str(error)) from None
    except Foreign as error:
        raise HistoryError(
            f"the history {folder.address.shown} has this measurement in {clean(name)}, and "
            f"{error}: take that file away and add the session again"
        ) from None


def read(folder: Folder, last: int | None = None) -> History:
    """All sessions, or the ``last`` ones that can be read.

    One that was added before and after ``--resume`` counts once. Raises :class:`HistoryError` for
    no history, for one of which no file can be read, and for one that a newer major version writes:
    a trend that ends where it began is worse than none.
    """
    names = _names(folder)
    if names is None:
        raise HistoryError(f"there is no history at {folder.address.shown}")
    found: list[Entry] = []
    ignored: list[tuple[str, str]] = []
    unread: list[HistoryError] = []
    looked_at, at = 0, ""
    for name in sorted(names, key=_newest_first, reverse=True):
        time = _newest_first(name)[0]
        # A session and the same one, finished later, are of one time.
        if last is not None and time not in ("~", at) and len(_once(found)) >= last:
            break
        looked_at, at = looked_at + 1, time
        try:
            found.append(decode(folder.read(name)))
        except Newer as error:
            raise _newer(folder, name, str(error)) from None
        except HistoryError as error:
            unread.append(error)
            ignored.append((clean(name), str(error)))
        except Foreign as error:
            ignored.append((clean(name), str(error)))
    if not found and len(unread) == len(ignored) > 0:
        raise unread[0]
    entries = sorted(_once(found), key=lambda entry: (entry.created, entry.id))
    kept = entries if last is None else entries[-last:]
    return History(tuple(kept), tuple(sorted(ignored)), len(names) - looked_at)


def _newest_first(name: str) -> tuple[str, str]:
    """Files under other names may be of any time, and come first."""
    match = NAME.fullmatch(name)
    return (match[2], match[3]) if match else ("~", name)


def _names(folder: Folder) -> list[str] | None:
    """The Parquet files of a folder; None if there is no such place."""
    found = folder.names()
    if found is None:
        return None
    names = sorted(name for name in found if name.endswith(".parquet") and name[0] != ".")
    for name in names:
        match = NAME.fullmatch(name)
        if match and int(match[1]) > MAJOR:
            raise _newer(folder, name, f"a newer dlprof wrote it; this one knows {SCHEMA}")
    return names


def _newer(folder: Folder, name: str, why: str) -> HistoryError:
    return HistoryError(f"cannot use the history {folder.address.shown}: {clean(name)}: {why}")


def _once(entries: Iterable[Entry]) -> list[Entry]:
    """A session that was added before and after ``--resume`` counts once, as far as it got.

    It began at the same time, and holds all processes that it held before.
    """
    kept: dict[datetime, list[tuple[Entry, frozenset[object]]]] = {}
    for entry in sorted(entries, key=_progress, reverse=True):
        own, others = _processes(entry), kept.setdefault(entry.created, [])
        if not (own and any(own <= processes for _, processes in others)):
            others.append((entry, own))
    return [entry for others in kept.values() for entry, _ in others]


def _progress(entry: Entry) -> tuple[int, bool]:
    return len(_processes(entry)), entry.session.complete


def _processes(entry: Entry) -> frozenset[object]:
    return frozenset(
        (key(result.case), process.round, *process.samples_ns)
        for result in entry.session.results
        for process in (result.host_time.processes if result.host_time else ())
    )
