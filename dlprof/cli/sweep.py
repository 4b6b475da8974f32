"""``dlprof sweep``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dlprof.cli.options import Given, takes
from dlprof.plan import options as every
from dlprof.plan.option import Option, Switch

if TYPE_CHECKING:
    from dlprof.plan.pairing import Case
    from dlprof.plan.request import Settings
    from dlprof.scenario.request import Sweep


TIMERS, STEP_TIMERS = 2.4, 9.0
"""Samples of a case in one round, in units of ``sample_ns``: of a conversion, of a step."""
CASE_S = 0.05
"""Making the array, the instruments without a timer, and what only the first round looks at."""
PROCESS_S, IMPORT_S = 1.0, 1.5
"""A worker starts and imports its frameworks: NumPy in 0.1 s, TensorFlow in 3 s and more."""
DIAGNOSIS_S, ALIGNMENT_S = 1.2, 0.015
"""The diagnosis of one path, and what is looked at without one."""
BYTES_PER_S, PASSES = 3e9, 60
"""How fast, and how often, each byte of a copied array is read or written in one round."""
LEAST, MOST = 0.4, 3.0
"""It is right within these factors as a rule: the more where others keep the cores busy."""
LIST = Option(
    "list",
    Switch(),
    "List what would run, case by case; without a file, the scenarios here.",
    every.OUTPUT,
    default=False,
)
DRY_RUN = Option(
    "dry_run",
    Switch(),
    "Say what would run, how many cases, and for how long.",
    every.OUTPUT,
    default=False,
)


@takes(
    *(*every.MEASURED, every.FAIL_ON, LIST, DRY_RUN), *(every.SESSION, every.FULL, *every.REPORTS)
)
def sweep(
    scenario: Annotated[
        Path | None, typer.Argument(help="A scenario file, such as scenarios/round-trip.toml.")
    ] = None,
    *,
    given: Given,
) -> None:
    """Measure what a scenario file asks for, and say whether what it expects is found.

    Options of the command line stand over those of the file.

    Example: dlprof sweep scenarios/round-trip.toml --dry-run
    """
    from dlprof.errors import UsageError

    if scenario is None:
        if not given.raw["list"]:
            raise UsageError("name a scenario file, such as: dlprof sweep scenarios/tour.toml")
        _say_scenarios(Path("scenarios"))
        return
    from dlprof.cli.inspection import inspected
    from dlprof.cli.show import say
    from dlprof.plan.plan import plan
    from dlprof.scenario.read import read
    from dlprof.scenario.request import sweep as request_of

    found = request_of(read(scenario), given.values, inspected)
    if given.raw["list"]:
        say("".join(map(_case_line, plan(found.request, found.catalog).cases)))
    elif given.raw["dry_run"]:
        say("".join(f"{line}\n" for line in _plan_lines(found)))
    else:
        from dlprof.cli.measure import measure

        measure(found.request, found.catalog, given)


def _say_scenarios(folder: Path) -> None:
    """The scenario files of a folder, with their questions."""
    from dlprof.cli.show import say
    from dlprof.errors import ScenarioError, UsageError
    from dlprof.scenario.read import read

    files = sorted(folder.glob("*.toml"))
    if not files:
        raise UsageError(f"there are no scenario files in {folder}")
    for file in files:
        try:
            problem = read(file).problem
            say(f"{file}\n    {problem.title}\n    {problem.question}\n")
        except ScenarioError as error:
            say(f"{file}\n    {error}\n")


def _case_line(case: Case) -> str:
    """Pair, array and code."""
    from dlprof.plan.axes import shape_text

    array = f"{shape_text(case.shape)} {case.dtype} {case.layout} {case.device}"
    if case.is_step:
        return f"{case.producer.name}  {array}  {case.path.import_.name}: {case.path.code}\n"
    return f"{case.producer.name}->{case.consumer.name}  {array}  {case.path.code}\n"


def _plan_lines(found: Sweep) -> Iterator[str]:
    """What would run, how many cases, how long, and what could not be measured."""
    from dataclasses import replace

    from dlprof.analysis.quantity import duration_text, size_text
    from dlprof.plan.plan import plan
    from dlprof.plan.schedule import sample_ns_for
    from dlprof.reports.method import origins

    scenario, settings = found.request.scenario, found.request.settings
    if scenario is not None:
        yield from (scenario.title, scenario.question)
        yield from (f"{origin}: {values}" for origin, values in origins(scenario.origins))
        yield ""
    planned = plan(found.request, found.catalog)
    cases = planned.cases
    yield from _pair_lines(cases)
    yield from (f"left out: {line}" for line in planned.left_out)
    settings = replace(settings, sample_ns=sample_ns_for(settings, cases))
    largest = size_text(max(case.size_bytes for case in cases))
    low, high = map(duration_text, estimate(cases, settings))
    yield f"\n{len(cases):,} cases, arrays of up to {largest}, {settings.rounds} rounds"
    yield f"likely {low} to {high} (an estimate from the settings)"


def _pair_lines(cases: Sequence[Case]) -> Iterator[str]:
    """One line for each pair and device: how many paths, on how many arrays."""
    paths: dict[str, set[str]] = {}
    arrays: dict[str, set[object]] = {}
    for case in cases:
        between = "" if case.is_step else f" → {case.consumer.name}"
        pair = f"{case.producer.name}{between} on {case.device}"
        paths.setdefault(pair, set()).add(case.path.code)
        arrays.setdefault(pair, set()).add((case.shape, case.dtype, case.layout))
    for pair, codes in paths.items():
        yield f"{pair}: paths: {len(codes)}, arrays: {len(arrays[pair])}"


def estimate(cases: Sequence[Case], settings: Settings) -> tuple[float, float]:
    """From and to how many seconds: the constants above are from runs on two cores of a server."""
    from dlprof.plan.schedule import process_of

    rounds_s, processes = 0.0, dict[object, set[str]]()
    for index, case in enumerate(cases):
        samples = (STEP_TIMERS if case.is_step else TIMERS) + len(settings.placements) - 1
        rounds_s += samples * settings.sample_ns / 1e9 + CASE_S
        rounds_s += PASSES * case.size_bytes / BYTES_PER_S
        frameworks = processes.setdefault(process_of(index, case, settings), set())
        frameworks |= {case.producer.name, case.consumer.name}
    rounds_s += sum(PROCESS_S + IMPORT_S * len(frameworks) for frameworks in processes.values())
    paths = len({(case.pair, case.path.code, case.dtype, case.layout) for case in cases})
    total_s = settings.rounds * rounds_s
    total_s += paths * (DIAGNOSIS_S if settings.diagnose else ALIGNMENT_S)
    return LEAST * total_s, MOST * total_s
