"""``dlprof gate``."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dlprof.cli import files
from dlprof.cli.compare import compare_files, tell
from dlprof.cli.options import COMPARISONS, REGRESSIONS, Given, takes
from dlprof.cli.streams import complain
from dlprof.errors import Interrupted, UsageError
from dlprof.protocol.messages import DIAGNOSIS
from dlprof.runner import options as every
from dlprof.runner.axes import NO_TIMES, simulated_in
from dlprof.runner.catalog import inspect_interpreter
from dlprof.runner.measurement import plan
from dlprof.runner.options import Choice, Option, Text, value_of
from dlprof.runner.progress import Bar
from dlprof.runner.quantity import duration_text

if TYPE_CHECKING:
    from dlprof.cli.outputs import Outputs
    from dlprof.compare.times import Settings
    from dlprof.measuring.scenario import Scenario, Sweep

CASE_S, LEAST_BUDGET_S = 20.0, 120.0
"""The time for each conversion, and for all of few."""
OF_SCENARIO = [one.key for one in (*every.AXES, every.TIMEOUT, every.SEED, every.PROBES)]
"""What the command line may say instead of the scenario."""
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
    from dlprof.cli.outputs import Outputs
    from dlprof.compare.comparison import NOT_KNOWN, REGRESSION
    from dlprof.compare.criteria import parse
    from dlprof.compare.times import Settings

    outputs, raw = Outputs.of(given.raw), given.raw
    code = {"pass": 0, "fail": REGRESSION, None: NOT_KNOWN}[given[UNSURE]]
    settings = Settings(parse(raw["fail_on"] or ()), wide_limit=given[every.WIDE_LIMIT] / 100)
    if raw["base_python"] is None and raw["head_python"] is None:
        paths = [files.session(name) for name in (first, second) if name is not None]
        named = any(path.suffix or path.exists() for path in paths)  # as frameworks are not
        if second is None or not named:
            raise UsageError(HOW)
        measured = {one.key for one in (*every.MEASURED, FOLDER)}
        unfit = [
            one.name for one in given.options if one.key in measured and raw[one.key] is not None
        ]
        if unfit:
            told = "two session files are compared as they are"
            raise UsageError(f"{told}: leave {', '.join(unfit)} out")
        compare_files(paths, settings, code, outputs, "gate")
        return
    if raw["base_python"] is None or raw["head_python"] is None:
        raise UsageError(HOW)
    _measure(first, second, given, replace(settings, in_turns=True), code, outputs)


def _measure(
    first: str, second: str | None, given: Given, settings: Settings, unsure: int, outputs: Outputs
) -> None:
    """Measure both sides, report, and raise what the exit code says.

    ``unsure`` is the exit code of a doubt.
    """
    from dlprof.compare.gate import Task, kept_in
    from dlprof.compare.gate import gate as measured
    from dlprof.measuring.scenario import of_pair, read

    scenario = read(Path(first)) if second is None else of_pair(first, second)
    base, head = (_sweep(scenario, given, option) for option in (BASE_PYTHON, HEAD_PYTHON))
    count = len(plan(head.request, head.catalog).cases)
    _check_looked_for(settings, head)
    budget_s = given.values.get("budget", max(LEAST_BUDGET_S, CASE_S * count))
    kept, bar = kept_in(given.output), Bar()
    also = ", and the diagnosis as long" if head.request.settings.diagnose else ""
    complain(f"dlprof: the rounds take up to {duration_text(budget_s)}{also}.")
    task = Task(base, head, settings, kept, bar, budget_s, "budget" not in given.values)
    left = shlex.join(str(kept[name]) for name in ("base", "head"))
    stopped = Interrupted(f"stopped; see what is there with: dlprof compare {left}")
    with bar:
        try:
            found = measured(task)
        except KeyboardInterrupt:  # before the first round, or while a session is written
            raise stopped from None
    names = (given[BASE_PYTHON], given[HEAD_PYTHON])
    try:
        tell(found.comparison, unsure, names, outputs, stopped=found.interrupted)
    finally:
        written = [str(path) for path in kept.values() if path.is_file()]
        complain(f"sessions: {' '.join(written)}")
    if found.interrupted:
        raise stopped


def _sweep(scenario: Scenario, given: Given, option: Option) -> Sweep:
    """Return what the scenario comes to in one interpreter. Raises :class:`UsageError`."""
    from dlprof.cli.measure import typed
    from dlprof.measuring.scenario import sweep

    if scenario.problem.step:
        raise UsageError(
            f"{scenario.file} has steps, which take no turns: measure it twice with dlprof run, "
            "and compare the sessions"
        )
    values = {key: given.values[key] for key in OF_SCENARIO if key in given.values}
    values["python"] = value_of(every.PYTHON, given[option], option.name)
    if simulated_in({**scenario.options, **values}.get("devices", ())):
        raise UsageError(f"a gate compares {NO_TIMES}: use dlprof run")
    found = sweep(scenario, values, inspect_interpreter)
    command = typed(("gate", *found.request.command[1:]))
    settings = replace(found.request.settings, survey=False)  # it takes no times
    return replace(found, request=replace(found.request, command=command, settings=settings))


def _check_looked_for(settings: Settings, head: Sweep) -> None:
    """Raise :class:`UsageError` for verdicts that nothing will look for."""
    from dlprof.compare.verdicts import SCALES

    left_out = () if head.request.settings.diagnose else DIAGNOSIS
    known = {word for what in SCALES if what not in left_out for word in SCALES[what]}
    if missing := sorted(settings.criteria.words - known):
        raise UsageError(
            f"--fail-on {', '.join(missing)} needs the diagnosis, which the scenario leaves out: "
            "write diagnose = true"
        )
