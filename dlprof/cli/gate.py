"""``dlprof gate``."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dlprof.cli import streams
from dlprof.cli.compare import compare_files, report
from dlprof.cli.options import COMPARISONS, REGRESSIONS, Given, takes
from dlprof.cli.streams import complain
from dlprof.errors import Interrupted, UsageError
from dlprof.protocol.messages import DIAGNOSIS
from dlprof.runner import options
from dlprof.runner.axes import NO_TIMES, simulated_in
from dlprof.runner.options import Choice, Number, Option, Text, read_value
from dlprof.runner.quantity import duration_text

if TYPE_CHECKING:
    from dlprof.cli.outputs import Outputs
    from dlprof.compare.verdicts import Criteria
    from dlprof.measuring.scenario import Scenario, Sweep

CASE_S, LEAST_BUDGET_S = 20.0, 120.0
"""The time for each conversion, and for all of few."""
OVERRIDES = [item.key for item in (*options.AXES, options.TIMEOUT, options.PROBES)]
"""Options that replace those of the scenario."""
BUDGET = Option(
    "budget",
    Number(0),
    "Time for all rounds.",
    options.MEASURING,
    meaning="20 s for each conversion, 2 min at least",
    metavar="SECONDS",
)
FOLDER = replace(options.SESSION, help="Keep the sessions in this folder.", metavar="FOLDER")
BASE_PYTHON = Option(
    "base_python", Text(), "Interpreter before the change.", options.MEASURING, metavar="PATH"
)
HEAD_PYTHON = Option(
    "head_python", Text(), "Interpreter after the change.", options.MEASURING, metavar="PATH"
)
UNSURE = Option(
    "unsure",
    Choice(("pass", "fail")),
    "Make a doubt a pass (exit code 0) or a failure (1).",
    options.FINDINGS,
    meaning="exit code 3",
    metavar="pass|fail",
)
BASE_PROGRAM = replace(
    options.PROGRAM, key="base_program", help="The scenario's program before the change."
)
HEAD_PROGRAM = replace(
    options.PROGRAM, key="head_program", help="The scenario's program after the change."
)
PYTHONS, PROGRAMS = (BASE_PYTHON, HEAD_PYTHON), (BASE_PROGRAM, HEAD_PROGRAM)
NO_SIDES = (
    "name the two sides: a scenario and two interpreters (--base-python, --head-python) "
    "or programs (--base-program, --head-program), or two session files"
)


@takes(
    *(*options.AXES, options.PYTHON, BUDGET, options.TIMEOUT, options.PROBES),
    *(*PYTHONS, *PROGRAMS, REGRESSIONS, options.WIDE_LIMIT, UNSURE, FOLDER, *COMPARISONS),
)
def gate(
    first: Annotated[
        str,
        typer.Argument(
            metavar="BASE",
            help="The session before the change, a scenario, or a framework.",
        ),
    ],
    second: Annotated[
        str | None,
        typer.Argument(metavar="HEAD", help="The session after the change, or a framework."),
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
    from dlprof.compare.verdicts import parse

    outputs, raw = Outputs.parse(given.raw), given.raw
    code = {"pass": 0, "fail": REGRESSION, None: NOT_KNOWN}[given[UNSURE]]
    criteria = replace(parse(raw["fail_on"] or ()), wide_limit=given[options.WIDE_LIMIT] / 100)
    sides = [pair for pair in (PYTHONS, PROGRAMS) if any(raw[side.key] for side in pair)]
    if not sides:
        paths = [streams.session(name) for name in (first, second) if name is not None]
        are_frameworks = not any(path.suffix or path.exists() for path in paths)
        if second is None or are_frameworks:
            raise UsageError(NO_SIDES)
        measuring = {option.key for option in (*options.MEASURED, BUDGET, FOLDER)}
        unfit = [item.name for item in given.options if item.key in measuring and raw[item.key]]
        if unfit:
            raise UsageError(f"two sessions are not measured again: leave {', '.join(unfit)} out")
        compare_files(paths, criteria, code, outputs, "gate")
        return
    if len(sides) > 1 or not all(raw[side.key] for side in sides[0]):
        raise UsageError(NO_SIDES)
    _measure(first, second, given, sides[0], criteria, code, outputs)


def _measure(
    first: str,
    second: str | None,
    given: Given,
    sides: tuple[Option, Option],
    criteria: Criteria,
    unsure: int,
    outputs: Outputs,
) -> None:
    """Measure both sides, report, and raise the error of the exit code; ``unsure`` is a doubt's."""
    from dlprof.compare.gate import Task, session_files
    from dlprof.compare.gate import gate as measured
    from dlprof.measuring.judged import load
    from dlprof.measuring.scenario import pair_scenario, read
    from dlprof.runner.measurement import plan
    from dlprof.runner.progress import Bar

    scenario = read(Path(first)) if second is None else pair_scenario(first, second)
    base, head = (_sweep(scenario, given, option) for option in sides)
    count = len(plan(head.request, head.catalog).cases)
    _check_diagnosis(criteria, head)
    budget_s = given.values.get("budget", max(LEAST_BUDGET_S, CASE_S * count))
    files, bar = session_files(given.output), Bar()
    also = ", and the diagnosis as long" if head.request.settings.diagnose else ""
    complain(f"dlprof: the rounds take up to {duration_text(budget_s)}{also}.")
    task = Task(base, head, criteria, files, bar, budget_s, "budget" not in given.values)
    sessions = shlex.join(str(files[name]) for name in ("base", "head"))
    stopped = Interrupted(f"stopped; see what is there with: dlprof compare {sessions}")
    with bar:
        try:
            found, interrupted = measured(task)
        except KeyboardInterrupt:  # before the first round, or while a session is written
            raise stopped from None
    names = (given[sides[0]], given[sides[1]])
    try:
        report(found, unsure, names, outputs, lambda: load(files["head"]), stopped=interrupted)
    finally:
        paths = [str(path) for path in files.values() if path.is_file()]
        complain(f"sessions: {' '.join(paths)}")
    if interrupted:
        raise stopped


