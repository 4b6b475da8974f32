"""A place for files that fsspec reaches, and a history in one: sessions are never replaced."""

from __future__ import annotations

import contextlib
import os
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from dlprof.errors import HistoryError, UsageError
from dlprof.history.entry import MAJOR, NAME, SCHEMA, Entry, Foreign, decode, encode
from dlprof.runner import files
from dlprof.text.clean import clean

VARIABLE = "DLPROF_HISTORY"
HIDDEN = "<hidden>"
AT_ONCE = 100
"""So many files are in memory."""
BUCKETS = frozenset(("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "oci", "oss"))
"""They have no folders: what is not there is the bucket, and a wrong name must not make one."""

_LINK = re.compile(r"::(?=[a-zA-Z][a-zA-Z0-9+.-]*://)")
"""Between the addresses of a chain, such as ``simplecache::s3://bucket/folder``."""


@dataclass(frozen=True, repr=False)
class Folder:
    """``shown`` is its address without login and query. All methods raise HistoryError."""

    shown: str
    system: Any
    root: str
    has_secrets: bool = False
    what: str = "history"

    @property
    def protocols(self) -> tuple[str, ...]:
        found = self.system.protocol
        return (found,) if isinstance(found, str) else tuple(found)

    def names(self) -> list[str] | None:
        """The files that are there; None if there is no such place."""
        with self._in_words("read"):
            self.system.invalidate_cache()
            try:
                if self.system.isfile(self.root):
                    raise OSError("it is a file, not a folder")
                return [posixpath.basename(path) for path in self.system.ls(self.root, False)]
            except FileNotFoundError:
                return None

    def read(self, name: str) -> bytes:
        path = posixpath.join(self.root, name)
        with self._in_words("read", name):
            if "file" in self.protocols and (kind := files.special(Path(path))):
                raise OSError(f"it is {kind}, not a regular file")  # reading may never end
            return bytes(self.system.cat_file(path))

    def read_all(self, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Files with their names, some at once; those that cannot be read are left out."""
        left = iter(names)
        while some := [*islice(left, AT_ONCE)]:
            with self._in_words("read"):
                paths = {posixpath.join(self.root, name): name for name in some}
                found = self.system.cat([*paths], on_error="omit")
                if isinstance(found, bytes):  # what some file systems give for one path
                    found = dict.fromkeys(paths, found)
            for path, content in found.items():
                yield posixpath.basename(path), content

    def ends(self, names: Collection[str], size_bytes: int) -> dict[str, bytes]:
        """The last bytes of files; those that cannot be read are left out."""
        paths = [posixpath.join(self.root, name) for name in names]
        with self._in_words("read"):
            starts, ends = [-size_bytes] * len(paths), [None] * len(paths)
            found = self.system.cat_ranges(paths, starts, ends, on_error="return") if paths else []
        read = zip(names, found, strict=True)
        return {name: end for name, end in read if isinstance(end, bytes)}

    def create(self, name: str, content: bytes) -> bool:
        """Add a file, whole or not at all; False if one of that name is there."""
        with self._in_words("add to"):
            if self.system.exists(posixpath.join(self.root, name)):
                return False
        self.replace(name, content)
        return True

    def replace(self, name: str, content: bytes) -> None:
        """Write a file, whole or not at all, in the place of one that may be there."""
        path = posixpath.join(self.root, name)
        with self._in_words("add to"):
            if not BUCKETS.isdisjoint(self.protocols):
                self.system.pipe_file(path, content)  # an object is whole or not there
                return
            self.system.makedirs(self.root, exist_ok=True)
            if "file" in self.protocols:
                with files.atomic_bytes(Path(path)) as local:
                    local.write(content)
            else:
                with self.system.transaction, self.system.open(path, "wb") as remote:
                    remote.write(content)

    def remove(self, name: str) -> None:
        with self._in_words("remove a file of"), contextlib.suppress(FileNotFoundError):
            self.system.rm_file(posixpath.join(self.root, name))

    @contextlib.contextmanager
    def _in_words(self, verb: str, name: str = "") -> Iterator[None]:
        with _in_words(f"cannot {verb} the {self.what} {self.shown}", name, self.has_secrets):
            yield


@contextlib.contextmanager
def _in_words(what: str, name: str, has_secrets: bool) -> Iterator[None]:
    """Raise what goes wrong inside as :class:`HistoryError`."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - drivers raise anything, and may print the address
        reason = str(getattr(error, "strerror", None) or ("" if has_secrets else error))
        told = clean((reason.strip().splitlines() or [""])[0], 300) or type(error).__name__
        where = f"{what}: {clean(name)}" if name else what
        raise HistoryError(f"{where}: {told}") from None


def folder_at(address: str | None, option: str, what: str = "history") -> Folder:
    """The place of an address, else of :data:`VARIABLE`; ``option`` names what gives one.

    ``what`` is the word for it in messages.

    Raises :class:`UsageError` for none, :class:`HistoryError` for one that cannot be opened.
    """
    import fsspec
    from fsspec.core import url_to_fs

    text = os.environ.get(VARIABLE, "") if address is None else address
    if not text.strip() or "\0" in text:
        raise UsageError(f"no history is named: add {option}, or set {VARIABLE}")
    shown = "::".join(map(_shown, _LINK.split(text)))
    start = f"cannot open the {what} {shown}"
    if "://" in text:
        with _in_words(start, "", has_secrets=False):  # these errors name the driver alone
            fsspec.get_filesystem_class(re.split("::|://", text)[0])
    with _in_words(start, "", shown != text):
        system, root = url_to_fs(text)
    return Folder(shown, system, root.rstrip("/") or root, shown != text, what)


def _shown(link: str) -> str:
    """One address of a chain; nothing of it if login and query cannot be told apart."""
    protocol, mark, rest = link.partition("://")
    if not mark:
        return link
    place, query, asked = rest.partition("?")
    if "@" in asked:
        return f"{protocol}://{HIDDEN}"
    _, at, place = place.rpartition("@")
    return f"{protocol}://{HIDDEN + '@' if at else ''}{place}{'?' + HIDDEN if query else ''}"


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
            try:
                decode(folder.read(known[entry.id]))
            except Foreign as error:
                raise HistoryError(
                    f"the history {folder.shown} has this measurement in {known[entry.id]}, and "
                    f"{error}: take that file away and add the session again"
                ) from None
            done.append(Added(entry, False, False))
            continue
        known[entry.id] = entry.name
        new = folder.create(entry.name, encode(entry))
        done.append(Added(entry, new, new and not names and not done))
    return done


def read(folder: Folder, last: int | None = None) -> History:
    """All sessions, or the ``last`` ones.

    Raises :class:`HistoryError` for no history, for one of which no file can be read, and for one
    that a newer major version writes: a trend that ends where it began is worse than none.
    """
    names = _names(folder)
    if names is None:
        raise HistoryError(f"there is no history at {folder.shown}")
    found: list[Entry] = []
    ignored: list[tuple[str, str]] = []
    kept = names
    if last is not None:
        # A session and the same one, finished later, are of one time.
        newest = sorted({match[2] for match in map(NAME.fullmatch, names) if match})[-last:]
        kept = [name for name in names if not (m := NAME.fullmatch(name)) or m[2] in newest]
    for name in kept:
        try:
            found.append(decode(folder.read(name)))
        except (Foreign, HistoryError) as error:
            ignored.append((clean(name), str(error)))
    if ignored and not found:
        raise HistoryError(f"no file of the history {folder.shown} can be read: {ignored[0][1]}")
    return History(tuple(_once(found)), tuple(ignored), len(names) - len(kept))


def _names(folder: Folder) -> list[str] | None:
    """The Parquet files of a folder in order of time; None if there is no such place."""
    found = folder.names()
    if found is None:
        return None
    names = sorted(name for name in found if name.endswith(".parquet") and name[0] != ".")
    for name in names:
        match = NAME.fullmatch(name)
        if match and int(match[1]) > MAJOR:
            raise HistoryError(
                f"cannot use the history {folder.shown}: a newer dlprof wrote {name}; this one "
                f"knows {SCHEMA}"
            )
    return names


def _once(entries: Iterable[Entry]) -> list[Entry]:
    """A session that was added before and after ``--resume`` counts once, as far as it got."""
    kept: dict[object, Entry] = {}
    for entry in sorted(entries, key=_progress):
        kept[entry.created, entry.session.seed, entry.session.environment.model_dump_json()] = entry
    return sorted(kept.values(), key=lambda entry: (entry.created, entry.id))


def _progress(entry: Entry) -> tuple[int, bool]:
    results = entry.session.results
    processes = sum(len(one.host_time.processes) for one in results if one.host_time)
    return processes, entry.session.complete
