"""The outputs of a verb: the report on stdout, files in other forms, GitHub's annotations."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dlprof.cli.streams import complain, say, show
from dlprof.errors import UsageError
from dlprof.judge.fail_on import FailOn
from dlprof.report.document import Document, Problem
from dlprof.runner import files, session_file
from dlprof.runner.session import SCHEMA, Session

if TYPE_CHECKING:
    from dlprof.report.checks import JUnitCase

STDOUT = "-"
EXPORTS, TRACE_EXPORTS = ("bmf", "github-benchmark"), ("sarif",)
"""Formats of ``--export``, of a session and of a trace."""
EXPORT = "--export"
JSON_FORMS = ("--json", "--chrome", *(f"{EXPORT} {name}" for name in (*EXPORTS, *TRACE_EXPORTS)))
FORMS = ("json", "html", "csv", "markdown", "junit", "chrome")
SUMMARY = "GITHUB_STEP_SUMMARY"
LONGEST_SUMMARY = 250_000
"""Characters; GitHub drops the summary of a step above 1 MiB."""
Texts = Mapping[str, Callable[[], str]]
"""The text of each form, by its option."""


@dataclass(frozen=True)
class Outputs:
    """The files to be written, by their options; ``-`` is stdout instead of the report."""

    targets: Mapping[str, str]
    github: bool = False
    full: bool = False

    @classmethod
    def parse(cls, raw: Mapping[str, Any], exports: Sequence[str] = EXPORTS) -> Outputs:
        """Read the outputs among the options of a verb, which can write ``exports``.

        Raises :class:`UsageError`, before anything is measured, for a file that cannot be written.
        """
        options = {f"--{form}": raw.get(form) for form in FORMS}
        if raw.get("export"):
            name, target = raw["export"]
            if name not in exports:
                raise UsageError(f"{EXPORT} {name}: expected {' or '.join(exports)}")
            if exports == EXPORTS and sys.argv.count(EXPORT) > 1:  # typer would take the last
                raise UsageError(f"name one {EXPORT}; dlprof report writes others of a session")
            options[f"{EXPORT} {name}"] = target
        targets = {name: target for name, target in options.items() if target is not None}
        outputs = cls(targets, bool(raw.get("github")), bool(raw.get("full")))
        printed = [*outputs.printed, *["--github"] * outputs.github]
        if len(printed) > 1:
            raise UsageError(f"only one of {', '.join(printed)} can be printed: name files")
        for name, target in targets.items():
            if target != STDOUT:
                files.check_writable(Path(target))
                outputs.check_no_session(name)
        return outputs

    @property
    def export_times(self) -> bool:
        """Whether times are exported."""
        return any(f"{EXPORT} {name}" in self.targets for name in EXPORTS)

    @property
    def printed(self) -> list[str]:
        """The options that take the report's place."""
        return [name for name, target in self.targets.items() if target == STDOUT]

    def check_no_session(self, name: str) -> None:
        """Raise :class:`UsageError` if a report, which is no JSON, would replace a session."""
        path = Path(self.targets[name])
        if name != "--json" and files.begins_as(path, SCHEMA):
            raise UsageError(f"cannot write {path}: a session is in it; name another file")

    def print_report(self, document: Document) -> None:
        """Print the report, unless another form takes its place."""
        if not self.printed:
            show(document, self.full)

    def write(
        self,
        document: Document,
        texts: Texts,
        problems: Sequence[Problem] = (),
        checks: Sequence[JUnitCase] = (),
    ) -> None:
        """Print or write the forms that are wanted. Raises :class:`UsageError`.

        ``problems`` and failed ``checks`` become annotations of GitHub.
        """
        from dlprof.report import html, markdown
        from dlprof.report.checks import github

        texts = {
            "--html": lambda: html.render(document),
            "--markdown": lambda: markdown.render(document),
            **texts,
        }
        for name, target in self.targets.items():
            if name not in texts:
                continue
            if target == STDOUT:
                say(texts[name](), is_json=name in JSON_FORMS)
                continue
            self.check_no_session(name)  # the session of this run may be there by now
            with files.atomic(Path(target)) as file:
                file.write(texts[name]())
        if self.github:
            typer.echo(github(problems, checks), nl=False)
            _summarize(f"{markdown.render(document)}\n")


def deliver(text: str, path: Path | None) -> None:
    """Write the text of a verb to the file of ``-o``; print it without one."""
    if path is None:
        say(text)
        return
    Outputs({"--output": str(path)}).check_no_session("--output")
    with files.atomic(path) as file:
        file.write(text)


def write_session(
    outputs: Outputs,
    session: Session,
    document: Document,
    fail_on: FailOn | None = None,
) -> None:
    """Write a session in the forms that are wanted. Raises :class:`UsageError`.

    ``fail_on`` says which findings fail.
    """
    from dlprof.report import checks, data_table, exports, html
    from dlprof.report.session_document import session_document

    fails = fail_on.fails if fail_on is not None else lambda _: False
    texts: Texts = {
        "--json": lambda: session_file.document(session),
        "--html": lambda: html.render(session_document(session, html.SAVED, scripts=True), session),
        "--csv": lambda: data_table.csv_text(session),
        "--junit": lambda: checks.junit(
            f"dlprof {session.command[0]}", checks.checks(session, fails)
        ),
        "--export bmf": lambda: exports.bmf(session),
        "--export github-benchmark": lambda: exports.github_benchmark(session),
    }
    run_checks = [*checks.run_checks(session), *checks.expectation_checks(session)]
    outputs.write(document, texts, document.problems, run_checks)


def _summarize(text: str) -> None:
    """Append to the summary of the step, which GitHub limits. Raises :class:`UsageError`."""
    name = os.environ.get(SUMMARY)
    if not name:
        complain(f"no summary: {SUMMARY} is not set")
        return
    try:
        with Path(name).open("a", encoding="utf-8") as file:
            file.write(text[:LONGEST_SUMMARY])
    except OSError as error:
        reason = f"{name} ({SUMMARY}): {error.strerror}"
        raise UsageError(f"cannot write the summary {reason}") from None
