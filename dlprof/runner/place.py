"""What there is to measure in one interpreter, and what cannot be measured there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dlprof.errors import MissingFramework
from dlprof.plan import pairing
from dlprof.plan.catalog import Catalog, ProbeInfo
from dlprof.plan.pairing import Axes, Case
from dlprof.runner.standby import Interpreter

NO_PATH = "no path matches"
"""How what is left out of a glob without a path begins."""


@dataclass(frozen=True)
class Place:
    """What an interpreter has to measure."""

    interpreter: Interpreter
    cases: list[Case]
    device_choice: str = ""
    left_out: tuple[str, ...] = ()
    nowhere: tuple[tuple[str, str], ...] = ()
    """Pairs of which ``left_out`` says that a device is missing."""


def place_of(
    pairs: Sequence[tuple[str, str]],
    axes: Axes,
    globs: Sequence[str],
    catalog: Catalog,
) -> Place:
    """The cases of these pairs.

    Of several pairs, those whose frameworks are not all there are left out. Raises
    :class:`Unmeasured` where nothing is left.
    """
    found, missing = installed_pairs(pairs, catalog)
    targets = pairing.targets(found, catalog, axes)
    cases = pairing.cases(found, catalog, axes, globs)
    idle = [f"{NO_PATH} {glob!r}" for glob in pairing.unmatched(targets, globs)]
    left_out = (*missing, *targets.refused, *idle)
    interpreter = Interpreter(catalog.python, _variables(found))
    return Place(interpreter, cases, targets.device_reasons, left_out, targets.nowhere)


def installed_pairs(
    pairs: Iterable[tuple[str, str]], catalog: Catalog
) -> tuple[list[tuple[ProbeInfo, ProbeInfo]], list[str]]:
    """The pairs that can be had, and which cannot.

    Raises :class:`MissingFramework` where none can.
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


def present_pairs(pairs: Iterable[tuple[str, str]], catalog: Catalog) -> list[tuple[str, str]]:
    """The pairs of which both frameworks are installed."""
    return [pair for pair in pairs if all(catalog.named(name).found for name in pair)]


def _variables(pairs: Iterable[tuple[ProbeInfo, ProbeInfo]]) -> dict[str, str]:
    """What the probes ask for, and what the user has set instead."""
    wanted = {
        name: value for pair in pairs for probe in pair for name, value in probe.variables.items()
    }
    return {name: os.environ.get(name, value) for name, value in wanted.items()}
