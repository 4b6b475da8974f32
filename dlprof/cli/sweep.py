"""``dlprof sweep``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dlprof.cli import files
from dlprof.cli.options import FLAG, Given, takes
from dlprof.plan import options as every

if TYPE_CHECKING:
    from dlprof.plan.pairing import Case
    from dlprof.plan.settings import Settings
    from dlprof.scenario.request import Sweep


@takes(
    *(*every.MEASURED, every.FAIL_ON),
    *(every.SESSION, every.FULL, *every.REPORTS, every.RESUME),
)
def sweep(
    scenario: Annotated[
        Path | None,
        typer.Argument(
            parser=files.file("the scenario", "stdin has no folder for what it names"),
            help="A scenario file, such as scenarios/round-trip.toml.",
        ),
    ] = None,
    list_: Annotated[
        bool,
        typer.Option(
            "--list",
            metavar=FLAG,
            help="List what would run, case by case; without a file, the scenarios here.",
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            metavar=FLAG,
            help="Say what would run, how many cases, and for how long.",
        ),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", metavar=FLAG, help="Measure more than 20,000 cases.")
    ] = False,
    *,
    given: Given,
) -> None:
    """Measure what a scenario file asks for, and say whether what it expects is found.

    Options of the command line stand over those of the file.

    Example: dlprof sweep scenarios/round-trip.toml --dry-run
    """
    from dlprof.errors import UsageError

    if given.resume is not None:
        from dlprof.cli.measure import finish

        own = {"--list": list_, "--dry-run": dry_run, "--yes": yes}
        given.check_resumed({"the scenario": scenario, **own})
        finish(given)
        return
    if scenario is None:
        if not list_:
            raise UsageError("name a scenario file, such as: dlprof sweep scenarios/tour.toml")
        _say_scenarios(Path("scenarios"))
        return
    if list_ and dry_run:
        raise UsageError("--list and --dry-run show different things: give one of them")
    if list_ or dry_run:
        _check_only_shown(given, "--list" if list_ else "--dry-run")

    from dlprof.cli.inspection import inspected
    from dlprof.scenario import read as scenarios
    from dlprof.scenario import request

    asked = request.sweep(scenarios.read(scenario), given.values, inspected)
    if list_:
        _say_cases(asked)
        return
    if dry_run:
        _say_plan(asked)
        return
    request.check_count(request.count(asked), yes)
    from dlprof.cli.measure import measure

    measure(asked.request, asked.catalog, given)


def _check_only_shown(given: Given, option: str) -> None:
    """Raises :class:`UsageError` for outputs of what is only shown, and not measured."""
    from dlprof.cli.outputs import Outputs
    from dlprof.errors import UsageError

    wanted = Outputs.of(given.raw).named()
    wanted += [name for key, name in (("output", "-o"), ("fail_on", "--fail-on")) if given.raw[key]]
    if wanted:
        raise UsageError(f"{option} measures nothing: leave {', '.join(wanted)} out")


def _say_scenarios(folder: Path) -> None:
    """The scenario files of a folder, with their questions."""
    from dlprof.cli.show import say
    from dlprof.errors import ScenarioError, UsageError
    from dlprof.scenario.read import read as read_scenario

    files = sorted(folder.glob("*.toml"))
    if not files:
        raise UsageError(f"there are no scenario files in {folder}")
    for file in files:
        try:
            problem = read_scenario(file).problem
            say(f"{file}\n    {problem.title}\n    {problem.question}\n")
        except ScenarioError as error:
            say(f"{file}\n    {error}\n")


def _cases(found: Sweep) -> tuple[Sequence[Case], tuple[str, ...]]:
    """What would be measured, and what is left out. Raises what the run would raise."""
    from dlprof.plan.plan import plan

    planned = plan(found.request, found.catalog)
    return planned.cases, tuple(planned.left_out)


def _say_cases(found: Sweep) -> None:
    """Every case on a line: pair, array and code."""
    from dlprof.cli.show import say
    from dlprof.plan.axes import shape_text

    for case in _cases(found)[0]:
        array = f"{shape_text(case.shape)} {case.dtype} {case.layout} {case.device}"
        what, code = f"{case.producer.name}->{case.consumer.name}", case.path.code
        if case.is_step:
            what, code = case.producer.name, f"{case.path.import_.name}: {code}"
        say(f"{what}  {array}  {code}\n")


def _say_plan(found: Sweep) -> None:
    """What would run, how many cases, how long, and what could not be measured."""
    from dlprof.cli.show import say
    from dlprof.reports.method import origins
    from dlprof.scenario.request import MOST_CASES, count

    scenario, total = found.request.scenario, count(found)
    if scenario is not None:
        values = (f"{origin}: {values}" for origin, values in origins(scenario.origins))
        say("\n".join((scenario.title, scenario.question, *values)) + "\n\n")
    if total > MOST_CASES:
        say(f"{total:,} cases: more than {MOST_CASES:,}, so --yes is asked for\n")
        return
    cases, left_out = _cases(found)
    say("".join(_plan_lines(cases)))
    say("".join(f"left out: {line}\n" for line in dict.fromkeys(left_out)))
    say(f"\n{_cost_text(cases, found.request.settings)}")


def _plan_lines(cases: Sequence[Case]) -> Iterator[str]:
    """One line for each pair and device: how many paths, on how many arrays."""
    paths: dict[str, set[str]] = {}
    arrays: dict[str, set[object]] = {}
    nouns: dict[str, str] = {}
    for case in cases:
        between = "" if case.is_step else f" → {case.consumer.name}"
        pair = f"{case.producer.name}{between} on {case.device}"
        nouns[pair] = "step" if case.is_step else "path"
        paths.setdefault(pair, set()).add(case.path.code)
        arrays.setdefault(pair, set()).add((case.shape, case.dtype, case.layout))
    for pair, codes in paths.items():
        yield f"{pair}: {_several(codes, nouns[pair])} x {_several(arrays[pair], 'array')}\n"


def _several(things: Collection[object], noun: str) -> str:
    return f"{len(things)} {noun}{'' if len(things) == 1 else 's'}"


def _cost_text(cases: Sequence[Case], settings: Settings) -> str:
    """How many cases there are, what of it fits into memory, and how long it is likely to take."""
    from dlprof.analysis.quantity import size_text
    from dlprof.plan.schedule import sample_ns_for
    from dlprof.scenario.estimate import duration_text, estimate
    from dlprof.worker import memory

    most = max((case.size_bytes for case in cases), default=0)
    text = f"{len(cases):,} cases, arrays of up to {size_text(most)}, {settings.rounds} rounds\n"
    available = memory.available_bytes()
    fitting = [case for case in cases if available is None or case.size_bytes < available]
    if available is not None and len(fitting) < len(cases):
        text += (
            f"{len(cases) - len(fitting):,} of them are larger than the {size_text(available)} of"
            " memory that are available now, and would be skipped\n"
        )
    if not fitting:
        return text
    expected = estimate(fitting, replace(settings, sample_ns=sample_ns_for(settings, cases)))
    low, high = (duration_text(seconds) for seconds in expected.range_s)
    parts = ", ".join(f"{name} {duration_text(s)}" for name, s in expected.parts.items() if s)
    return f"{text}likely {low} to {high}: {parts}\n(an estimate from the settings)\n"
