"""``dlprof gate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dlprof.cli import names, options


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
    shape: options.Shapes = None,
    dtype: options.Dtypes = None,
    layout: options.Layouts = None,
    device: options.Device = None,
    path: options.Paths = None,
    base_python: Annotated[
        str | None,
        typer.Option(
            "--base-python",
            metavar="PATH",
            help="The interpreter of BASE: before.",
            rich_help_panel=options.MEASURING,
        ),
    ] = None,
    head_python: Annotated[
        str | None,
        typer.Option(
            "--head-python",
            metavar="PATH",
            help="The interpreter of HEAD: after.",
            rich_help_panel=options.MEASURING,
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(
            "--baseline",
            metavar="FILE",
            parser=names.session,
            help="A session to measure HEAD against, of this machine.",
            rich_help_panel=options.MEASURING,
        ),
    ] = None,
    python: options.Python = None,
    across_pythons: options.AcrossPythons = False,
    budget: Annotated[
        float | None,
        typer.Option(
            "--budget",
            min=0,
            metavar="SECONDS",
            help="Start no round that would end later. Default: 300.",
            rich_help_panel=options.MEASURING,
        ),
    ] = None,
    noise: Annotated[
        Path | None,
        typer.Option(
            "--noise",
            metavar="FILE",
            parser=names.file("--noise"),
            help="What dlprof calibrate wrote.",
            rich_help_panel=options.MEASURING,
        ),
    ] = None,
    fail_on: options.Regressions = None,
    unsure: Annotated[
        str | None,
        typer.Option(
            "--unsure",
            metavar="pass|fail",
            help="Exit code 0 or 1 where it is unsure. Default: exit code 3.",
            rich_help_panel=options.FINDINGS,
        ),
    ] = None,
    timeout: options.Limit = None,
    seed: options.Seed = None,
    probe: options.ProbeFiles = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FOLDER",
            parser=names.file("--output", "the sessions go into a folder"),
            help="Keep the sessions here.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    json: options.ComparisonJson = None,
    markdown: options.Markdown = None,
    junit: options.Junit = None,
    github: options.Github = False,
) -> None:
    """Fail if HEAD is slower than BASE, or worse: exit code 1. See docs/gate.md.

    Measures two interpreters in turns, or one against a baseline; or compares two sessions.

    Example: dlprof gate scenarios/gate.toml --base-python old/bin/python
    --head-python new/bin/python

    Example: dlprof gate before.json after.json --fail-on ready:5%,200ns
    """
    from dlprof.cli.comparison import show, unsure_code
    from dlprof.cli.comparison_output import ComparisonOutput
    from dlprof.cli.gate_task import Asked, check_files_only, measure
    from dlprof.cli.sweeping import Given
    from dlprof.compare.criteria import parse

    to = ComparisonOutput(json, markdown, junit, github, "gate")
    criteria, code = parse(fail_on or ()), unsure_code(unsure)
    given = Given(shape, dtype, layout, device, path, None, None, timeout, seed, False, None, probe)
    asked = Asked(
        first,
        second,
        base_python,
        head_python,
        baseline,
        python,
        budget,
        noise,
        output,
        across_pythons,
    )
    if asked.measures:
        measure(asked, given, criteria, code, to)
        return
    check_files_only(asked, given)
    files = names.session(first), names.session(second or "")
    show(files, criteria, code, to, across_pythons)
