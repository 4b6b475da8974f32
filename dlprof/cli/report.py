"""``dlprof report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dlprof.cli.options import Given, takes
from dlprof.cli.streams import session_name, session_or_trace
from dlprof.cli.trace import CHROME
from dlprof.errors import UsageError
from dlprof.runner import options
from dlprof.runner.files import begins_as


@takes(options.FAIL_ON, options.FULL, *options.REPORTS, CHROME)
def report(
    session: Annotated[
        Path,
        typer.Argument(
            parser=session_or_trace,
            metavar="SESSION",
            help="A session or trace file; LAST is the newest, - is stdin.",
        ),
    ],
    *,
    given: Given,
) -> None:
    """Print the report of a session again, or write it in another form."""
    from dlprof.tracer.rows import SCHEMA as TRACE

    if begins_as(session, TRACE):
        from dlprof.cli.trace import report_trace

        report_trace(session, given)
        return
    from dlprof.cli.measure import check, read_fail_on
    from dlprof.cli.outputs import Outputs, write_session
    from dlprof.judge import cases_in
    from dlprof.measuring.judged import judged
    from dlprof.report.session_document import session_document
    from dlprof.runner import session_file

    outputs, fail_on = Outputs.parse(given.raw), read_fail_on(given)
    if given.raw[CHROME.key] is not None:
        raise UsageError(f"{CHROME.name} is for a trace of dlprof trace, and this is a session")
    found = session_file.load(session)
    cases = cases_in(found.results)
    found = judged(found, cases)
    document = session_document(found, session_name(session), cases=cases)
    if not outputs.targets and not outputs.github:
        outputs.print_report(document)
    write_session(outputs, found, document, fail_on)
    if fail_on is not None:
        check(found, fail_on)
