"""The journal: every answer on disk as it comes, so that nothing measured is ever lost.

It is a file beside the session: one line of JSON per answer, after a line that says what is
measured and where. It makes a stopped or killed run resumable, and is deleted when the session is
complete. In memory are only the places of its lines, so memory does not grow with the run.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from dlprof.errors import Unsaved, UsageError
from dlprof.runner import state
from dlprof.runner.machine import Meter
from dlprof.text import json_text

VERSION = "dlprof.journal/1"
INTERRUPTED = "interrupted"
"""The status of an answer if the user stopped the run before its end. No result has it."""

Subject = int
"""The number of a case."""

SPENT_EVERY_S = 0.1
"""A survey has more answers than the processor time of the machine needs to be read."""


class InUse(UsageError):
    """Another run writes the journal."""


class Entry(NamedTuple):
    """The place of an answer, and what the runner must know of it without reading it."""

    offset: int
    size: int
    round: int
    status: str

    @property
    def settled(self) -> bool:
        """Whether the case was refused, crashed or hung."""
        return self.status not in ("ok", INTERRUPTED)


class Journal:
    """An append-only file of answers: ``path``, or without one a temporary file.

    ``header`` says what is measured. A file that is there already keeps its content until the
    first answer. Raises :class:`UsageError` if the file cannot be written, and :class:`InUse` if
    another run writes it.
    """

    def __init__(self, path: Path | None = None, header: Mapping[str, Any] | None = None) -> None:
        self.path = path
        self.header: Mapping[str, Any] = {} if header is None else {"journal": VERSION, **header}
        self.meter = Meter()
        self._spent: tuple[float, float | None] = (0.0, 0.0)
        self._spent_at = -math.inf
        self.has_grown = False
        """Whether answers came since it was opened."""
        self._entries: dict[Subject, list[Entry]] = {}
        self._file = _opened(path)
        self._is_foreign = self._file.seek(0, os.SEEK_END) > 0
        """Whether the file still holds the answers of an earlier run."""
        if self.header and path is not None:
            self.header = {**self.header, "mark": state.mark(self.header)}
        if self.header and not self._is_foreign:
            self._append(self.header)

    @classmethod
    def resume(cls, path: Path, into: Path | None = None) -> Journal:
        """The journal of a run that was stopped or killed; continued in a copy, ``into``.

        A torn last line is dropped. Raises :class:`UsageError` for a file that is no journal.
        """
        if into is not None and into != path:
            try:
                shutil.copyfile(path, into)
            except OSError as error:
                raise UsageError(f"cannot write {into}: {error.strerror}") from None
        journal = cls(into or path)
        try:
            journal._read()
        except UsageError:
            journal._file.close()
            raise
        return journal

    def add(self, of: Subject, round_: int, answer: dict[str, Any]) -> None:
        """Append the answer of one round; ``answer`` has at least a status.

        Raises :class:`Unsaved` if the disk is full.
        """
        if self._is_foreign:
            self._file.truncate(0)
            self._append(self.header)
            self._is_foreign = False
        if time.monotonic() > self._spent_at + SPENT_EVERY_S:
            self._spent, self._spent_at = self.meter.read(), time.monotonic()
        line = {"of": of, "round": round_, "spent": self._spent, "answer": answer}
        offset, size = self._append(line)
        self._entries.setdefault(of, []).append(Entry(offset, size, round_, answer["status"]))
        self.has_grown = True

    def answers(self, of: Subject) -> list[tuple[int, dict[str, Any]]]:
        """Round and answer of everything that was measured of a case, in order.

        Their text is harmless: the file may be another's.
        """
        found = []
        for entry in self._entries.get(of, ()):
            self._file.seek(entry.offset)
            line = json_text.loads(self._file.read(entry.size).decode())
            found.append((entry.round, line["answer"]))
        return found

    @property
    def is_empty(self) -> bool:
        return not self._entries

    def settled(self, of: Subject) -> bool:
        """Whether a case was refused, crashed or hung: no round of it is measured any more."""
        return any(entry.settled for entry in self._entries.get(of, ()))

    def needs(self, of: Subject, round_: int) -> bool:
        """Whether a round of a case is still to be measured; an interrupted one is."""
        return not any(
            entry.settled or (entry.round == round_ and entry.status != INTERRUPTED)
            for entry in self._entries.get(of, ())
        )

    def close(self) -> None:
        self._file.close()

    def delete(self) -> None:
        """Delete the file: the session is complete, or nothing was measured."""
        if self.path is not None and not self._is_foreign:
            with contextlib.suppress(OSError):
                self.path.unlink()

    def _append(self, line: Mapping[str, Any]) -> tuple[int, int]:
        data = json.dumps(line).encode() + b"\n"
        offset = self._file.seek(0, os.SEEK_END)
        try:
            written = 0
            while written < len(data):
                written += self._file.write(data[written:])
        except OSError as error:
            with contextlib.suppress(OSError):
                self._file.truncate(offset)
            where = self.path or tempfile.gettempdir()
            raise Unsaved(f"cannot keep what is measured in {where}: {error.strerror}") from None
        return offset, len(data)

    def _read(self) -> None:
        end, torn = 0, False
        for number, line in enumerate(self._lines()):
            if torn:
                raise UsageError(f"{self.path} is damaged in line {number}")
            try:
                content = json.loads(line if line.endswith(b"\n") else b"")
                if number == 0:
                    self.header = content
                else:
                    of = content["of"]
                    entry = Entry(end, len(line), content["round"], content["answer"]["status"])
                    self.meter = Meter(*content["spent"])
                    self._entries.setdefault(of, []).append(entry)
                end += len(line)
            except (LookupError, TypeError, ValueError, RecursionError):
                torn = True  # if it is the last line, the run was killed while it wrote it
        if not isinstance(self.header, dict) or self.header.get("journal") != VERSION:
            raise UsageError(f"{self.path} is not a journal of this dlprof")
        self._file.truncate(end)
        self._is_foreign = False

    def _lines(self) -> Iterator[bytes]:
        with open(self._file.fileno(), "rb", closefd=False) as file:
            file.seek(0)
            yield from file


def _opened(path: Path | None) -> BinaryIO:
    """The file, without a buffer: data that a full disk refused must not block later data."""
    try:
        if path is None:
            return tempfile.TemporaryFile(prefix="dlprof-", buffering=0)
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b", buffering=0)
    except OSError as error:
        where = path or tempfile.gettempdir()
        raise UsageError(f"cannot keep what is measured in {where}: {error.strerror}") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise InUse(f"another run writes {path}: wait for it, or name a file with -o") from None
    except OSError:
        return file  # a file system without locks
    if path.exists() and path.stat().st_ino == os.fstat(file.fileno()).st_ino:
        return file
    file.close()  # another run ended and deleted it between the two calls
    return _opened(path)
