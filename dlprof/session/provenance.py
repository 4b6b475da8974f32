"""Which session files did this user's dlprof write on this machine?

A session file is input from anybody, and a reproducer is made of its text. So dlprof remembers
digests of every session it has written, in the user's state folder; what is run without being asked
for comes from one of these. The HTML report saves the same session in other bytes, at times with
fewer samples: it is known by its content, in which samples do not count. They are numbers, and
nothing that is run is made of them.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from dlprof.session import files
from dlprof.text import json_text

NAME = "written"
MOST = 4000
"""Digests that are kept, the newest last; two of each session."""
SAMPLES = ("host_time", "ready_time")
FIRST_ENDS, LAST = b'"results": [', b"]}"
"""As the file's lines are: the header, each result with a comma behind it but the last, the end."""


def remember(path: Path, folder: Path, replaced: Collection[str] = ()) -> tuple[str, ...]:
    """Note that ``path`` was written here, and return its digests.

    ``replaced`` are those of what stood there before: a run saves its session every few seconds,
    and would push out all others. Nothing happens where the note cannot be kept.
    """
    new: tuple[str, ...] = ()
    with contextlib.suppress(OSError):
        new = tuple(one for one in (digest(path), content_digest(path)) if one)
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f".{NAME}.lock").open("w") as lock:  # other runs remember theirs meanwhile
            fcntl.flock(lock, fcntl.LOCK_EX)
            digests = [*(one for one in _known(folder) if one not in replaced), *new][-MOST:]
            temporary = folder / f".{NAME}.{os.getpid()}"
            temporary.write_text("\n".join(dict.fromkeys(digests)) + "\n", encoding="ascii")
            temporary.replace(folder / NAME)
    return new


def is_ours(path: Path, folder: Path) -> bool:
    """Whether this user's dlprof wrote exactly this file, or one of the same content.

    What comes on stdin never is: a pipe cannot be read again.
    """
    if path == files.STDIN:
        return False
    try:
        known = set(_known(folder))
        return digest(path) in known or content_digest(path) in known
    except OSError:
        return False


def digest(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            found.update(chunk)
    return found.hexdigest()


def content_digest(path: Path) -> str | None:
    """SHA-256 of what a session file says but for its samples; None for other files.

    Read line by line: the memory that it takes does not grow with the session.
    """
    found = hashlib.sha256(b"content\n")
    try:
        for part in _parts(path):
            found.update(json.dumps(part, sort_keys=True).encode("ascii") + b"\n")
    except (ValueError, RecursionError):
        return None
    return found.hexdigest()


def _parts(path: Path) -> Iterator[dict[str, Any]]:
    """The header, then each result. Raises ValueError for lines that are no session's.

    Only such lines are taken that, put together, say what each of them says alone.
    """
    with path.open("rb") as file:
        first = next(file, b"").rstrip()
        if not first.endswith(FIRST_ENDS):
            raise ValueError("no header")
        yield _read(first + LAST)
        line = next(file, b"").strip()
        while line != LAST:
            following = next(file, b"").strip()
            if line.endswith(b",") == (following == LAST):
                raise ValueError("a comma too many, or none")
            yield _without_samples(_read(line.removesuffix(b",")))
            line = following
        if file.read(1 << 10).strip():
            raise ValueError("more than a session")


def _read(line: bytes) -> dict[str, Any]:
    content = json_text.read(line.decode("utf-8"))
    if not isinstance(content, dict):
        raise ValueError("no object")  # noqa: TRY004 - the file is at fault, not the program
    return content


def _without_samples(result: dict[str, Any]) -> dict[str, Any]:
    for name in SAMPLES:
        measure = result.get(name)
        processes = measure.get("processes") if isinstance(measure, dict) else None
        for process in processes if isinstance(processes, list) else ():
            if isinstance(process, dict) and _are_numbers(process.get("samples_ns")):
                process["samples_ns"] = []
    return result


def _are_numbers(samples: object) -> bool:
    return isinstance(samples, list) and all(type(one) in (int, float) for one in samples)


def _known(folder: Path) -> list[str]:
    try:
        return (folder / NAME).read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return []
