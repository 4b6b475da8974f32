"""``dlprof gate`` and ``dlprof calibrate``."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Annotated

import typer

from dlprof.cli import files
from dlprof.cli.options import ANY_PYTHON, COMPARISONS, NOISE, REGRESSIONS, STRICT, Given, takes
from dlprof.cli.streams import complain, show
from dlprof.errors import Interrupted, Unmeasured, UsageError
from dlprof.runner import options as every
from dlprof.runner.option import Choice, Number, Option, Text

BUDGET = replace(
    every.BUDGET,
    help="Time for all rounds: 300, 5m.",
    meaning="10 s for each conversion, 60 s at least",
)
FOLDER = replace(every.SESSION, help="Keep the sessions in this folder.", metavar="FOLDER")
BASE_PYTHON = Option(
    "base_python", Text(), "Interpreter before the change.", every.MEASURING, metavar="PATH"
)
HEAD_PYTHON = Option(
    "head_python", Text(), "Interpreter after the change.", every.MEASURING, metavar="PATH"
)
BASELINE = Option(
    "baseline",
    Text(),
    "BASE: a session of this machine, in place of an interpreter.",
    every.MEASURING,
    metavar="FILE",
)
ALLOCATOR = replace(every.ALLOCATOR, default=every.STEADY, meaning="steady, or the baseline's")
UNSURE = Option(
    "unsure",
    Choice(("pass", "fail")),
    "Make a doubt a pass (exit code 0) or a failure (1).",
    every.FINDINGS,
    meaning="exit code 3",
    metavar="pass|fail",
)
HOW = (
    "name what to compare: a scenario and two interpreters (--base-python, --head-python), "
    "a scenario and a session (--baseline), or two session files"
)


@takes(
    *(*every.AXES, every.PYTHON, BUDGET, every.TIMEOUT, every.SEED, every.PROBES, ALLOCATOR),
    *(BASE_PYTHON, HEAD_PYTHON, BASELINE, ANY_PYTHON, NOISE),
    *(REGRESSIONS, every.WIDE_LIMIT, STRICT, UNSURE, FOLDER, *COMPARISONS),
)
def gate(
    first: Annotated[
        str,
        typer.Argument(
            metavar="SCENARIO|BASE|PRODUCER",
            help="A scenario, the session before the change, or a framework.",
        ),
    ],
    second: Annotated[
        str | None,
        typer.Argument(
            metavar="HEAD|CONSUMER", help="The session after the change, or a framework."
        ),
    ] = None,
    *,
    given: Given,
) -> None:
    """Fail if HEAD is slower than BASE, or worse: exit code 1.

    Measures two interpreters in turns, or one against a baseline; or compares two sessions.

    Example: dlprof gate scenarios/gate.toml --base-python old/bin/python
    --head-python new/bin/python

    Example: dlprof gate before.json after.json --fail-on ready:5%,200ns
    """
    from dlprof.cli.comparison import UNSURE_CODES, compare_files
    from dlprof.cli.gate_measure import measure
    from dlprof.cli.outputs import Outputs
    from dlprof.compare.criteria import parse

    outputs, raw = Outputs.of(given.raw), given.raw
    criteria, code = parse(raw["fail_on"] or ()), UNSURE_CODES[given[UNSURE]]
    sides = (raw["baseline"], raw["base_python"], raw["head_python"])
    if sides == (None, None, None):
        paths = [files.session(name) for name in (first, second) if name is not None]
        named = any(path.suffix or path.exists() for path in paths)  # as frameworks are not
        if second is None or not named:
            raise UsageError(HOW)
        given.check_none(
            "two session files are compared as they are",
            {"--output": raw["output"]},
        )
        compare_files(paths, criteria, code, outputs, "gate", given)
        return
    two = raw["base_python"] is not None and raw["head_python"] is not None
    if two == (raw["baseline"] is not None) or (raw["baseline"] and raw["base_python"]):
        raise UsageError(HOW)
    measure(first, second, given, criteria, code, outputs)


CALIBRATION = replace(
    every.BUDGET,
    kind=Number(1),
    help="How long to measure.",
    default=300.0,
    meaning="",
)
NOISE_FILE = replace(
    every.SESSION, help="Write the noise file here.", meaning="beside the scenario"
)


@takes(
    *(*every.AXES, CALIBRATION, REGRESSIONS, every.PYTHON, every.TIMEOUT, every.SEED, every.PROBES),
    *(replace(every.ALLOCATOR, default=every.STEADY), NOISE_FILE),
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
    from dlprof.compare import noise
    from dlprof.compare.criteria import parse
    from dlprof.compare.gate import Task, cases_of, kept_in
    from dlprof.compare.matching import key
    from dlprof.compare.times import Settings
    from dlprof.report.machine import calibration_document
    from dlprof.runner.files import check_writable
    from dlprof.runner.progress import Bar

    budget_s = given[CALIBRATION]
    criteria = parse(given.raw["fail_on"] or ())
    if not criteria.times:
        raise UsageError("--fail-on names no measure, and nothing else can be calibrated")
    if given.output is None and second is not None:
        raise UsageError("name the noise file with -o: there is no scenario beside which it goes")
    scenario = scenario_named(first, second)
    target = given.output or scenario.file.with_suffix(".noise.json")
    check_writable(target)
    files.check_no_session(target)
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
