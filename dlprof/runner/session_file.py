"""The session file: JSON Lines, appended as the run goes on.

The first line is the header with the request and the environment. Each further line is a worker's
answer to a case in a round, or the end of a sitting. Results are merged when the file is read.
"""

from __future__ import annotations

import contextlib
import fcntl
import lzma
import os
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import ValidationError

from dlprof.errors import SessionError, Unsaved, UsageError
from dlprof.runner import files
from dlprof.runner.merge import merge
from dlprof.runner.session import SCHEMA, Environment, Header, Session, on_one_machine
from dlprof.text import json_text

SAME = (
    *("dlprof", "python", "implementation", "platform", "machine", "cpu", "cores", "packages"),
    "variables",
)
"""Facts that all rounds of a result share."""

XZ = b"\xfd7zXZ\0"
"""The first bytes of a session that was saved from an HTML report."""
MOST_BYTES = 1 << 30
"""The limit when it is unpacked."""

WorkerAnswer = dict[str, Any]
Answers = Mapping[int, list[tuple[int, WorkerAnswer]]]
"""The rounds and answers of each case, by the number of the case."""
ANSWER = b'{"of": '
"""The begin of the line of an answer."""


class SessionFile:
    """The answers of a run, in memory and in the file ``path``.

    A file that holds answers of the same run is continued: a torn last line is dropped. Raises
    :class:`UsageError` if the file cannot be written, holds anything else, or is being written by
    another run.
    """

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        self.path = path
        self.header = json_text.loads(json_text.dump(header))
        self.end: dict[str, Any] = {}
        """The end of the last sitting."""
        self._answers: defaultdict[int, list[tuple[int, WorkerAnswer]]] = defaultdict(list)
        self._file = _opened(path)
        try:
            self._continue(self._file)
        except BaseException:
            self._file.close()
            raise

    @property
    def is_empty(self) -> bool:
        return not self._answers

    @property
    def is_complete(self) -> bool:
        """Whether the whole request is measured."""
        return self.end.get("complete") is True

    def add(self, number: int, round_: int, answer: WorkerAnswer) -> None:
        """Append the answer of one round. Raises :class:`Unsaved` if the disk is full."""
        line = json_text.dump({"of": number, "round": round_, "answer": answer})
        self._append(line)
        self._answers[number].append((round_, json_text.loads(line)["answer"]))

    def finish(self, end: Mapping[str, Any]) -> None:
        """Append the end of the sitting. Raises :class:`Unsaved` if the disk is full."""
        self.end = dict(end)
        if self._answers:
            # Ctrl-C may come between a line in the file and its answer in memory.
            lines = self.path.read_bytes().splitlines()
            count = sum(line.startswith(ANSWER) for line in lines)
            self._append(json_text.dump({"end": {**end, "answers": count}}))

    def answers(self, number: int) -> list[tuple[int, WorkerAnswer]]:
        """Return each answer to a case with its round, in order."""
        return self._answers.get(number, [])

    def settled(self, number: int) -> bool:
        """Whether a case was refused, crashed or hung, so that no further round measures it."""
        return any(_is_settled(answer) for _, answer in self.answers(number))

    def needs(self, number: int, round_: int) -> bool:
        """Whether a round of a case is still to be measured."""
        return not any(
            answer_round == round_ or _is_settled(answer)
            for answer_round, answer in self.answers(number)
        )

    def session(self, end: Mapping[str, Any]) -> Session:
        """Return the session measured so far."""
        return _merged(self.header, self._answers, end)

    def close(self) -> None:
        """Close the file, and delete it if nothing was measured."""
        if self._file.closed:
            return
        if self.is_empty:
            with contextlib.suppress(OSError):
                self.path.unlink()
        self._file.close()

    def _continue(self, file: BinaryIO) -> None:
        if os.fstat(file.fileno()).st_size > files.MOST_BYTES:
            raise UsageError(f"{self.path} is too large for a session; name another file with -o")
        text = file.read().decode("utf-8", "replace")
        if not text.strip():
            self._append(json_text.dump(self.header))
            return
        try:
            header, answers, end = _read(text, str(self.path))
        except SessionError as error:
            raise UsageError(f"{error}; name another file with -o") from None
        if difference := _difference(header, self.header):
            raise UsageError(
                f"{self.path} holds another run: {difference}; name another file with -o"
            )
        self.header, self.end = header, end
        self._answers.update(answers)
        file.truncate(len(text[: text.rfind("\n") + 1].encode()))

    def _append(self, line: str) -> None:
        data = line.encode() + b"\n"
        size_bytes = self._file.seek(0, os.SEEK_END)
        try:
            written = 0
            while written < len(data):
                written += self._file.write(data[written:])
        except OSError as error:
            with contextlib.suppress(OSError):
                self._file.truncate(size_bytes)
            raise Unsaved(f"cannot write {self.path}: {error.strerror}") from None


