"""``dlprof repro``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def repro(
    session: Annotated[Path, typer.Argument(help="A session file.")],
    finding: Annotated[
        str, typer.Argument(help="A finding's number in the report, or a rule: 2 or DLP018.")
    ],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write it here.")
    ] = None,
) -> None:
    """Print one Python file that shows a finding without dlprof.

    It exits with 1 if the problem is there, 0 if it is gone, 125 if it cannot tell: for git bisect.
    """
    from dlprof import session as sessions
    from dlprof.cli.distinct import check_distinct
    from dlprof.cli.finding import choose
    from dlprof.cli.show import say, write
    from dlprof.judging import judged
    from dlprof.repro import reproducer

    check_distinct({"the session that is read": session, "-o": output})
    found = judged(sessions.load(session))
    _, chosen = choose(found, finding)
    text = reproducer(found, chosen).text
    if output is None:
        say(text)
    else:
        write(output, text)
