"""How long a sweep is likely to take, from its settings alone."""

from __future__ import annotations

from collections.abc import Sequence

from dlprof.plan.pairing import Case
from dlprof.plan.request import Settings
from dlprof.plan.schedule import process_of

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
LEAST, MOST = 0.4, 3.0
"""It is right within these factors as a rule: the more where others keep the cores busy."""


def estimate(cases: Sequence[Case], settings: Settings) -> tuple[float, float]:
    """From and to how many seconds: the constants above are from runs on two cores of a server."""
    rounds_s, processes = 0.0, dict[object, set[str]]()
    for index, case in enumerate(cases):
        samples = (STEP_TIMERS if case.is_step else TIMERS) + len(settings.placements) - 1
        rounds_s += samples * settings.sample_ns / 1e9 + CASE_S
        rounds_s += PASSES * case.size_bytes / BYTES_PER_S
        frameworks = processes.setdefault(process_of(index, case, settings), set())
        frameworks |= {case.producer.name, case.consumer.name}
    rounds_s += sum(PROCESS_S + IMPORT_S * len(frameworks) for frameworks in processes.values())
    paths = len({(case.pair, case.path.code, case.dtype, case.layout) for case in cases})
    total_s = settings.rounds * rounds_s
    total_s += paths * (DIAGNOSIS_S if settings.diagnose else ALIGNMENT_S)
    return LEAST * total_s, MOST * total_s


def duration_text(seconds: float) -> str:
    """``40 s``, ``7 min``, ``3.5 h``."""
    if seconds < 90:  # noqa: PLR2004 - a minute and a half
        return f"{max(seconds, 1):.0f} s"
    if seconds < 5400:  # noqa: PLR2004 - an hour and a half
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