def load(path: str | os.PathLike[str]) -> Session:
    """Read a session file, without findings. Raises :class:`SessionError` with one sentence."""
    name, path = str(path), Path(path)
    try:
        content = files.read_bytes(path)
        if content.startswith(XZ):
            content = lzma.LZMADecompressor().decompress(content, MOST_BYTES)
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SessionError(f"{name} is not a dlprof session: it is not UTF-8 text") from None
    except (OSError, ValueError, lzma.LZMAError) as error:  # a null byte in the name
        cause = getattr(error, "strerror", None) or str(error)
        raise SessionError(f"cannot read the session {name}: {cause}") from None
    return parse(text, name)


def parse(text: str, name: str) -> Session:
    """Read a session file, or the document that ``--json`` prints; ``name`` is for messages."""
    header, answers, end = _read(text, name)
    try:
        if "results" in header:
            return Session.model_validate(header)
        return _merged(header, answers, end)
    except (ValidationError, LookupError, TypeError, ValueError, RecursionError) as error:
        reason = first_error(error) if isinstance(error, ValidationError) else error
        raise SessionError(f"{name} is not a valid session: {reason}") from None


def document(session: Session) -> str:
    """Write the session as one JSON document, with results and findings."""
    return json_text.dump(session.model_dump(by_alias=True)) + "\n"


def first_error(error: ValidationError) -> str:
    """Return place and cause of the first error."""
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"])) or "top level"
    return f"{where}: {first['msg'].removeprefix('Value error, ')}"


def _read(text: str, name: str) -> tuple[dict[str, Any], Answers, dict[str, Any]]:
    """Return header, answers and end, without a torn last line. An end counts its answers."""
    first, _, body = text.partition("\n")
    header = _content(first, name, 1)
    schema = str(header.get("schema"))
    if schema.startswith("dlprof.trace/"):
        raise SessionError(f"{name} is a trace, not a session: dlprof report shows it")
    if schema != SCHEMA:
        raise SessionError(f"{name} is not a dlprof session: its schema is not {SCHEMA!r}")
    answers: defaultdict[int, list[tuple[int, WorkerAnswer]]] = defaultdict(list)
    end: dict[str, Any] = {}
    known: set[tuple[int, int]] = set()
    for number, line in enumerate(body.split("\n")[:-1], start=2):
        content = _content(line, name, number)
        try:
            if "end" in content:
                end = dict(content["end"])
                if end.pop("answers", len(known)) != len(known):
                    raise SessionError(f"{name} is damaged: its end counts other answers")
                continue
            answer, place = dict(content["answer"]), (content["of"], content["round"])
            str(answer["status"])
            is_new = place not in known and min(place) >= 0
        except (LookupError, TypeError, ValueError):
            is_new = False
        if not is_new:
            raise SessionError(f"{name} is damaged in line {number}")
        known.add(place)
        answers[place[0]].append((place[1], answer))
        end = {}  # a later sitting went on
    return header, answers, end


def _content(line: str, name: str, number: int) -> dict[str, Any]:
    try:
        content = json_text.loads(line)
    except (ValueError, RecursionError):
        content = None
    if isinstance(content, dict):
        return content
    if number == 1:
        raise SessionError(f"{name} is not a dlprof session: its first line is no JSON object")
    raise SessionError(f"{name} is damaged in line {number}")


def _merged(header: Mapping[str, Any], answers: Answers, end: Mapping[str, Any]) -> Session:
    cases = header["cases"]
    known = {name: value for name, value in header.items() if name != "cases"}
    found = Header.model_validate({"complete": False, **known, **end})
    rounds = found.request.settings.rounds
    if max(answers, default=-1) >= len(cases):
        raise ValueError("an answer is of no case")
    results = [
        merge(case, answers.get(index, ()), rounds, untimed=found.simulated > 0)
        for index, case in enumerate(cases)
    ]
    content = {**dict(found), "rounds": end.get("rounds") or rounds, "results": results}
    return Session.model_validate(content)


def _difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Return the difference between the run in the file and this one; empty for none."""
    if old.get("request") != new.get("request") or old.get("cases") != new.get("cases"):
        return "other cases or options"
    before, now = (
        Environment.model_validate(header.get("environment") or {}) for header in (old, new)
    )
    for name in SAME:
        if getattr(before, name) != getattr(now, name):
            return f"{name} was {getattr(before, name)} and is {getattr(now, name)}"
    return "it is of another machine" if on_one_machine(before, now) is False else ""


def _is_settled(answer: WorkerAnswer) -> bool:
    return bool(answer["status"] != "ok")


def _opened(path: Path) -> BinaryIO:
    """Open the file unbuffered: a write that a full disk refused must not block later ones."""
    try:
        if path.exists() and not path.is_file():
            kind = "Is a directory" if path.is_dir() else "it is no regular file"
            raise UsageError(f"cannot write {path}: {kind}")
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b", buffering=0)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"cannot write {path}: {getattr(error, 'strerror', None) or error}"
        ) from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise UsageError(
            f"another run writes {path}: wait for it, or name another file with -o"
        ) from None
    except OSError:  # a file system without locks
        pass
    return file
