"""``dlprof ticket`` and ``dlprof repro``: a finding made public."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dlprof.cli.options import WRITTEN, Given, SessionFile, takes
from dlprof.cli.streams import complain, say, width, write
from dlprof.errors import UsageError
from dlprof.runner import options as every
from dlprof.runner.option import Option, Switch
from dlprof.text.clean import clean

if TYPE_CHECKING:
    from dlprof.runner.session import FindingRecord, Session

RUN = Option(
    "run",
    Switch(),
    "Run the reproducer, which is made of the session's text.",
    every.MEASURING,
    default=False,
)


@takes(RUN, replace(every.PYTHON, help="Run it in this interpreter."), WRITTEN)
def ticket(
    session: SessionFile,
    finding: Annotated[
        str | None,
        typer.Argument(help="A finding's number or a rule: 2 or DLP018. Default: the worst."),
    ] = None,
    *,
    given: Given,
) -> None:
    """Print a bug ticket for a finding in Markdown, with a reproducer and what it printed."""
    from dlprof.ticket.redaction import Redactor
    from dlprof.ticket.ticket import written

    found = _loaded(session)
    if not found.findings and finding is None:
        say(listed(found))
        return
    chosen = choose(found, finding)
    # Never the interpreter that the session names: the file may come from anybody.
    interpreter = given.settled()["python"] if given.raw["run"] else None
    told = f"running the reproducer in {interpreter}"
    complain(told if interpreter else "not run: read the reproducer, then add --run")
    write(given.output, written(found, chosen, interpreter, Redactor.of(os.environ)))


@takes(WRITTEN)
def repro(
    session: SessionFile,
    finding: Annotated[
        str | None,
        typer.Argument(
            help="A finding's number in the report, or a rule: 2 or DLP018. Without: lists them."
        ),
    ] = None,
    *,
    given: Given,
) -> None:
    """Print one Python file that shows a finding without dlprof.

    Its exit code: 0 the problem is gone, 1 it is there, 2 it cannot tell.
    """
    from dlprof.ticket.reproducer import reproducer

    found = _loaded(session)
    if finding is None:
        if given.output is not None:
            raise UsageError("-o writes the script of one finding: name it, such as 1")
        say(listed(found, width()))
        return
    write(given.output, reproducer(found, choose(found, finding)).text)


def _loaded(path: Path) -> Session:
    from dlprof.judge import with_findings
    from dlprof.runner import session as model

    return with_findings(model.load(path))


def choose(session: Session, word: str | None) -> FindingRecord:
    """The finding that a word names, its number or its rule; the worst one without a word.

    Raises :class:`UsageError` where there is none of this number or rule.
    """
    from dlprof.judge import BY_WORD

    found = session.findings
    rule = BY_WORD.get(word.lower()) if word is not None else None
    for number, finding in enumerate(found, start=1):
        if word is None or word == str(number) or (rule and finding.rule == rule.id):
            return finding
    known = ", ".join(dict.fromkeys(finding.rule for finding in found))
    has = f"it has findings 1 to {len(found)}, of {known}" if found else "it has none"
    raise UsageError(f"the session has no finding {clean(str(word), 40)!r}: {has}")


def listed(session: Session, width: int = 100) -> str:
    """Number, rule and summary of every finding, worst first."""
    from rich.text import Text

    from dlprof.report.terminal import printed

    lines = [clean(f"{number}. {found.line}") for number, found in enumerate(session.findings, 1)]
    text = "\n".join(lines) or "There are no findings in this session."
    return printed(Text(text), width)
