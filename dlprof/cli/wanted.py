"""What a session is wanted as besides the report: in files, or on stdout in the report's place."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from pathlib import Path

from dlprof import session as sessions
from dlprof.cli.distinct import check_distinct
from dlprof.cli.show import say
from dlprof.collector import paused
from dlprof.errors import UsageError
from dlprof.session import Header, Result

STDOUT = "-"
Results = Callable[[], Iterable[Result]]
"""Gives all results, one at a time, each time it is called."""


@dataclass(frozen=True)
class Wanted:
    """Each is the name of a file, ``-`` for stdout instead of the report, or None."""

    json: str | None = None
    html: str | None = None
    csv: str | None = None
    parquet: str | None = None
    markdown: str | None = None

    @property
    def printed(self) -> bool:
        """Whether one of them takes the report's place."""
        return bool(self._printed())

    @property
    def anything(self) -> bool:
        return bool(self._targets())

    def check(self, **beside: Path | None) -> None:
        """Raises :class:`UsageError` before anything is measured where it could not be written.

        ``beside`` are files, by what they are for, that must not be replaced.
        """
        targets = {f"--{name}": target for name, target in self._targets().items()}
        check_distinct({**beside, **targets})
        if self.parquet == STDOUT:
            raise UsageError("--parquet writes bytes: name a file")
        if len(self._printed()) > 1:
            raise UsageError(f"only one of {', '.join(self._printed())} can be printed")
        for target in self._targets().values():
            if target != STDOUT:
                sessions.check_writable(Path(target))

    def give(self, header: Header, results: Results) -> None:
        """Print or write what is wanted. Raises :class:`UsageError` for what cannot be written."""
        writers = {
            "json": _json,
            "html": _html,
            "csv": _csv,
            "parquet": _parquet,
            "markdown": _markdown,
        }
        for name, target in self._targets().items():
            writers[name](target, header, results)

    def _targets(self) -> dict[str, str]:
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: target for name, target in named.items() if target is not None}

    def _printed(self) -> list[str]:
        return [f"--{name}" for name, target in self._targets().items() if target == STDOUT]


def _json(target: str, header: Header, results: Results) -> None:
    _put(target, sessions.chunks(header, results()))


def _html(target: str, header: Header, results: Results) -> None:
    from dlprof.reports.html import render

    with paused():
        whole = sessions.Session(**{**dict(header), "results": list(results())})
    _put(target, [render(whole)])


def _csv(target: str, header: Header, results: Results) -> None:
    from dlprof.reports import delimited

    _put(target, delimited.render(header, results()))


def _parquet(target: str, header: Header, results: Results) -> None:
    from dlprof.reports import parquet

    with sessions.atomic_bytes(Path(target)) as file:
        parquet.write(file, header, results())


def _markdown(target: str, header: Header, results: Results) -> None:
    from dlprof.reports import markdown
    from dlprof.reports.row import rows_of

    _put(target, [markdown.render(header, rows_of(results()))])


def _put(target: str, chunks: Iterable[str]) -> None:
    if target == STDOUT:
        for chunk in chunks:
            say(chunk)
        return
    with sessions.atomic(Path(target)) as file:
        file.writelines(chunks)
