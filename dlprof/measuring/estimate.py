"""How long a measurement will take, before anything is measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dlprof.analysis.quantity import duration_text
from dlprof.errors import UsageError
from dlprof.plan.catalog import Catalog
from dlprof.plan.pairing import Case
from dlprof.plan.plan import count, first_cases
from dlprof.plan.request import Request, Settings
from dlprof.plan.schedule import process_of, sample_ns_for

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
