"""``dlprof ticket``."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from dlprof.cli import options


def ticket(
    session: options.SessionFile,
    finding: Annotated[
        str | None,
        typer.Argument(help="A finding's number or a rule: 2 or DLP018. Default: the worst."),
    ] = None,
    run: Annotated[
        bool | None,
        typer.Option(
            "--run/--no-run",
            metavar=options.FLAG,
            help="Run the reproducer. Default: for sessions that you measured on this machine.",
        ),
    ] = None,
    python: Annotated[
        str | None,
        typer.Option("--python", metavar="PATH", help="Run it in this interpreter."),
    ] = None,
    private: Annotated[
        bool,
        typer.Option(
            "--private", metavar=options.FLAG, help="Say on stderr what was taken out as private."
        ),
    ] = False,
    output: options.Text = None,
) -> None:
    """Print a bug ticket for a finding in Markdown, with a reproducer and what it printed."""
    from dlprof.cli.distinct import check_distinct, check_no_session
    from dlprof.cli.finding import NONE, choose
    from dlprof.cli.show import say, write
    from dlprof.evidence.redaction import Markdown, Redactor, surroundings
    from dlprof.evidence.ticket import written
    from dlprof.measuring.measuring import state_folder
    from dlprof.rules.evaluate import judged
    from dlprof.session import model as sessions
    from dlprof.session.provenance import is_ours

    check_distinct({"the session that is read": session, "-o": output})
    if output is not None:
        check_no_session(output)
    found = judged(sessions.load(session))
    if not found.findings and finding is None:
        say(NONE.format(do="report"))
        return
    chosen = choose(found, finding)
    ours = is_ours(session, state_folder())
    redactor = Redactor(surroundings(os.environ))
    named = options.interpreter(python) if python is not None else None
    if sys.stderr.isatty() and (run or (run is None and ours)):
        typer.echo("running the reproducer; this may take some minutes", err=True)
    write(output, written(found, chosen, ours, run, named, Markdown(redactor)))
    for line in redactor.report() if private else ():
        typer.echo(line, err=True)
