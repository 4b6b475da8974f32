"""``dlprof compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dlprof.cli import files
from dlprof.cli.options import ANY_PYTHON, COMPARISONS, NOISE, REGRESSIONS, Given, takes


@takes(ANY_PYTHON, NOISE, REGRESSIONS, *COMPARISONS)
def compare(
    base: Annotated[
        Path, typer.Argument(parser=files.session, metavar="BASE", help="A session file: before.")
    ],
    head: Annotated[
        Path, typer.Argument(parser=files.session, metavar="HEAD", help="A session file: after.")
    ],
    *,
    given: Given,
) -> None:
    """Compare two sessions: is HEAD slower than BASE, or worse?

    Example: dlprof compare before.json after.json
    """
    from dlprof.cli.comparison import compare_files, unsure_code
    from dlprof.cli.outputs import Outputs
    from dlprof.compare.criteria import parse

    outputs, criteria = Outputs.of(given.raw), parse(given.raw["fail_on"] or ())
    unsure = unsure_code(None) if given.raw["fail_on"] else None
    compare_files((base, head), criteria, unsure, outputs, "compare", given)
