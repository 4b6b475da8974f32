"""``dlprof report``."""

from __future__ import annotations

from typing import Annotated

import typer

from dlprof.cli import options


def report(
    session: options.SessionFile,
    fail_on: options.FailOn = None,
    html: options.Html = None,
    csv: options.Csv = None,
    parquet: options.Parquet = None,
    markdown: options.Markdown = None,
    junit: options.Junit = None,
    github: options.Github = False,
    history: Annotated[
        str | None,
        typer.Option(
            "--history",
            metavar="ADDRESS",
            help="With --html: show the trend of its cases in this history too.",
        ),
    ] = None,
) -> None:
    """Print the report of a session again, or write it in another form."""
    from dlprof.cli.scenario_report import shown_as
    from dlprof.cli.wanted import Wanted
    from dlprof.errors import UsageError
    from dlprof.reports.result_row import rows_of
    from dlprof.reports.row import check_measured
    from dlprof.rules import with_findings
    from dlprof.rules.fail_on import is_diagnosed, parse
    from dlprof.session import model as sessions

    allowed = parse(fail_on) if fail_on else None
    if history is not None:
        from dlprof.cli.history_task import trends_with

    wanted = Wanted(None, html, csv, parquet, markdown, junit, github)
    wanted.check(**{"the session that is read": session})
    if history is not None and html is None:
        raise UsageError("--history adds a section to --html FILE: give both")
    found = with_findings(sessions.load(session))
    trends = () if history is None else trends_with(found, history)
    if not wanted.anything:
        shown_as(found)(found, rows_of(found.results))
    wanted.give(found, lambda: found.results, allowed, trends)
    if allowed is not None:
        if allowed.unlooked() and not is_diagnosed(found.results):
            typer.echo(f"dlprof: {allowed.unlooked()}", err=True)
        allowed.check(found.findings)
        check_measured(rows_of(found.results))
        allowed.check_looked_for(found.results)
