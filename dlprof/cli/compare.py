"""``dlprof compare``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from dlprof.cli import files
from dlprof.cli.options import COMPARISONS, REGRESSIONS, Given, takes
from dlprof.cli.streams import complain
from dlprof.errors import UsageError

OF_TWO = ("fail_on", "junit", "github")
"""Options that have a meaning for two sessions alone."""


@takes(REGRESSIONS, *COMPARISONS)
def compare(
    session: Annotated[
        list[Any],
        typer.Argument(
            parser=files.session,
            metavar="BASE HEAD...",
            help="Two session files: before and after. Or more of them, or a folder.",
        ),
    ],
    *,
    given: Given,
) -> None:
    """Compare two sessions: is HEAD slower than BASE, or worse? Of more: what differs?

    Example: dlprof compare before.json after.json
    """
    are_files = [not one.is_dir() for one in session]
    if are_files != [True, True]:
        compare_many(session, given)
        return
    from dlprof.cli.comparison import compare_files
    from dlprof.cli.outputs import Outputs
    from dlprof.compare.comparison import NOT_KNOWN
    from dlprof.compare.criteria import parse
    from dlprof.compare.times import Settings

    outputs, settings = Outputs.of(given.raw), Settings(parse(given.raw["fail_on"] or ()))
    unsure = NOT_KNOWN if given.raw["fail_on"] else None
    compare_files((session[0], session[1]), settings, unsure, outputs, "compare")


def compare_many(named: Sequence[Path], given: Given) -> None:
    """Show what differs between environments. Raises :class:`UsageError`."""
    if len(named) == 1 and not named[0].is_dir():
        raise UsageError("one session is no comparison: name another, or a folder of sessions")
    if found := [f"--{name.replace('_', '-')}" for name in OF_TWO if given.raw[name]]:
        raise UsageError(f"{', '.join(found)} compares two sessions: name two, and no folder")
    from dlprof.cli.outputs import Outputs
    from dlprof.compare.environments import environments_of
    from dlprof.report.environments_document import environments_document, render_json

    outputs = Outputs.of(given.raw)
    environments = environments_of(named, lambda why: complain(f"dlprof: left out: {why}"))
    if len(environments.columns) == 1:
        raise UsageError("the sessions are of one environment: name two of them")
    document = environments_document(environments)
    outputs.print_report(document)
    outputs.write(document, {"--json": lambda: [render_json(environments)]})
