"""``dlprof ticket``."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Annotated

import typer

from dlprof.cli.options import FLAG, Given, SessionFile, Text, takes
from dlprof.plan import options as every


@takes(replace(every.PYTHON, help="Run it in this interpreter."))
def ticket(
    session: SessionFile,
    finding: Annotated[
        str | None,
        typer.Argument(help="A finding's number or a rule: 2 or DLP018. Default: the worst."),
    ] = None,
    run: Annotated[
        bool,
        typer.Option(
            "--run/--no-run",
            metavar=FLAG,
            help="Run the reproducer, which is made of the session's text. Default: --no-run.",
        ),
    ] = False,
    output: Text = None,
    *,
    given: Given,
) -> None:
    """Print a bug ticket for a finding in Markdown, with a reproducer and what it printed."""
    from dlprof.cli.finding import NONE, choose
    from dlprof.cli.show import say, write
    from dlprof.evidence.redaction import Redactor
    from dlprof.evidence.ticket import written
    from dlprof.rules import with_findings
    from dlprof.session import model as sessions

    found = with_findings(sessions.load(session))
    if not found.findings and finding is None:
        say(NONE)
        return
    chosen = choose(found, finding)
    # Never the interpreter that the session names: the file may come from anybody.
    interpreter = given.settled()["python"] if run else None
    if interpreter is not None:
        typer.echo(f"running the reproducer in {interpreter}", err=True)
    write(output, written(found, chosen, interpreter, Redactor.of(os.environ)))
