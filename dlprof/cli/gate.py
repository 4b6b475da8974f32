"""``dlprof gate``."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from dlprof.cli import files
from dlprof.cli.options import COMPARISONS, REGRESSIONS, Given, takes
from dlprof.errors import UsageError
from dlprof.runner import options as every
from dlprof.runner.option import Choice, Option, Text

BUDGET = replace(
    every.BUDGET,
    help="Time for all rounds: 300, 5m.",
    meaning="20 s for each conversion, 2 min at least",
)
FOLDER = replace(every.SESSION, help="Keep the sessions in this folder.", metavar="FOLDER")
BASE_PYTHON = Option(
    "base_python", Text(), "Interpreter before the change.", every.MEASURING, metavar="PATH"
)
HEAD_PYTHON = Option(
    "head_python", Text(), "Interpreter after the change.", every.MEASURING, metavar="PATH"
)
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
    "or two session files"
)


@takes(
    *(*every.AXES, every.PYTHON, BUDGET, every.TIMEOUT, every.SEED, every.PROBES),
    *(BASE_PYTHON, HEAD_PYTHON, REGRESSIONS, every.WIDE_LIMIT, UNSURE, FOLDER, *COMPARISONS),
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

    Measures two interpreters in turns, or compares two sessions.

    Example: dlprof gate scenarios/gate.toml --base-python old/bin/python
    --head-python new/bin/python

    Example: dlprof gate before.json after.json --fail-on ready:5%,200ns
    """
    from dlprof.cli.comparison import UNSURE_CODES, compare_files
    from dlprof.cli.gate_measure import measure
    from dlprof.cli.outputs import Outputs
    from dlprof.compare.criteria import parse
    from dlprof.compare.times import Settings

    outputs, raw = Outputs.of(given.raw), given.raw
    code, wide_limit = UNSURE_CODES[given[UNSURE]], given[every.WIDE_LIMIT] / 100
    settings = Settings(parse(raw["fail_on"] or ()), wide_limit=wide_limit)
    if raw["base_python"] is None and raw["head_python"] is None:
        paths = [files.session(name) for name in (first, second) if name is not None]
        named = any(path.suffix or path.exists() for path in paths)  # as frameworks are not
        if second is None or not named:
            raise UsageError(HOW)
        given.check_none(
            "two session files are compared as they are",
            {"--output": raw["output"]},
        )
        compare_files(paths, settings, code, outputs, "gate")
        return
    if raw["base_python"] is None or raw["head_python"] is None:
        raise UsageError(HOW)
    measure(first, second, given, replace(settings, in_turns=True), code, outputs)
