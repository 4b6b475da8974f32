"""``dlprof sweep``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dlprof.cli import names, options

if TYPE_CHECKING:
    from dlprof.cli.wanted import Wanted


def sweep(
    scenario: Annotated[
        Path | None,
        typer.Argument(
            parser=names.file("the scenario", "stdin has no folder for what it names"),
            help="A scenario file, such as scenarios/round-trip.toml.",
        ),
    ] = None,
    list_: Annotated[
        bool,
        typer.Option(
            "--list",
            metavar=options.FLAG,
            help="List what would run, case by case; without a file, the scenarios here.",
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            metavar=options.FLAG,
            help="Say what would run, how many cases, and for how long.",
        ),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", metavar=options.FLAG, help="Measure more than 20,000 cases.")
    ] = False,
    shape: options.Shapes = None,
    dtype: options.Dtypes = None,
    layout: options.Layouts = None,
    device: options.Device = None,
    path: options.Paths = None,
    placement: options.Placements = None,
    rounds: options.Rounds = None,
    budget: options.Budget = None,
    timeout: options.Limit = None,
    seed: options.Seed = None,
    quick: options.Quick = False,
    diagnose: options.Diagnose = None,
    fail_on: options.FailOn = None,
    python: options.Python = None,
    probe: options.ProbeFiles = None,
    output: options.Output = None,
    json: options.Json = None,
    html: options.Html = None,
    csv: options.Csv = None,
    parquet: options.Parquet = None,
    markdown: options.Markdown = None,
    junit: options.Junit = None,
    github: options.Github = False,
    resume: options.Resume = None,
) -> None:
    """Measure what a scenario file asks for, and say whether what it expects is found.

    Options of the command line stand over those of the file.

    Example: dlprof sweep scenarios/round-trip.toml --dry-run
    """
    from dlprof.cli import sweeping
    from dlprof.cli.measure import finish, measure
    from dlprof.cli.wanted import Wanted
    from dlprof.errors import UsageError
    from dlprof.rules.fail_on import parse

    allowed = parse(fail_on) if fail_on else None
    wanted = Wanted(json, html, csv, parquet, markdown, junit, github)
    given = sweeping.Given(
        shape,
        dtype,
        layout,
        device,
        path,
        rounds,
        budget,
        timeout,
        seed,
        quick,
        diagnose,
        probe,
        placement,
    )
    if resume is not None:
        others = {"the scenario": scenario, "--python": python, "--yes": yes}
        only_shown = {"--list": list_, "--dry-run": dry_run}
        options.refuse_with_resume({**given.named(), **others, **only_shown})
        finish(resume, output, wanted, allowed)
        return
    if scenario is None:
        if not list_:
            raise UsageError("name a scenario file, such as: dlprof sweep scenarios/tour.toml")
        sweeping.say_scenarios(Path("scenarios"))
        return
    if list_ or dry_run:
        kept = {"-o": output, "--fail-on": fail_on, "--github": github or None}
        _check_nothing_wanted("--list" if list_ else "--dry-run", wanted, kept)
        if list_ and dry_run:
            raise UsageError("--list and --dry-run show different things: give one of them")
    found = sweeping.prepare(scenario, given, python)
    if list_:
        sweeping.say_cases(found)
        return
    if dry_run:
        sweeping.say_plan(found)
        return
    sweeping.check_count(sweeping.count(found), yes)
    measure(found.request, found.catalog, output, wanted, fail_on=allowed)


def _check_nothing_wanted(option: str, wanted: Wanted, others: Mapping[str, object]) -> None:
    """Raises :class:`UsageError` for outputs of what is only shown, and not measured."""
    from dlprof.errors import UsageError

    given = [*wanted.named(), *(name for name, value in others.items() if value is not None)]
    if given:
        raise UsageError(f"{option} measures nothing: leave {', '.join(given)} out")
