"""What a request comes to in one interpreter: its cases, and what cannot be measured."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dlprof.errors import MissingFramework
from dlprof.plan import pairing
from dlprof.plan.catalog import Catalog, ProbeInfo
from dlprof.plan.pairing import Case
from dlprof.plan.request import Request, Settings
from dlprof.probes.base import HOST_MEMORY

NO_PATH = "no path matches"
"""How a line of ``left_out`` begins that names a glob without a path."""


@dataclass(frozen=True)
class Plan:
    """The cases of a request, in a fixed order, and in words what is left out and why.

    ``variables`` are environment variables that the frameworks need.
    """

    cases: list[Case]
    variables: dict[str, str]
    device_choice: str = ""
    left_out: tuple[str, ...] = ()


def plan(request: Request, catalog: Catalog) -> Plan:
    """The cases of a request. Pairs without both of their frameworks are left out.

    Raises :class:`~dlprof.errors.Unmeasured` if nothing is left, and
    :class:`~dlprof.errors.UsageError` if no path matches.
    """
    found, missing = installed_pairs(request.pairs, catalog)
    targets = pairing.targets(found, catalog, request.axes)
    cases = pairing.cases(found, catalog, request.axes, request.globs)
    names = [(producer.name, consumer.name) for producer, consumer in found]
    # A scenario and a step of inference choose their pairs: other frameworks are not wanted.
    chosen = request.scenario is not None or any(case.is_step for case in cases)
    left_out = (
        *([] if chosen else not_paired(catalog, request.pairs)),
        *without_path([pair for pair in names if pair not in targets.nowhere], cases),
        *missing,
        *targets.refused,
        *(f"{NO_PATH} {glob!r}" for glob in pairing.unmatched(targets, request.globs)),
        *(request.scenario.left_out if request.scenario else ()),
    )
    left_out = tuple(dict.fromkeys(left_out))
    return Plan(cases, _variables(found), targets.device_reasons, left_out)


def installed_pairs(
    pairs: Iterable[tuple[str, str]], catalog: Catalog
) -> tuple[list[tuple[ProbeInfo, ProbeInfo]], list[str]]:
    """The pairs with both frameworks, and which frameworks are missing.

    Raises :class:`MissingFramework` if there is no pair left.
    """
    found: list[tuple[ProbeInfo, ProbeInfo]] = []
    missing: dict[str, MissingFramework] = {}
    for producer, consumer in pairs:
        try:
            found.append((catalog.installed(producer), catalog.installed(consumer)))
        except MissingFramework as error:
            missing.setdefault(str(error), error)
    if missing and not found:
        raise next(iter(missing.values()))
    return found, list(missing)


def _variables(pairs: Iterable[tuple[ProbeInfo, ProbeInfo]]) -> dict[str, str]:
    """What the probes ask for, unless the user has set it."""
    wanted = {
        name: value for pair in pairs for probe in pair for name, value in probe.variables.items()
    }
    return {name: os.environ.get(name, value) for name, value in wanted.items()}


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
    return words


def _have(names: Sequence[str]) -> str:
    return "has" if len(names) == 1 else "have"
