"""What a run did not measure although somebody may look for it, in words."""

from __future__ import annotations

from collections.abc import Sequence

from dlprof.plan.catalog import Catalog
from dlprof.plan.pairing import Case
from dlprof.plan.settings import Settings
from dlprof.probes.base import HOST_MEMORY


def not_paired(catalog: Catalog, pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Which frameworks that dlprof knows are in none of several pairs, and why."""
    paired = {name for pair in pairs for name in pair}
    if len(pairs) == 1 or not any(producer == consumer for producer, consumer in pairs):
        return []  # who names pairs wants no other framework; a matrix has each with itself
    return [
        f"{probe.name}, which {'owns no arrays there' if probe.found else 'is not installed'}"
        for probe in catalog.probes
        if probe.name not in paired and probe.name not in HOST_MEMORY
    ]


def without_path(pairs: Sequence[tuple[str, str]], cases: Sequence[Case]) -> list[str]:
    """Which of these pairs have no path that was asked for."""
    measured = {case.pair for case in cases}
    without = [" → ".join(pair) for pair in pairs if pair not in measured]
    if not without:
        return []
    return [f"{', '.join(without)}, which {_have(without)} no path that was asked for"]


def not_run(
    settings: Settings,
    rounds_done: int,
    undiagnosed: tuple[int, int] | None = None,
    out_of_time: bool = False,
) -> list[str]:
    """What these settings did not let be measured.

    ``undiagnosed`` is for how many paths the time was over before their diagnosis, and of how many.
    """
    words = []
    if rounds_done < settings.rounds:
        words.append(f"the budget ended after {rounds_done} of {settings.rounds} rounds")
    if settings.rounds == 1:
        words.append("one process per path, so no intervals and no modes")
    looked = settings.diagnose or settings.alignment
    left, paths = undiagnosed or (0, 0)
    if rounds_done < settings.rounds or left or not looked:
        some = f" of {left} of {paths} paths:" if 0 < left < paths else " of"
        words.append(
            f"no diagnosis{some} waiting, alignment, peak memory, early writes and lifetime"
        )
    elif not settings.diagnose:
        words.append("no diagnosis of waiting, peak memory, early writes and lifetime")
    if settings.round_trips and out_of_time:
        words.append("no round trips in a row: the budget was over")
    if settings.first_calls and (rounds_done < settings.rounds or out_of_time):
        words.append("no process of its own for the first call of each path")
    return words


def _have(names: Sequence[str]) -> str:
    return "has" if len(names) == 1 else "have"
