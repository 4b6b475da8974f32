"""The files of a history: list, read, and add one whole or not at all. Nothing is ever replaced."""

from __future__ import annotations

import os
import posixpath
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from dlprof.errors import HistoryError
from dlprof.history.address import Address
from dlprof.session import files
from dlprof.session.replaced import NEW_MODE

SUFFIX = ".parquet"
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
    "oci": "ocifs",
    "oss": "ossfs",
    "webdav": "webdav4",
    "webhdfs": "requests",
}
"""What to install for a protocol."""

OBJECT_STORES = frozenset(("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "hf", "oci", "oss"))
"""They have no folders: what is not there is the bucket, and a wrong name must not make one."""


class Folder(Protocol):
    """A place for files. All methods raise :class:`HistoryError` in words."""

    @property
    def address(self) -> Address: ...

    def names(self) -> list[str] | None:
        """The Parquet files that are there, sorted; None where there is no such place."""

    def read(self, name: str) -> bytes: ...

    def create(self, name: str, content: bytes) -> bool:
        """Add a file; False where one of that name is there."""


def folder_at(address: Address) -> Folder:
    """The place of an address. Raises :class:`HistoryError` for one that cannot be opened."""
    if address.folder is not None:
        return LocalFolder(address, address.folder)
    return _remote(address)


@dataclass(frozen=True)
class LocalFolder:
    address: Address
    path: Path

    def names(self) -> list[str] | None:
        if not self.path.exists() and not self.path.is_symlink():
            return None
        with _in_words(self.address, "read"):
            return sorted(entry.name for entry in self.path.iterdir() if _is_ours(entry.name))

    def read(self, name: str) -> bytes:
        with _in_words(self.address, "read", name):
            path = self.path / name
            kind = files.special(path)
            if kind:  # which may never end, nor even be opened
                raise OSError(f"it is {kind}, not a regular file")
            return path.read_bytes()

    def create(self, name: str, content: bytes) -> bool:
        with _in_words(self.address, "add to"):
            self.path.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=self.path, prefix=".", suffix=".partial")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                Path(temporary).chmod(NEW_MODE)
                return _named(Path(temporary), self.path / name)
            finally:
                Path(temporary).unlink(missing_ok=True)


def _named(temporary: Path, path: Path) -> bool:
    """Give a whole file its name, unless the name is taken: in one step, whoever else does it."""
    try:
        path.hardlink_to(temporary)
    except FileExistsError:
        return False
    except OSError:  # a file system without hard links: the content is that of the name
        if path.exists():
            return False
        temporary.rename(path)
    return True


@dataclass(frozen=True)
class RemoteFolder:
    """A place that fsspec reaches. An object store shows an object when it is whole; elsewhere a
    file gets its name when it is.
    """

    address: Address
    system: Any
    root: str

    def names(self) -> list[str] | None:
        with _in_words(self.address, "read"):
            try:
                self.system.invalidate_cache()
                found = self.system.ls(self.root, detail=False)
            except FileNotFoundError:
                return None
        return sorted(name for name in map(posixpath.basename, found) if _is_ours(name))

    def read(self, name: str) -> bytes:
        with _in_words(self.address, "read", name):
            return bytes(self.system.cat_file(posixpath.join(self.root, name)))

    def create(self, name: str, content: bytes) -> bool:
        path = posixpath.join(self.root, name)
        with _in_words(self.address, "add to"):
            if self.system.exists(path):
                return False
            try:
                self._put(path, content)
            except FileExistsError:
                return False
        return True

    def _put(self, path: str, content: bytes) -> None:
        if self.address.protocol not in OBJECT_STORES:
            self._write(path, content)
            return
        try:
            self.system.pipe_file(path, content, mode="create")
        except (TypeError, NotImplementedError):  # a driver that knows no such mode
            self.system.pipe_file(path, content)

    def _write(self, path: str, content: bytes) -> None:
        """A transfer that breaks off leaves a part under a name that nobody reads."""
        self.system.makedirs(self.root, exist_ok=True)
        partial = posixpath.join(self.root, f".{posixpath.basename(path)}.{uuid4().hex}.partial")
        try:
            self.system.pipe_file(partial, content)
            self.system.mv(partial, path)
        finally:
            with suppress(Exception):  # it is gone, or so is the connection
                self.system.rm_file(partial)


def _remote(address: Address) -> RemoteFolder:
    import fsspec
    from fsspec.core import url_to_fs

    for protocol in address.protocols:
        try:
            fsspec.get_filesystem_class(protocol)
        except ImportError as error:
            raise HistoryError(_driver(address, protocol, error)) from None
        except ValueError:
            known = "fsspec knows no protocol"
            raise HistoryError(
                f"cannot open the history {address.shown}: {known} {protocol!r}"
            ) from None
    with _in_words(address, "open"):
        system, root = url_to_fs(address.text)
        return RemoteFolder(address, system, root.rstrip("/") or root)


def _driver(address: Address, protocol: str, error: ImportError) -> str:
    start = f"cannot open the history {address.shown}: "
    if protocol in DRIVERS:
        return f"{start}{protocol} needs a driver: python -m pip install {DRIVERS[protocol]}"
    return f"{start}{protocol} needs a driver: {address.told(str(error))}"


def _is_ours(name: str) -> bool:
    return name.endswith(SUFFIX) and not name.startswith(".")


@contextmanager
def _in_words(address: Address, verb: str, name: str = "") -> Iterator[None]:
    """Raise what goes wrong inside as :class:`HistoryError`."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - drivers raise anything, and may print the address
        what = f"{address.shown}: {name}" if name else address.shown
        words = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise HistoryError(
            f"cannot {verb} the history {what}: {address.told(str(words))}"
        ) from None
