"""What a request comes to in one interpreter: its cases, and what cannot be measured."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from dlprof.errors import MissingFramework
from dlprof.plan import pairing
from dlprof.plan.catalog import Catalog, ProbeInfo
from dlprof.plan.omissions import not_paired, without_path
from dlprof.plan.pairing import Case
from dlprof.plan.request import Request

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
