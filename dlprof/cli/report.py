"""``dlprof report``."""

from __future__ import annotations

from dlprof.cli import options


def report(
    session: options.SessionFile,
    fail_on: options.FailOn = None,
    html: options.Html = None,
    csv: options.Csv = None,
    parquet: options.Parquet = None,
    markdown: options.Markdown = None,
    junit: options.Junit = None,
    sarif: options.Sarif = None,
    gitlab: options.Gitlab = None,
    github: options.Github = False,
) -> None:
    """Print the report of a session again, or write it in another form."""
    from dlprof import session as sessions
    from dlprof.cli.fail_on import parse
    from dlprof.cli.scenario_report import shown_as
    from dlprof.cli.wanted import Wanted
    from dlprof.judging import judged
    from dlprof.reports.row import row_of

    allowed = parse(fail_on) if fail_on else None
    wanted = Wanted(None, html, csv, parquet, markdown, junit, sarif, gitlab, github)
    wanted.check(**{"the session that is read": session})
    found = judged(sessions.load(session))
    if not wanted.anything:
        shown_as(found)(found, [row_of(result) for result in found.results])
    wanted.give(found, lambda: found.results, allowed, session)
    if allowed is not None:
        allowed.check(found.findings)
