"""``dlprof ticket``."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Annotated

import typer

from dlprof.cli.options import WRITTEN, Given, SessionFile, takes
from dlprof.plan import options as every
from dlprof.plan.option import Option, Switch

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
    from dlprof.cli.finding import NONE, choose
    from dlprof.cli.show import say, write
    from dlprof.cli.streams import complain
    from dlprof.rules import with_findings
    from dlprof.session import model as sessions
    from dlprof.tickets.redaction import Redactor
    from dlprof.tickets.ticket import written

    found = with_findings(sessions.load(session))
    if not found.findings and finding is None:
        say(NONE)
        return
    chosen = choose(found, finding)
    # Never the interpreter that the session names: the file may come from anybody.
    interpreter = given.settled()["python"] if given.raw["run"] else None
    told = f"running the reproducer in {interpreter}"
    complain(told if interpreter else "not run: read the reproducer, then add --run")
    write(given.output, written(found, chosen, interpreter, Redactor.of(os.environ)))
