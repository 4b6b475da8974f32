"""``dlprof ticket``: a finding as a bug report, or as a script."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from dlprof.cli.options import Given, SessionFile, takes
from dlprof.cli.streams import complain, say
from dlprof.errors import NoReproducer, UsageError
from dlprof.runner import files, options
from dlprof.runner.options import Option, Switch
from dlprof.text.clean import clean

if TYPE_CHECKING:
    from dlprof.runner.session import FindingRecord, Session

RUN = Option(
    "run",
    Switch(),
    "Run the reproducer, which is made of the session's text.",
    options.MEASURING,
    default=False,
)
SCRIPT = Option(
    "script",
    Switch(),
    "Print only the reproducer, a Python file that shows the finding without dlprof.",
    options.OUTPUT,
    default=False,
)
OUTPUT = replace(options.SESSION, help="Write the ticket or the reproducer here.")


@takes(RUN, SCRIPT, replace(options.PYTHON, help="Run it in this interpreter."), OUTPUT)
def ticket(
    session: SessionFile,
    finding: Annotated[
        str | None,
        typer.Argument(help="A finding's number or a rule: 2 or DLP018. Default: the worst."),
    ] = None,
    *,
    given: Given,
) -> None:
    """Print a bug ticket for a finding in Markdown, with a reproducer and its output."""
    from dlprof.cli.outputs import deliver
    from dlprof.measuring.judged import load
    from dlprof.ticket.reproducer import reproducer
    from dlprof.ticket.ticket import written

    if given[SCRIPT] and given[RUN]:
        raise UsageError("--script only prints the reproducer: leave out --run")
    if given.output is not None:
        files.check_writable(given.output)
    found = load(session)
    if not found.findings and finding is None:
        say("There are no findings in this session.\n")
        return
    chosen = _choose(found, finding)
    if given[SCRIPT]:
        deliver(reproducer(found, chosen).text, given.output)
        return
    # Never the interpreter that the session names: the file may come from a stranger.
    interpreter = given.settled()["python"] if given[RUN] else None
    running = f"running the reproducer in {interpreter}"
    with suppress(NoReproducer):
        reproducer(found, chosen)
        complain(running if interpreter else "not run: read the reproducer, then add --run")
    deliver(written(found, chosen, interpreter), given.output)
    complain("read the ticket before you paste it")


def _choose(session: Session, word: str | None) -> FindingRecord:
    """Return the finding with this number or rule; the worst one without a word."""
    from dlprof.judge import BY_WORD

    found = session.findings
    rule = BY_WORD.get(word.lower()) if word is not None else None
    for number, finding in enumerate(found, start=1):
        if word is None or word == str(number) or (rule and finding.rule == rule.id):
            return finding
    known = ", ".join(dict.fromkeys(finding.rule for finding in found))
    has = f"it has findings 1 to {len(found)}, of {known}" if found else "it has none"
    raise UsageError(f"the session has no finding {clean(str(word), 40)!r}: {has}")
