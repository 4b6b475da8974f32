"""``dlprof repro``."""

from __future__ import annotations

from typing import Annotated

import typer

from dlprof.cli.options import WRITTEN, Given, SessionFile, takes


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
    from dlprof.cli.finding import choose, listed
    from dlprof.cli.show import say, width, write
    from dlprof.errors import UsageError
    from dlprof.rules import with_findings
    from dlprof.session import model as sessions
    from dlprof.tickets.reproducer import reproducer

    found = with_findings(sessions.load(session))
    if finding is None:
        if given.output is not None:
            raise UsageError("-o writes the script of one finding: name it, such as 1")
        say(listed(found, width()))
        return
    write(given.output, reproducer(found, choose(found, finding)).text)
