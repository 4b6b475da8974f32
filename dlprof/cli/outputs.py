"""What becomes of a session besides the report: files, or stdout in the report's place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
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
FORMS = ("json", "html", "csv", "parquet", "markdown", "junit")


@dataclass(frozen=True)
class Outputs:
    """The files to be written, by their options; ``-`` is stdout instead of the report.

    ``--json`` may replace a session with ``over_sessions``; no other form ever does.
    """

    targets: Mapping[str, str]
    github: bool = False
    over_sessions: bool = True
    full: bool = False
    """Whether the report that is printed has everything."""

    @classmethod
    def of(cls, options: Mapping[str, Any], over_sessions: bool = True) -> Outputs:
        """Those among the options of a verb."""
        named = {f"--{form}": options.get(form) for form in FORMS}
        targets = {name: target for name, target in named.items() if target is not None}
        flags = {name: bool(options.get(name)) for name in ("github", "full")}
        return cls(targets, over_sessions=over_sessions, **flags)

    @property
    def printed(self) -> list[str]:
        """The options that take the report's place."""
        return [name for name, target in self.targets.items() if target == STDOUT]

    def named(self) -> list[str]:
        """The options that were given."""
        return [*self.targets, *["--github"] * self.github]

    def check(
        self,
        inputs: Mapping[str, Path | None] | None = None,
        kept: Mapping[str, Path | None] | None = None,
    ) -> None:
        """Raises :class:`UsageError` before anything is measured where it could not be written.

        ``inputs`` are files that are read, which may be one; ``kept`` are others that are written.
        """
        for name, target in self.targets.items():
            given(name, target)
        written = {**(kept or {}), **self.targets}
        check_distinct(written)
        for what, file in (inputs or {}).items():
            check_distinct({what: file, **written})
        if self.targets.get("--parquet") == STDOUT:
            raise UsageError("--parquet writes bytes: name a file")
        if len(self.printed) > 1:
            raise UsageError(f"only one of {', '.join(self.printed)} can be printed")
        if self.github and self.printed:
            raise UsageError(f"--github prints annotations: name a file for {self.printed[0]}")
        for name, target in self.targets.items():
            if target != STDOUT:
                files.check_writable(Path(target))
                if name != "--json" or not self.over_sessions:
                    check_no_session(Path(target))
        if self.github:
            check_summary({**(inputs or {}), **written})

    def write(self, texts: Mapping[str, Callable[[], Iterable[str]]]) -> None:
        """Print or write the forms that are wanted. Raises :class:`UsageError`."""
        for name, target in self.targets.items():
            if name not in texts:
                continue
            if target == STDOUT:
                for text in texts[name]():
                    say(text)
                continue
            with files.atomic(Path(target)) as file:
                file.writelines(texts[name]())


def write_session(
    outputs: Outputs, session: Session, fail_on: FailOn | None = None, trends: Sequence[Trend] = ()
) -> None:
    """Write a session in the forms that are wanted. Raises :class:`UsageError`.

    ``fail_on`` says which findings fail; ``trends`` go into the page.
    """
    outputs.write(
        {
            "--json": lambda: sessions.chunks(session, session.results),
            "--html": lambda: [_html(session, trends)],
            "--csv": lambda: _csv(session),
            "--markdown": lambda: [_summary(session)],
            "--junit": lambda: [_junit(session, fail_on)],
        }
    )
    if "--parquet" in outputs.targets:
        from dlprof.reports.table_files import write_parquet

        with files.atomic_bytes(Path(outputs.targets["--parquet"])) as file:
            write_parquet(file, session, session.results)
    if outputs.github:
        _github(session, fail_on)


def _html(session: Session, trends: Sequence[Trend]) -> str:
    from dlprof.reports.html import render
    from dlprof.reports.session_document import session_document

    document = session_document(session, scripts=True)
    if trends:
        from dlprof.reports.history_document import trend_sections

        document = replace(document, sections=(*document.sections, *trend_sections(trends)))
    return render(document, session)


def _csv(session: Session) -> Iterable[str]:
    from dlprof.reports.table_files import csv_lines

    return csv_lines(session, session.results)


def _summary(session: Session) -> str:
    from dlprof.reports import markdown
    from dlprof.reports.session_document import session_document

    return markdown.render(session_document(session))


def _junit(session: Session, fail_on: FailOn | None) -> str:
    from dlprof.reports import checks, junit
    from dlprof.reports.method import short_command

    fails = (lambda _: False) if fail_on is None else fail_on.fails
    found = checks.checks(session, fails, _unseen(session, fail_on))
    return junit.render(short_command(session), found, session.created, session.wall_s)


def _unseen(session: Session, fail_on: FailOn | None) -> Mapping[str, str]:
    return {} if fail_on is None else fail_on.unseen(session.results)


def _github(session: Session, fail_on: FailOn | None) -> None:
    from dlprof.reports import checks
    from dlprof.reports.session_document import session_document

    found = [*checks.run_checks(session, _unseen(session, fail_on))]
    found += checks.expectation_checks(session)
    problems = session_document(session).problems
    tell(problems, _summary(session), scenario_file(session), found)