def _sweep(scenario: Scenario, given: Given, option: Option) -> Sweep:
    """Return the request of the scenario in one interpreter. Raises :class:`UsageError`."""
    from dlprof.cli.measure import command_words
    from dlprof.measuring.scenario import sweep
    from dlprof.runner.catalog import inspect_interpreter

    if scenario.problem.step:
        raise UsageError(
            f"{scenario.file} has steps, which take no turns: measure it twice with dlprof run, "
            "and compare the sessions"
        )
    values = {key: given.values[key] for key in OVERRIDES if key in given.values}
    if option in PYTHONS:
        values["python"] = read_value(options.PYTHON, given[option], option.name)
    elif scenario.problem.program:
        values["program"] = given[option]
    else:
        raise UsageError(f"{scenario.file} has no program that {option.name} could replace")
    if simulated_in({**scenario.options, **values}.get("devices", ())):
        raise UsageError(f"a gate compares {NO_TIMES}: use dlprof run")
    found = sweep(scenario, values, inspect_interpreter)
    command = command_words(("gate", *found.request.command[1:]))
    settings = replace(found.request.settings, survey=False)  # it takes no times
    return replace(found, request=replace(found.request, command=command, settings=settings))


def _check_diagnosis(criteria: Criteria, head: Sweep) -> None:
    """Raise :class:`UsageError` for verdicts of a diagnosis that the scenario leaves out."""
    from dlprof.compare.verdicts import SCALES

    known = {word for measure in SCALES if measure not in DIAGNOSIS for word in SCALES[measure]}
    missing = sorted(criteria.words - known)
    if missing and not head.request.settings.diagnose:
        raise UsageError(
            f"--fail-on {', '.join(missing)} needs the diagnosis, which the scenario leaves out: "
            "write diagnose = true"
        )
