"""What a session is wanted as besides the table: JSON and HTML, in files or on stdout."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from dlprof import session as sessions
from dlprof.cli.show import say
from dlprof.errors import UsageError

STDOUT = "-"

Results = Callable[[], Iterable[sessions.Result]]


@dataclass(frozen=True)
class Wanted:
    """Each is the name of a file, ``-`` for stdout instead of the table, or None."""

    json: str | None = None
    html: str | None = None

    @property
    def printed(self) -> bool:
        """Whether one of them takes the table's place."""
        return STDOUT in (self.json, self.html)

    def check(self) -> None:
        """Raises :class:`UsageError` before anything is measured where it could not be written."""
        if self.json == self.html == STDOUT:
            raise UsageError("--json and --html cannot both be printed: give one of them a file")
        for name in (self.json, self.html):
            if name not in (None, STDOUT):
                sessions.check_writable(Path(name))

    def give(self, header: sessions.Header, results: Results) -> None:
        """Print or write what is wanted; ``results`` gives all results, one at a time."""
        if self.json is not None:
            _put(self.json, sessions.chunks(header, results()))
        if self.html is not None:
            from dlprof.reports.html import render

            content = header.model_dump(by_alias=True) | {"results": list(results())}
            _put(self.html, [render(sessions.Session.model_validate(content))])


def _put(name: str, chunks: Iterable[str]) -> None:
    if name == STDOUT:
        for chunk in chunks:
            say(chunk)
        return
    with sessions.atomic(Path(name)) as file:
        for chunk in chunks:
            file.write(chunk)
