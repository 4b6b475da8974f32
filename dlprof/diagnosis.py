"""Which cases get a diagnosis, after the timed rounds, and of which instruments it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dlprof.instruments import ALIGNMENT, DIAGNOSIS
from dlprof.plan import Case
from dlprof.probes.base import CONTIGUOUS
from dlprof.settings import Settings


def diagnosis_of(settings: Settings) -> tuple[str, ...]:
    """All instruments of the diagnosis, or what is looked at without one."""
    return DIAGNOSIS if settings.diagnose else ALIGNMENT


def diagnosed_cases(cases: Sequence[Case], settings: Settings) -> set[int]:
    """The first of each path, by their places: the answers know no shape."""
    firsts: dict[Any, int] = {}
    for index, case in enumerate(cases):
        if not case.is_step and _is_asked(case, settings):
            what = case.pair, case.path, case.dtype, case.layout, case.device
            firsts.setdefault((case.environment, *what), index)
    return set(firsts.values())


def _is_asked(case: Case, settings: Settings) -> bool:
    if settings.diagnose:
        return True
    return settings.alignment and case.device == "cpu" and case.layout in CONTIGUOUS
