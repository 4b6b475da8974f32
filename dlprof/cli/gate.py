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
HOW = (
    "name what to compare: a scenario and two interpreters (--base-python, --head-python), "
    "a scenario and a session (--baseline), or two session files"
)


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
    from dlprof.cli.comparison import compare_files, unsure_code
    from dlprof.cli.gate_measure import Asked, measure
    from dlprof.cli.outputs import Outputs
    from dlprof.compare.criteria import parse
    from dlprof.errors import UsageError

    outputs = Outputs.of(given.raw)
    criteria, code = parse(given.raw["fail_on"] or ()), unsure_code(unsure)
    head = head_python or given.values.get("python")
    if baseline is None and base_python is None and head_python is None:
        paths = [files.session(name) for name in (first, second) if name is not None]
        if len(paths) < len(("BASE", "HEAD")) or not any(
            path.suffix or path.exists() for path in paths
        ):
            raise UsageError(HOW)
        given.check_none(
            "two session files are compared as they are",
            {"--noise": noise, "--output": given.output},
        )
        compare_files(paths, criteria, code, outputs, across_pythons, "gate")
        return
    if (baseline is None) == (base_python is None) or (baseline is None and head_python is None):
        raise UsageError(HOW)
    asked = Asked(first, second, base_python, head, baseline, across_pythons, noise)
    measure(asked, given, criteria, code, outputs)
