"""A folder at any address that fsspec knows."""

from __future__ import annotations

import contextlib
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from dlprof.errors import StoreError, UsageError
from dlprof.runner import files
from dlprof.text.clean import clean

HIDDEN = "<hidden>"
AT_ONCE = 100
"""So many files are in memory."""
BUCKETS = frozenset(("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "oci", "oss"))
"""They have no folders: what is not there is the bucket, and a wrong name must not make one."""

_LINK = re.compile(r"::(?=[a-zA-Z][a-zA-Z0-9+.-]*://)")
"""Between the addresses of a chain, such as ``simplecache::s3://bucket/folder``."""


@dataclass(frozen=True, repr=False)
class Folder:
    """``shown`` is its address without login and query. All methods raise StoreError."""

    shown: str
    system: Any
    root: str
    has_secrets: bool = False
    what: str = "store"

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
            if "file" in self.protocols and (kind := files.endless(Path(path))):
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
    """Raise what goes wrong inside as :class:`StoreError`."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - drivers raise anything, and may print the address
        reason = str(getattr(error, "strerror", None) or ("" if has_secrets else error))
        told = clean((reason.strip().splitlines() or [""])[0], 300) or type(error).__name__
        where = f"{what}: {clean(name)}" if name else what
        raise StoreError(f"{where}: {told}") from None


def folder_at(address: str, what: str = "store") -> Folder:
    """The folder of an address; ``what`` is the word for it in messages.

    Raises :class:`UsageError` for none, :class:`StoreError` for one that cannot be opened.
    """
    import fsspec
    from fsspec.core import url_to_fs

    if not address.strip() or "\0" in address:
        raise UsageError(f"the address of the {what} is empty")
    shown = "::".join(map(_shown, _LINK.split(address)))
    start = f"cannot open the {what} {shown}"
    if "://" in address:
        with _in_words(start, "", has_secrets=False):  # these errors name the driver alone
            fsspec.get_filesystem_class(re.split("::|://", address)[0])
    with _in_words(start, "", shown != address):
        system, root = url_to_fs(address)
    return Folder(shown, system, root.rstrip("/") or root, shown != address, what)


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
