"""A run and its rules: measure, find, check what a scenario expects, and keep the session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dlprof.errors import Unsaved, UsageError
from dlprof.rules import cases_in, find, own_thresholds
from dlprof.runner.measurement import Found, Measurement
from dlprof.runner.rounds import Runner
from dlprof.scenario import expectation
from dlprof.session import files
from dlprof.session import model as sessions
from dlprof.session.interrupts import uninterrupted
from dlprof.session.state import default_path


def session_path(output: Path | None, verb: str) -> Path:
    """Where the session is kept: in the user's state folder for a pipe, or if nothing is named."""
    return default_path(verb) if output is None or files.special(output) else output


def run(measurement: Measurement) -> None:
    """All rounds, the diagnosis, and round trips by the cheapest safe paths.

    The session file is written as the run goes on, and whatever ends it. Raises
    :class:`UsageError` before anything is measured if it cannot be written, and
    :class:`Unsaved` if it no longer can at the end.
    """
    with running(measurement) as runner:
        runner.run()
        if measurement.request.settings.round_trips and not runner.out_of_time:
            measurement.measure_round_trips(_ends(measurement))
        measurement.complete_with(runner)


@contextmanager
def running(measurement: Measurement) -> Iterator[Runner]:
    """The runner of a measurement. Whatever ends it, the rules look at it and it is saved."""
    runner = measurement.start()
    try:
        yield runner
    finally:
        measurement.end(runner, _judged)


def hand_over(measurement: Measurement, output: Path | None) -> None:
    """Write the session to ``output`` if that is a pipe or a device. Its reader may be slow.

    Raises :class:`Unsaved` if the reader is gone, or if the user does not wait for it.
    """
    if output is None or not files.special(output):
        return
    kept = f"the session is in {measurement.path}"
    try:
        sessions.write(output, measurement.header(), measurement.results())
    except UsageError as error:
        raise Unsaved(f"{error}; {kept}") from None
    except KeyboardInterrupt:
        with uninterrupted():
            raise Unsaved(f"stopped while {output} waited for its reader; {kept}") from None


def _judged(measurement: Measurement) -> Found:
    findings = _findings(measurement)
    scenario = measurement.request.scenario
    if scenario is None or not scenario.expect:
        return findings, []
    expected = [expectation.parse(text) for text in scenario.expect]
    rounds = measurement.header().rounds
    return findings, expectation.check(expected, measurement.results(), findings, rounds)


def _ends(measurement: Measurement) -> list[tuple[list[int], list[int]]]:
    """For each round trip the cases that may lead there, the best first, and those that may lead
    back: the safe paths by their time, then those that are right.
    """
    cases = cases_in(measurement.results(), _findings(measurement))
    return [
        ([case.index for case in there], [case.index for case in back])
        for there, back in cases.round_trips()
    ]


def _findings(measurement: Measurement) -> list[sessions.FindingRecord]:
    return find(measurement.results(), own_thresholds(measurement.header()))
