"""``dlprof compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dlprof.cli import options


def compare(
    base: Annotated[Path, typer.Argument(help="A session file: before.")],
    head: Annotated[Path, typer.Argument(help="A session file: after.")],
    fail_on: options.Regressions = None,
    json: options.ComparisonJson = None,
) -> None:
    """Compare two sessions: is HEAD slower than BASE, or worse?

    Example: dlprof compare before.json after.json
    """
    from dlprof.cli.comparing import criteria_from, show, unsure_code

    criteria = criteria_from(fail_on)
    show(base, head, criteria, unsure_code(None) if fail_on else None, json)
