"""``dlprof sweep``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dlprof.cli.options import Given, takes
from dlprof.cli.run import inspected
from dlprof.cli.streams import say
from dlprof.errors import ScenarioError, UsageError
from dlprof.runner import options as every
from dlprof.runner.option import Option, Switch

if TYPE_CHECKING:
    from dlprof.measuring.sweep import Sweep
    from dlprof.runner.pairing import Case


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
    *(*every.MEASURED, every.FAIL_ON, LIST, DRY_RUN),
    *(every.SESSION, every.YES, every.FULL, *every.REPORTS),
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
    if scenario is None:
        if not given.raw["list"]:
            raise UsageError("name a scenario file, such as: dlprof sweep scenarios/tour.toml")
        _say_scenarios(Path("scenarios"))
        return
    from dlprof.measuring.measure import check_length
    from dlprof.measuring.scenario import read
    from dlprof.measuring.sweep import sweep as request_of
    from dlprof.runner.plan import plan

    found = request_of(read(scenario), given.values, inspected)
    if not given.raw["yes"]:
        check_length(found.request, found.catalog)
    if given.raw["list"]:
        say("".join(map(_case_line, plan(found.request, found.catalog).cases)))
    elif given.raw["dry_run"]:
        say("".join(f"{line}\n" for line in _plan_lines(found)))
    else:
        from dlprof.cli.measure import measure

        measure(found.request, found.catalog, given)


def _say_scenarios(folder: Path) -> None:
    """The scenario files of a folder, with their questions."""
    from dlprof.measuring.scenario import read

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
    from dlprof.runner.axes import shape_text

    array = f"{shape_text(case.shape)} {case.dtype} {case.layout} {case.device}"
    if case.is_step:
        return f"{case.producer.name}  {array}  {case.path.import_.name}: {case.path.code}\n"
    return f"{case.producer.name}->{case.consumer.name}  {array}  {case.path.code}\n"


def _plan_lines(found: Sweep) -> Iterator[str]:
    """What would run, how many cases, how long, and what could not be measured."""
    from dataclasses import replace

    from dlprof.measuring.measure import estimate_s, likely_text
    from dlprof.report.method import origins
    from dlprof.runner.plan import plan
    from dlprof.runner.quantity import size_text
    from dlprof.runner.schedule import sample_ns_for

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
    yield f"\n{len(cases):,} cases, arrays of up to {largest}, {settings.rounds} rounds"
    yield f"{likely_text(estimate_s(cases, settings))} (an estimate from the settings)"


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
