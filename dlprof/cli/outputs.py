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
from dlprof.session.model import Session

if TYPE_CHECKING:  # what reads a history loads NumPy
    from dlprof.history.trend import Trend

STDOUT = "-"


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
        session: Session,
        fail_on: FailOn | None = None,
        trends: Sequence[Trend] = (),
    ) -> None:
        """Print or write what is wanted. Raises :class:`UsageError` for what cannot be written.

        ``fail_on`` says which findings fail; ``trends`` go into the page.
        """
        writers: dict[str, Callable[[str, Session], None]] = {
            "json": _json,
            "html": partial(_html, trends=trends),
            "csv": _csv,
            "parquet": _parquet,
            "markdown": _markdown,
            "junit": partial(_junit, fail_on),
        }
        for name, target in self._targets().items():
            writers[name](target, session)
        if self.github:
            _github(fail_on, session)

    def _targets(self) -> dict[str, str]:
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: target for name, target in named.items() if isinstance(target, str)}

    def _printed(self) -> list[str]:
        return [f"--{name}" for name, target in self._targets().items() if target == STDOUT]


def _json(target: str, session: Session) -> None:
    _put(target, sessions.chunks(session, session.results))


def _html(target: str, session: Session, trends: Sequence[Trend]) -> None:
    from dlprof.reports.html import render

    _put(target, [render(session, trends)])


def _csv(target: str, session: Session) -> None:
    from dlprof.reports.table_files import csv_lines

    _put(target, csv_lines(session, session.results))


def _parquet(target: str, session: Session) -> None:
    from dlprof.reports.table_files import write_parquet

    with files.atomic_bytes(Path(target)) as file:
        write_parquet(file, session, session.results)


def _markdown(target: str, session: Session) -> None:
    _put(target, [_summary(session)])


def _summary(session: Session) -> str:
    from dlprof.reports import markdown
    from dlprof.reports.session_document import session_document

    return markdown.render(session_document(session))


def _junit(fail_on: FailOn | None, target: str, session: Session) -> None:
    from dlprof.reports import checks, junit
    from dlprof.reports.method import short_command

    fails = (lambda _: False) if fail_on is None else fail_on.fails
    found = checks.checks(session, fails, _unseen(fail_on, session))
    _put(target, [junit.render(short_command(session), found, session.created, session.wall_s)])


def _unseen(fail_on: FailOn | None, session: Session) -> Mapping[str, str]:
    return {} if fail_on is None else fail_on.unseen(session.results)


def _github(fail_on: FailOn | None, session: Session) -> None:
    from dlprof.reports import checks
    from dlprof.reports.session_document import session_document

    found = [*checks.run_checks(session, _unseen(fail_on, session))]
    found += checks.expectation_checks(session)
    problems = session_document(session).problems
    tell(problems, _summary(session), scenario_file(session), found)


def _put(target: str, chunks: Iterable[str]) -> None:
    if target == STDOUT:
        for chunk in chunks:
            say(chunk)
        return
    with files.atomic(Path(target)) as file:
        file.writelines(chunks)
