"""``dlprof calibrate``."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Annotated

import typer

from dlprof.cli.files import check_no_session
from dlprof.cli.options import REGRESSIONS, Given, takes
from dlprof.cli.streams import complain, show
from dlprof.errors import Interrupted, Unmeasured, UsageError
from dlprof.plan import options as every
from dlprof.plan.option import Number

BUDGET = replace(
    every.BUDGET,
    kind=Number(1),
    help="How long to measure.",
    default=300.0,
    meaning="",
    details="",
)
ALLOCATOR = replace(every.ALLOCATOR, default=every.STEADY)
NOISE = replace(every.SESSION, help="Write the noise file here.", meaning="beside the scenario")


@takes(
    *(*every.AXES, BUDGET, REGRESSIONS, every.PYTHON, every.TIMEOUT, every.SEED, every.PROBES),
    *(ALLOCATOR, NOISE),
)
def calibrate(
    first: Annotated[
        str, typer.Argument(metavar="SCENARIO|PRODUCER", help="A scenario, or a framework.")
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
    from dlprof.cli.gate_measure import floors_of, say_kept, scenario_named, sweep_of
    from dlprof.compare.criteria import parse
    from dlprof.compare.matching import key
    from dlprof.compare.times import Settings
    from dlprof.gate import noise
    from dlprof.gate.gate import Task, cases_of, kept_in
    from dlprof.reports.machine import calibration_document
    from dlprof.runner.progress import Bar
    from dlprof.session import files

    budget_s = given[BUDGET]
    criteria = parse(given.raw["fail_on"] or ())
    if not criteria.times:
        raise UsageError("--fail-on names no measure, and nothing else can be calibrated")
    if given.output is None and second is not None:
        raise UsageError("name the noise file with -o: there is no scenario beside which it goes")
    scenario = scenario_named(first, second)
    target = given.output or scenario.file.with_suffix(".noise.json")
    files.check_writable(target)
    check_no_session(target)
    side = sweep_of(scenario, given, given.values.get("python"))
    settings = Settings(criteria, floors_of(side, criteria), in_turns=True)
    if not any(settings.floors_of(key(case)) for case in cases_of(side)):
        raise UsageError("the scenario judges no times: there is nothing to calibrate")
    kept = kept_in(None)
    with Bar() as bar:
        found = noise.calibrate(Task(side, side, settings, kept, bar, budget_s))
    say_kept(kept)
    if found is None:
        raise Interrupted(
            f"stopped before {noise.LEAST_ROUNDS} rounds, which tell nothing of the noise"
        )
    if not found.noise.cases:
        raise Unmeasured("no case could be measured, so there is nothing to calibrate")
    noise.write(target, found.noise)
    show(calibration_document(found), full=True)
    with contextlib.suppress(OSError):
        complain(f"noise file: {target}")
    if found.interrupted:
        raise Interrupted("stopped; what was measured until then is in the noise file")
