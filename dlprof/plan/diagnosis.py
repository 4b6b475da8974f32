"""Which cases get a diagnosis, after the timed rounds, and of which instruments it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dlprof.plan.instruments import ALIGNMENT, DIAGNOSIS
from dlprof.plan.pairing import Case
from dlprof.plan.settings import Settings
from dlprof.probes.base import CONTIGUOUS


def diagnosis_of(settings: Settings) -> tuple[str, ...]:
    """All instruments of the diagnosis, or what is looked at without one."""
    return DIAGNOSIS if settings.diagnose else ALIGNMENT


def diagnosed_paths(cases: Sequence[Case], settings: Settings) -> list[list[int]]:
    """The cases of each path, by their places, in the order in which they may stand for it: the
    answers know no shape, but an array without elements has none.
    """
    paths: dict[Any, list[int]] = {}
    for index, case in enumerate(cases):
        if not case.is_step and _is_asked(case, settings):
            what = case.pair, case.path, case.dtype, case.layout, case.device
            paths.setdefault((case.environment, *what), []).append(index)
    return [sorted(path, key=lambda index: cases[index].size_bytes == 0) for path in paths.values()]


def standing_for(paths: Sequence[Sequence[int]], settled: Callable[[int], bool]) -> set[int]:
    """The first of each path that was not refused and did not crash."""
    found = (next((index for index in path if not settled(index)), None) for path in paths)
    return {index for index in found if index is not None}


def _is_asked(case: Case, settings: Settings) -> bool:
    if settings.diagnose:
        return True
    return settings.alignment and case.device == "cpu" and case.layout in CONTIGUOUS
