"""``dlprof report``."""

from __future__ import annotations

from dlprof.cli import options


def report(
    session: options.SessionFile,
    html: options.Html = None,
    csv: options.Csv = None,
    parquet: options.Parquet = None,
    markdown: options.Markdown = None,
) -> None:
    """Print the report of a session again, or write it in another form."""
    from dlprof import session as sessions
    from dlprof.cli.scenario_report import shown_as
    from dlprof.cli.wanted import Wanted
    from dlprof.judging import judged
    from dlprof.reports.row import row_of

    wanted = Wanted(html=html, csv=csv, parquet=parquet, markdown=markdown)
    wanted.check(**{"the session that is read": session})
    found = judged(sessions.load(session))
    if not wanted.anything:
        shown_as(found)(found, [row_of(result) for result in found.results])
    wanted.give(found, lambda: found.results)
