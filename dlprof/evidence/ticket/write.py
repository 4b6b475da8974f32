"""From a finding to its ticket: make the reproducer, run it if that may be done, write it down."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from dlprof.errors import NoReproducer
from dlprof.evidence.repro import Reproducer, reproducer
from dlprof.evidence.ticket.also import tried, untried
from dlprof.evidence.ticket.run import run
from dlprof.evidence.ticket.text import ticket
from dlprof.session.environments import seen_from
from dlprof.session.model import FindingRecord, Session

FOREIGN = (
    "this session was not written by this user's dlprof on this machine, or was changed since."
    " Read the script first; --run runs it"
)

GIVEN = "in the interpreter of --python"
OURS = "in the interpreter that runs dlprof"
GONE = "the interpreter that was measured is no longer there; --python names another"


def written(
    session: Session,
    number: int,
    finding: FindingRecord,
    ours: bool,
    wanted: bool | None,
    python: str | None,
) -> str:
    """The ticket of a finding.

    Source text in a session is anybody's: it is run if ``wanted``, and where that is None if the
    session is ``ours``. So is the interpreter that a session names: another's is never started.
    """
    session = seen_from(session, finding.results)
    script: Reproducer | str
    try:
        script = reproducer(session, finding)
    except NoReproducer as reason:
        return ticket(session, number, finding, str(reason), str(reason))
    also = untried(session, finding)
    if wanted is False:
        return ticket(session, number, finding, script, "--no-run was asked for", also)
    if not (wanted or ours):
        return ticket(session, number, finding, script, FOREIGN, also)
    interpreter = python or (_measured(session) if ours else sys.executable)
    if interpreter is None:
        return ticket(session, number, finding, script, GONE, also)
    ran = run(script.text, interpreter)
    if python is not None or not ours:
        ran = replace(ran, where=OURS if python is None else GIVEN)
    if ran.verdict == "there":
        also = tried(session, finding, lambda text: run(text, interpreter))
    return ticket(session, number, finding, script, ran, also)


def _measured(session: Session) -> str | None:
    """The interpreter that was measured, if it is still there."""
    for path in (session.request.get("python"), session.environment.get("executable")):
        if isinstance(path, str) and path and Path(path).is_file():
            return path
    return None
