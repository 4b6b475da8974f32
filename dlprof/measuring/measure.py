"""A run and its judged session: what was measured, what the rules find, and what was expected."""

from __future__ import annotations

import os

from dlprof.judge import cases_in, find_in, own_thresholds
from dlprof.judge.cases import Cases
from dlprof.measuring import expectation
from dlprof.runner import session_file
from dlprof.runner.measurement import Measurement
from dlprof.runner.session import Session


def run(measurement: Measurement) -> None:
    """Measure all rounds, the survey and the diagnosis.

    A session that is complete is left as it is. Raises :class:`Unsaved` if the file can no longer
    be written.
    """
    if measurement.file.is_complete:
        return
    with measurement.running() as runner:
        runner.run()
        measurement.complete_with(runner)


def load(path: str | os.PathLike[str]) -> Session:
    """Read and judge a session file. Raises :class:`SessionError` if it is not one."""
    return judged(session_file.load(path))


def judged(session: Session, cases: Cases | None = None) -> Session:
    """The session with its findings, and with what its scenario expected of them.

    ``cases`` are those of the session, if the caller has them.
    """
    if session.findings or session.expectations:  # printed by --json
        return session
    findings = find_in(cases or cases_in(session.results), own_thresholds(session))
    scenario = session.request.scenario
    expected = [expectation.parse(text) for text in (scenario.expect if scenario else ())]
    checked = expectation.check(expected, session.results, findings, session.rounds)
    return session.model_copy(update={"findings": findings, "expectations": checked})
