"""The journal: every answer on disk as it comes, so that a long run needs no memory.

One line of JSON per answer in a temporary file. In memory stand only the places of the lines.
What lasts is the session file, which is written from the journal again and again.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
from typing import Any, NamedTuple

from dlprof.errors import Unsaved, UsageError

INTERRUPTED = "interrupted"
"""The status of an answer that the user did not wait for the end of. No result has it."""


class Place(NamedTuple):
    """Where an answer stands, and what the runner must know of it without reading it."""

    offset: int
    size: int
    round: int
    settled: bool
    whole: bool
    """Whether the round was measured to its end; else the run was stopped meanwhile."""


class Journal:
    """An append-only file of answers, gone when it is closed."""

    def __init__(self) -> None:
        self._places: dict[int, list[Place]] = {}
        self._marked: dict[int, int] = {}
        try:
            # Without a buffer: what a full disk did not take must not be in the way of what it did.
            self._file = tempfile.TemporaryFile(prefix="dlprof-", buffering=0)  # noqa: SIM115 - lives as long as the run
        except OSError as error:
            raise UsageError(f"cannot keep what is measured: {error.strerror}") from None

    def add(self, case: int, round_: int, answer: dict[str, Any]) -> None:
        """Append the answer of one case in one round; ``answer`` has at least a status.

        Raises :class:`Unsaved` where the disk is full.
        """
        line = json.dumps(answer).encode() + b"\n"
        offset = self._file.seek(0, 2)
        try:
            written = 0
            while written < len(line):
                written += self._file.write(line[written:])
        except OSError as error:
            with contextlib.suppress(OSError):
                self._file.truncate(offset)
            raise Unsaved(
                f"cannot keep what is measured in {tempfile.gettempdir()}: {error.strerror}"
            ) from None
        status = answer["status"]
        whole = status != INTERRUPTED
        place = Place(offset, len(line), round_, whole and status != "ok", whole)
        self._places.setdefault(case, []).append(place)

    def mark(self) -> None:
        """Remember what is there now, for :meth:`grown`."""
        self._marked = {case: len(places) for case, places in self._places.items()}

    def grown(self, case: int) -> bool:
        """Whether answers of a case came after the mark."""
        return len(self._places.get(case, ())) > self._marked.get(case, 0)

    def answers(self, case: int) -> list[tuple[int, dict[str, Any]]]:
        """Round and answer of everything that was measured of a case, in order."""
        found = []
        for place in self._places.get(case, ()):
            self._file.seek(place.offset)
            found.append((place.round, json.loads(self._file.read(place.size))))
        return found

    def settled(self, case: int) -> bool:
        """Whether a case was refused, crashed or hung, so that no round is measured any more."""
        return any(place.settled for place in self._places.get(case, ()))

    def needs(self, case: int, round_: int) -> bool:
        """Whether a round of a case is still to be measured.

        A case that was refused, crashed or hung would do so again and is not tried again. A round
        that was interrupted is.
        """
        places = self._places.get(case, ())
        return not any(place.settled or (place.whole and place.round == round_) for place in places)

    def close(self) -> None:
        self._file.close()
