"""``dlprof time``."""

from __future__ import annotations

from typing import Annotated

import typer

from dlprof.cli import options


def time(
    statement: Annotated[str, typer.Argument(help="One expression: the conversion.")],
    setup: Annotated[
        list[str] | None,
        typer.Option("-s", "--setup", metavar="CODE", help="Makes the array; may be repeated."),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--source", metavar="NAME", help="The array. Default: the only one in the statement."
        ),
    ] = None,
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
) -> None:
    """Measure a conversion of your own.

    Example: dlprof time -s "import torch; x = torch.rand(4096, 4096)" "x.numpy()"
    """
    from dlprof.cli.measure import measure
    from dlprof.cli.wanted import Wanted
    from dlprof.rules.fail_on import parse
    from dlprof.runner.own_code import Asked, request_for

    allowed = parse(fail_on) if fail_on else None
    wanted = Wanted(json, html, csv, parquet, markdown, junit, github)
    wanted.check()
    request, catalog = request_for(
        Asked(statement, "\n".join(setup or ()), source),
        options.settings_from(rounds, seed, timeout, budget, quick, diagnose),
        options.interpreter(python),
        options.probe_files(probe),
    )
    measure(request, catalog, output, wanted, fail_on=allowed)
