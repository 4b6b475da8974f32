"""A run: how long it will take, what the rules find in it, what was expected, and its session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from dlprof.errors import Unsaved, UsageError
from dlprof.judge import find, own_thresholds
from dlprof.measuring import expectation
from dlprof.runner import files
from dlprof.runner import session as sessions
from dlprof.runner.catalog import Catalog
from dlprof.runner.interrupts import uninterrupted
from dlprof.runner.measurement import Found, Measurement
from dlprof.runner.pairing import Case
from dlprof.runner.plan import count, first_cases
from dlprof.runner.quantity import duration_text
from dlprof.runner.request import Request, Settings
from dlprof.runner.rounds import Runner
from dlprof.runner.schedule import process_of, sample_ns_for
from dlprof.runner.state import default_path


def session_path(output: Path | None, verb: str) -> Path:
    """Where the session is kept: in the user's state folder for a pipe, or if nothing is named."""
    return default_path(verb) if output is None or files.special(output) else output


def run(measurement: Measurement) -> None:
    """Measure all rounds, the survey and the diagnosis.

    The session file is written as the run goes on, and whatever ends it. Raises
    :class:`UsageError` before anything is measured if it cannot be written, and
    :class:`Unsaved` if it no longer can at the end.
    """
    with running(measurement) as runner:
        runner.run()
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


def _findings(measurement: Measurement) -> list[sessions.FindingRecord]:
    return find(measurement.results(), own_thresholds(measurement.header()))


MOST_CASES, MOST_S = 10_000, 2 * 3600.0
"""More than that is measured only if the user says so."""

TIMERS, STEP_TIMERS = 2.4, 9.0
"""Samples of a case in one round, in units of ``sample_ns``: of a conversion, of a step."""
CASE_S = 0.05
"""Making the array, the instruments without a timer, and what only the first round looks at."""
PROCESS_S, IMPORT_S = 1.0, 1.5
"""A worker starts and imports its frameworks: NumPy in 0.1 s, TensorFlow in 3 s and more."""
DIAGNOSIS_S, ALIGNMENT_S = 1.2, 0.015
"""The diagnosis of one path, and what is looked at without one."""
BYTES_PER_S, PASSES = 3e9, 60
"""How fast, and how often, each byte of a copied array is read or written in one round."""
SURVEYED_S = 0.005
"""A case of the survey, which is converted once."""
LEAST, MOST = 0.4, 3.0
"""It is right within these factors as a rule: the more where others keep the cores busy."""


def estimate_s(cases: Sequence[Case], settings: Settings) -> float:
    """Seconds; the constants above are from runs on two cores of a server."""
    rounds_s, surveyed_s, processes = 0.0, 0.0, dict[object, set[str]]()
    for index, case in enumerate(cases):
        if case.surveyed:
            surveyed_s += SURVEYED_S
            continue
        samples = (STEP_TIMERS if case.is_step else TIMERS) + len(settings.placements) - 1
        rounds_s += samples * settings.sample_ns / 1e9 + CASE_S
        rounds_s += PASSES * case.size_bytes / BYTES_PER_S
        frameworks = processes.setdefault(process_of(index, case, settings), set())
        frameworks |= {case.producer.name, case.consumer.name}
    rounds_s += sum(PROCESS_S + IMPORT_S * len(frameworks) for frameworks in processes.values())
    timed = [case for case in cases if not case.surveyed]
    paths = len({(case.pair, case.path.code, case.dtype, case.layout) for case in timed})
    total_s = settings.rounds * rounds_s + surveyed_s
    return total_s + paths * (DIAGNOSIS_S if settings.diagnose else ALIGNMENT_S)


def likely_text(seconds: float) -> str:
    """From and to how long an estimate is: ``likely 2 min to 15 min``."""
    return f"likely {duration_text(LEAST * seconds)} to {duration_text(MOST * seconds)}"


def check_length(request: Request, catalog: Catalog) -> None:
    """Raise :class:`UsageError` for a run that nobody waits for by mistake.

    Only the first of so many cases are made: a mistyped option may ask for billions.
    """
    cases = count(request, catalog)
    some = first_cases(request, catalog, min(cases, MOST_CASES))
    if not some:
        return  # the plan says why
    settings = replace(request.settings, sample_ns=sample_ns_for(request.settings, some))
    if settings.budget_s is not None:
        settings = replace(settings, rounds=1)
    seconds = estimate_s(some, settings) * cases / len(some)
    if cases > MOST_CASES or seconds > MOST_S:
        raise UsageError(
            f"this would measure {cases:,} cases, {likely_text(seconds)}: "
            "ask for less, or go on with --yes"
        )
