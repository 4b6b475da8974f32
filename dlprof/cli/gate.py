"""``dlprof gate``."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from dlprof.cli import files
from dlprof.cli.options import ANY_PYTHON, COMPARISONS, NOISE, REGRESSIONS, STRICT, Given, takes
from dlprof.errors import UsageError
from dlprof.plan import options as every
from dlprof.plan.option import Choice, Option, Text

BUDGET = replace(
    every.BUDGET,
    help="Time for all rounds: 300, 5m.",
    meaning="10 s for each conversion, 60 s at least",
    details="",
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
