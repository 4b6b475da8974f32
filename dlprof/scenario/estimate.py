"""How long a sweep is likely to take, from its settings alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dlprof.plan.pairing import Case
from dlprof.plan.schedule import OWN_PROCESS_BYTES, process_of
from dlprof.plan.settings import Settings

TIMERS = 2.4
"""Two timers, and what the rest of a round takes in parts of one timer."""
STEP_TIMERS = 9.0
"""The same for a step of inference, whose loops are sampled in turn."""
ROUND_S = 0.03
"""Making the array, and the instruments that have no timer."""
FIRST_S = 0.05
"""What only the first round looks at, and what a framework compiles at the first call."""
LOOP_NS = 60_000_000
"""The least time of one loop of a placement, see :mod:`dlprof.worker.instruments.placement`."""
START_S = 1.0
"""A worker starts..."""
IMPORT_S = 1.5
"""...and imports a framework: NumPy in a tenth of a second, TensorFlow in three and more."""
TRIPS_S = 2.0
"""Trips there and back of one pair, idle and behind a queue, beside the start of their worker."""
DIAGNOSIS_S = 1.2
"""The diagnosis of one path."""
ALIGNMENT_S = 0.015
"""What is looked at of a path without one."""
PASSES, LONG_PASSES = 60, 16
"""How often each byte of a copied array is read or written in one round; and of one so large that
its conversion is timed once."""
BYTES_PER_S = 3e9
LEAST, MOST = 0.4, 3.0
"""It is right within these factors as a rule: the more where others keep the cores busy."""


@dataclass(frozen=True)
class Estimate:
    """Seconds by what they are for."""

    parts: Mapping[str, float]

    @property
    def total_s(self) -> float:
        return sum(self.parts.values())

    @property
    def range_s(self) -> tuple[float, float]:
        return LEAST * self.total_s, MOST * self.total_s


def estimate(cases: Sequence[Case], settings: Settings) -> Estimate:
    """Nothing is measured for this: the constants above are from runs on two cores of a server."""
    steps = sum(case.is_step for case in cases)
    timers = TIMERS * (len(cases) - steps) + STEP_TIMERS * steps
    loops = len(set(settings.placements) - {"convert"}) * len(cases)
    once_s = timers * settings.sample_ns / 1e9 + ROUND_S * len(cases)
    once_s += loops * max(settings.sample_ns, LOOP_NS) / 1e9
    once_s += sum(_moved_bytes(case) for case in cases) / BYTES_PER_S
    paths = {
        (case.pair, case.path.code, case.dtype, case.layout, case.device)
        for case in cases
        if not case.is_step
    }
    trips_s = settings.rounds * _trips_s(cases) if settings.round_trips else 0.0
    return Estimate(
        {
            "rounds": settings.rounds * once_s + FIRST_S * len(cases),
            "starts and imports": settings.rounds * _starts_s(cases, settings),
            "diagnosis": (DIAGNOSIS_S if settings.diagnose else ALIGNMENT_S) * len(paths),
            "trips in a row": trips_s,
        }
    )


def _starts_s(cases: Sequence[Case], settings: Settings) -> float:
    """The workers of one round, each with the frameworks that it imports."""
    groups: dict[object, set[str]] = {}
    for index, case in enumerate(cases):
        frameworks = groups.setdefault(process_of(index, case, settings), set())
        frameworks |= {case.producer.name, case.consumer.name}
    return sum(START_S + IMPORT_S * len(frameworks) for frameworks in groups.values())


def _trips_s(cases: Sequence[Case]) -> float:
    """Trips of each pair and array that is there in both directions, in workers of their own."""
    arrays = {(case.pair, case.shape, case.dtype, case.layout, case.device) for case in cases}
    both = [one for one in arrays if one[0][0] < one[0][1] and (one[0][::-1], *one[1:]) in arrays]
    return len(both) * (START_S + 2 * IMPORT_S + TRIPS_S)


def _moved_bytes(case: Case) -> int:
    return case.size_bytes * (PASSES if case.size_bytes < OWN_PROCESS_BYTES else LONG_PASSES)


def duration_text(seconds: float) -> str:
    """``40 s``, ``7 min``, ``3.5 h``."""
    if seconds < 90:  # noqa: PLR2004 - a minute and a half
        return f"{max(seconds, 1):.0f} s"
    if seconds < 5400:  # noqa: PLR2004 - an hour and a half
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
