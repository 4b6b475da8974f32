"""``--csv``, ``--parquet`` and ``--markdown``: where else the session goes, and as what."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from dlprof import session as sessions
from dlprof.cli.show import say
from dlprof.errors import UsageError
from dlprof.reports.row import row_of
from dlprof.session import Header, Result

STDOUT = "-"
Results = Callable[[], Iterable[Result]]
"""Gives all results, one at a time, each time it is called."""


@dataclass(frozen=True)
class Tables:
    """A file for each format, ``-`` for stdout, None for none."""

    csv: str | None = None
    parquet: str | None = None
    markdown: str | None = None

    def check(self, json: str | None = None) -> None:
        """Raise :class:`UsageError` for what could not be written in the end."""
        if self.parquet == STDOUT:
            raise UsageError("--parquet writes bytes: name a file")
        named = {"--json": json, "--csv": self.csv, "--markdown": self.markdown}
        printed = [name for name, file in named.items() if file == STDOUT]
        if len(printed) > 1:
            raise UsageError(f"only one of {', '.join(printed)} can be printed")
        for file in (json, self.csv, self.parquet, self.markdown):
            if file not in (None, STDOUT):
                sessions.check_writable(Path(file))

    @property
    def is_printed(self) -> bool:
        """Whether one of them goes to stdout, in the place of the report."""
        return STDOUT in (self.csv, self.markdown)

    def write(self, header: Header, results: Results) -> None:
        """Write all of them. Raises :class:`UsageError` where a file cannot be written."""
        if self.csv is not None:
            from dlprof.reports import delimited

            _put(self.csv, delimited.render(header, results()))
        if self.markdown is not None:
            from dlprof.reports import markdown

            rows = [row_of(result) for result in results()]
            _put(self.markdown, [markdown.render(header, rows)])
        if self.parquet is not None:
            from dlprof.reports import parquet

            with sessions.atomic_bytes(Path(self.parquet)) as file:
                parquet.write(file, header, results())


NONE = Tables()


def _put(target: str, chunks: Iterable[str]) -> None:
    if target == STDOUT:
        for chunk in chunks:
            say(chunk)
        return
    with sessions.atomic(Path(target)) as file:
        file.writelines(chunks)
