"""``dlprof gate``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from dlprof.cli import files
from dlprof.cli.options import COMPARISONS, REGRESSIONS, AcrossPythons, Given, takes
from dlprof.plan import options as every

BUDGET = replace(every.BUDGET, help="Start no round that would end later.", default=300.0)
BUDGET = replace(BUDGET, meaning="")
FOLDER = replace(every.SESSION, help="Keep the sessions in this folder.", metavar="FOLDER")


@takes(
    *(*every.AXES, every.PYTHON, BUDGET, every.TIMEOUT, every.SEED, every.PROBES),
    *(REGRESSIONS, FOLDER, *COMPARISONS),
)
def gate(
    first: Annotated[
        str,
        typer.Argument(
            metavar="SCENARIO|BASE|PRODUCER",
            help="A scenario file; or a session file: before; or a framework.",
        ),
    ],
    second: Annotated[
        str | None,
        typer.Argument(metavar="HEAD|CONSUMER", help="A session file: after; or a framework."),
    ] = None,
    base_python: Annotated[
        str | None,
        typer.Option(
            "--base-python",
            metavar="PATH",
            help="The interpreter of BASE: before.",
            rich_help_panel=every.MEASURING,
        ),
    ] = None,
    head_python: Annotated[
        str | None,
        typer.Option(
            "--head-python",
            metavar="PATH",
            help="The interpreter of HEAD: after.",
            rich_help_panel=every.MEASURING,
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(
            "--baseline",
            metavar="FILE",
            parser=files.session,
            help="A session to measure HEAD against, of this machine.",
            rich_help_panel=every.MEASURING,
        ),
    ] = None,
    across_pythons: AcrossPythons = False,
    noise: Annotated[
        Path | None,
        typer.Option(
            "--noise",
            metavar="FILE",
            parser=files.file("--noise"),
            help="What dlprof calibrate wrote.",
            rich_help_panel=every.MEASURING,
        ),
    ] = None,
    unsure: Annotated[
        str | None,
        typer.Option(
            "--unsure",
            metavar="pass|fail",
            help="Exit code 0 or 1 where it is unsure. Default: exit code 3.",
            rich_help_panel=every.FINDINGS,
        ),
    ] = None,
    *,
    given: Given,
) -> None:
    """Fail if HEAD is slower than BASE, or worse: exit code 1. See docs/gate.md.

    Measures two interpreters in turns, or one against a baseline; or compares two sessions.

    Example: dlprof gate scenarios/gate.toml --base-python old/bin/python
    --head-python new/bin/python

    Example: dlprof gate before.json after.json --fail-on ready:5%,200ns
    """
    from dlprof.cli.comparison import show, unsure_code
    from dlprof.cli.gate_task import Asked, check_files_only, measure
    from dlprof.cli.outputs import Outputs
    from dlprof.compare.criteria import parse

    to = Outputs.of(given.raw, over_sessions=False)
    criteria, code = parse(given.raw["fail_on"] or ()), unsure_code(unsure)
    asked = Asked(
        first,
        second,
        base_python,
        head_python,
        baseline,
        given.value("python"),
        given.value("budget"),
        noise,
        given.output,
        across_pythons,
    )
    if asked.measures:
        measure(asked, given, criteria, code, to)
        return
    check_files_only(asked, given)
    sessions = files.session(first), files.session(second or "")
    show(sessions, criteria, code, to, across_pythons, verb="gate")
