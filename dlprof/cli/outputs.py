"""What becomes of a session besides the report: files, or stdout in the report's place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dlprof.cli.files import check_distinct, check_no_session, given
from dlprof.cli.github import check_summary, scenario_file, tell
from dlprof.cli.show import say
from dlprof.errors import UsageError
from dlprof.rules.fail_on import FailOn
from dlprof.session import files
from dlprof.session import model as sessions
from dlprof.session.collector import paused
from dlprof.session.model import Header, Result

if TYPE_CHECKING:  # what reads a history loads NumPy
    from dlprof.history.trend import Trend

STDOUT = "-"
Results = Callable[[], Iterable[Result]]
"""Gives all results, one at a time, each time it is called."""


@dataclass(frozen=True)
class Outputs:
    """Each is the name of a file, ``-`` for stdout instead of the report, or None."""

    json: str | None = None
    html: str | None = None
    csv: str | None = None
    parquet: str | None = None
    markdown: str | None = None
    junit: str | None = None
    github: bool = False

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Outputs:
        """Those among the options of a verb."""
        names = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in options.items() if name in names})

    @property
    def printed(self) -> bool:
        """Whether one of them takes the report's place."""
        return bool(self._printed())

    @property
    def anything(self) -> bool:
        return bool(self._targets()) or self.github

    def named(self) -> list[str]:
        """The options that were given."""
        return [f"--{name}" for name in self._targets()] + ["--github"] * self.github

    def check(self, **beside: Path | None) -> None:
        """Raises :class:`UsageError` before anything is measured where it could not be written.

        ``beside`` are files, by what they are for, that must not be replaced.
        """
        targets = {f"--{name}": target for name, target in self._targets().items()}
        for name, target in targets.items():
            given(name, target)
        check_distinct({**beside, **targets})
        if self.parquet == STDOUT:
            raise UsageError("--parquet writes bytes: name a file")
        if len(self._printed()) > 1:
            raise UsageError(f"only one of {', '.join(self._printed())} can be printed")
        if self.github and self._printed():
            raise UsageError(f"--github prints annotations: name a file for {self._printed()[0]}")
        for name, target in self._targets().items():
            if target != STDOUT:
                files.check_writable(Path(target))
                if name != "json":
                    check_no_session(Path(target))
        if self.github:
            check_summary(targets)

    def give(
        self,
        header: Header,
        results: Results,
        fail_on: FailOn | None = None,
        trends: Sequence[Trend] = (),
    ) -> None:
        """Print or write what is wanted. Raises :class:`UsageError` for what cannot be written.

        ``fail_on`` says which findings fail; ``trends`` go into the page.
        """
        writers: dict[str, Callable[[str, Header, Results], None]] = {
            "json": _json,
            "html": partial(_html, trends=trends),
            "csv": _csv,
            "parquet": _parquet,
            "markdown": _markdown,
            "junit": partial(_junit, fail_on),
        }
        for name, target in self._targets().items():
            writers[name](target, header, results)
        if self.github:
            _github(fail_on, header, results)

    def _targets(self) -> dict[str, str]:
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: target for name, target in named.items() if isinstance(target, str)}

    def _printed(self) -> list[str]:
        return [f"--{name}" for name, target in self._targets().items() if target == STDOUT]


def _json(target: str, header: Header, results: Results) -> None:
    _put(target, sessions.chunks(header, results()))


def _html(target: str, header: Header, results: Results, trends: Sequence[Trend]) -> None:
    from dlprof.reports.html import render

    with paused():
        whole = sessions.Session(**{**dict(header), "results": list(results())})
    _put(target, [render(whole, trends)])


def _csv(target: str, header: Header, results: Results) -> None:
    from dlprof.reports.table_files import csv_lines

    _put(target, csv_lines(header, results()))


def _parquet(target: str, header: Header, results: Results) -> None:
    from dlprof.reports.table_files import write_parquet

    with files.atomic_bytes(Path(target)) as file:
        write_parquet(file, header, results())


def _markdown(target: str, header: Header, results: Results) -> None:
    _put(target, [_summary(header, results)])


def _summary(header: Header, results: Results) -> str:
    from dlprof.reports import markdown
    from dlprof.reports.result_row import rows_of

    return markdown.render(header, rows_of(results()))


def _junit(fail_on: FailOn | None, target: str, header: Header, results: Results) -> None:
    from dlprof.reports.ci import junit, of_session

    fails = of_session.fails_nothing if fail_on is None else fail_on.fails
    checks = of_session.checks(header, results(), fails, _unseen(fail_on, results))
    title = of_session.title(header)
    _put(target, [junit.render(title, checks, header.created, header.wall_s)])


def _unseen(fail_on: FailOn | None, results: Results) -> Mapping[str, str]:
    return {} if fail_on is None else fail_on.unseen(results())


def _github(fail_on: FailOn | None, header: Header, results: Results) -> None:
    from dlprof.reports.ci import of_session

    found = of_session.remarks(header, results(), _unseen(fail_on, results))
    tell(found, _summary(header, results), scenario_file(header))


def _put(target: str, chunks: Iterable[str]) -> None:
    if target == STDOUT:
        for chunk in chunks:
            say(chunk)
        return
    with files.atomic(Path(target)) as file:
        file.writelines(chunks)
