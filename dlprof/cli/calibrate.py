"""``dlprof calibrate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dlprof.cli import names, options


def calibrate(
    first: Annotated[
        str,
        typer.Argument(metavar="SCENARIO|PRODUCER", help="A scenario file; or a framework."),
    ],
    second: Annotated[
        str | None, typer.Argument(metavar="CONSUMER", help="Another framework.")
    ] = None,
    shape: options.Shapes = None,
    dtype: options.Dtypes = None,
    layout: options.Layouts = None,
    device: options.Device = None,
    path: options.Paths = None,
    budget: Annotated[
        float | None,
        typer.Option(
            "--budget",
            min=1,
            metavar="SECONDS",
            help="How long to measure, and how long a gate may. Default: 300.",
            rich_help_panel=options.MEASURING,
        ),
    ] = None,
    fail_on: options.Regressions = None,
    python: options.Python = None,
    timeout: options.Limit = None,
    seed: options.Seed = None,
    probe: options.ProbeFiles = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            parser=names.file("--output", "the noise of each case goes there"),
            help="Write the noise file here. Default: beside the scenario.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
) -> None:
    """Measure this machine against itself: which slowdown of each case can the gate tell?

    The file that it writes is for dlprof gate --noise FILE.

    Example: dlprof calibrate scenarios/gate.toml --budget 300
    """
    from dlprof.cli import gate_task
    from dlprof.cli.sweeping import Given
    from dlprof.compare.criteria import parse

    given = Given(shape, dtype, layout, device, path, None, None, timeout, seed, False, None, probe)
    asked = gate_task.Asked(first, second, python=python, budget=budget)
    gate_task.calibrate(asked, given, parse(fail_on or ()), output)
