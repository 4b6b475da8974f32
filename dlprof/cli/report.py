"""``dlprof report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    session: Annotated[Path, typer.Argument(help="A session file.")],
) -> None:
    """Print the report of a session again."""
    from dlprof import session as sessions
    from dlprof.cli.scenario_report import shown_as
    from dlprof.judging import find, own_thresholds
    from dlprof.reports.row import row_of

    found = sessions.load(session)
    if not found.findings:  # written before there were rules, or innocent: then none is found now
        found = found.model_copy(update={"findings": find(found.results, own_thresholds(found))})
    shown_as(found)(found, [row_of(result) for result in found.results])
