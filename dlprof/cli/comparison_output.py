"""How a comparison is given: the report, files, or one of these on stdout in its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dlprof.cli.github import below, no_commands, scenario_file, tell
from dlprof.cli.outputs import Outputs
from dlprof.cli.show import show
from dlprof.compare.comparison import Comparison
from dlprof.compare.outcome import Outcome
from dlprof.errors import DlprofError
from dlprof.reports.comparison_document import Names, comparison_document, refusal_document
from dlprof.reports.document import Check, Document


@dataclass(frozen=True)
class Concluded:
    """A comparison with what it comes to.

    ``code`` is the exit code, and ``unsure`` that of a doubt; None for one who only wants to see.
    """

    comparison: Comparison
    outcome: Outcome
    code: int
    unsure: int | None
    names: Names
    verb: str = "compare"


def give(outputs: Outputs, found: Concluded) -> None:
    """Print the report, or what takes its place, and write the files.

    Raises :class:`UsageError` for what cannot be written.
    """
    from dlprof.reports import comparison_json, junit
    from dlprof.reports.comparison_checks import checks_of

    comparison, outcome = found.comparison, found.outcome
    document = comparison_document(comparison, outcome, found.names)
    checks = checks_of(comparison, outcome, found.unsure)
    if not outputs.printed:
        with no_commands(outputs.github):
            show(document, outputs.full)
    _write(
        outputs,
        document,
        lambda: comparison_json.render(comparison, outcome, found.code),
        lambda: junit.render(f"dlprof {found.verb}", checks, comparison.head.created),
    )
    if outputs.github:
        _tell(document, checks, scenario_file(comparison.head))


def refuse(outputs: Outputs, error: DlprofError, file: Path | None) -> None:
    """Write what was asked for of a gate that ended before there was a comparison.

    ``file`` is the scenario, if it is one. Raises :class:`UsageError` for what cannot be written.
    """
    from dlprof.reports import comparison_json, junit
    from dlprof.reports.comparison_checks import refusal_check

    reason = str(error)
    document, checks = refusal_document(reason), [refusal_check(reason, error.exit_code)]
    _write(
        outputs,
        document,
        lambda: comparison_json.refusal(reason, error.exit_code),
        lambda: junit.render("dlprof gate", checks),
    )
    if outputs.github:
        _tell(document, checks, None if file is None else below(str(file)))


def _write(
    outputs: Outputs, document: Document, json: Callable[[], str], junit: Callable[[], str]
) -> None:
    from dlprof.reports import html, markdown

    outputs.write(
        {
            "--json": lambda: [json()],
            "--junit": lambda: [junit()],
            "--markdown": lambda: [markdown.render(document)],
            "--html": lambda: [html.render(document)],
        }
    )


def _tell(document: Document, checks: Sequence[Check], file: str | None) -> None:
    from dlprof.reports import markdown

    tell((), markdown.render(document), file, checks)
