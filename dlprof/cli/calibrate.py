"""``dlprof calibrate``."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from dlprof.cli.options import REGRESSIONS, Given, takes
from dlprof.plan import options as every
from dlprof.plan.option import Number

BUDGET = replace(
    every.BUDGET,
    kind=Number(1),
    help="How long to measure, and how long a gate may.",
    default=300.0,
    meaning="",
)
NOISE = replace(every.SESSION, help="Write the noise file here.", meaning="beside the scenario")


@takes(
    *(*every.AXES, BUDGET, REGRESSIONS, every.PYTHON, every.TIMEOUT, every.SEED, every.PROBES),
    NOISE,
)
def calibrate(
    first: Annotated[
        str,
        typer.Argument(metavar="SCENARIO|PRODUCER", help="A scenario file; or a framework."),
    ],
    second: Annotated[
        str | None, typer.Argument(metavar="CONSUMER", help="Another framework.")
    ] = None,
    *,
    given: Given,
) -> None:
    """Measure this machine against itself: which slowdown of each case can the gate tell?

    The file that it writes is for dlprof gate --noise FILE.

    Example: dlprof calibrate scenarios/gate.toml --budget 300
    """
    from dlprof.cli import gate_task
    from dlprof.compare.criteria import parse

    asked = gate_task.Asked(
        first, second, python=given.value("python"), budget=given.value("budget")
    )
    gate_task.calibrate(asked, given, parse(given.raw["fail_on"] or ()), given.output)
