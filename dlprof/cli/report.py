"""``dlprof report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dlprof.cli import options


def report(
    session: Annotated[Path, typer.Argument(help="A session file.")],
    html: options.Html = None,
    csv: options.Csv = None,
    parquet: options.Parquet = None,
    markdown: options.Markdown = None,
) -> None:
    """Print the report of a session again, or write it in another form."""
    from dlprof import session as sessions
    from dlprof.cli.scenario_report import shown_as
    from dlprof.cli.wanted import Wanted
    from dlprof.judging import judged
    from dlprof.reports.row import rows_of

    wanted = Wanted(html=html, csv=csv, parquet=parquet, markdown=markdown)
    wanted.check(**{"the session that is read": session})
    found = judged(sessions.load(session))
    if not wanted.anything:
        shown_as(found)(found, rows_of(found.results))
    wanted.give(found, lambda: found.results)
