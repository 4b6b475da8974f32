"""What a request comes to in one interpreter: its cases, and what cannot be measured."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from dlprof import inference
from dlprof.errors import MissingDevice, MissingFramework, Unmeasured, UsageError
from dlprof.probes.base import Protocol
from dlprof.runner import pairing, survey
from dlprof.runner.axes import NO_TIMES
from dlprof.runner.catalog import Catalog, ProbeInfo
from dlprof.runner.pairing import Case, Path
from dlprof.runner.request import Request, Settings
from dlprof.runner.session import pair_text

QUEUES, MOST_QUEUES = "CUDA_DEVICE_MAX_CONNECTIONS", "32"
"""Streams that share a queue of the device wait for each other, which looks like an order. By
default there are 8 queues, and 32 at most (CUDA C++ Programming Guide, environment variables).
"""

TUNABLES = "GLIBC_TUNABLES"
STEADY_TUNABLES = "glibc.malloc.mmap_threshold=1073741824:glibc.malloc.trim_threshold=1073741824"
"""No block below 1 GiB is mapped anew for each allocation, and freed memory is kept: fresh pages
cost a fault each (glibc manual, Memory Allocation Tunables)."""


@dataclass(frozen=True)
class Plan:
    """The cases of a request, in a fixed order, and in words what is left out and why.

    ``variables`` are environment variables that the frameworks need, and ``unmatched`` the globs
    that no path matches.
    """

    cases: list[Case]
    variables: dict[str, str]
    device_choice: str = ""
    left_out: tuple[str, ...] = ()
    unmatched: tuple[str, ...] = ()


@dataclass(frozen=True)
class Target:
    """A pair on a device, and why there; ``missing`` are paths to a device that is not here."""

    producer: ProbeInfo
    consumer: ProbeInfo
    device: str
    reason: str
    paths: list[Path]
    missing: list[Path]

    @property
    def pair(self) -> tuple[str, str]:
        return self.producer.name, self.consumer.name


def plan(request: Request, catalog: Catalog) -> Plan:
    """The cases of a request. Pairs that cannot be measured here are left out.

    Raises :class:`~dlprof.errors.Unmeasured` if nothing is left, and
    :class:`~dlprof.errors.UsageError` if no path matches.
    """
    if request.simulated and any(file.startswith(inference.PREFIX) for file in request.probe_files):
        raise UsageError(f"steps of inference need {NO_TIMES}")
    found, refused = targets(request, catalog)
    cases = list(_all_cases(found, request))
    lacking = [one for one in found if pairing.choose(one.missing, request.globs)]
    no_cuda = catalog.interpreter.get("no_cuda")
    if not cases and lacking:
        raise MissingDevice(f"these paths end on cuda, and {no_cuda}")
    known = [path for target in found for path in (*target.paths, *target.missing)]
    unmatched = tuple(
        glob for glob in request.globs if not any(pairing.matches(path, glob) for path in known)
    )
    no_path = f"no path matches {', '.join(map(repr, unmatched or request.globs))}"
    if not cases:
        raise UsageError(
            f"{no_path}; 'dlprof list paths PRODUCER CONSUMER' lists them"
            if request.globs
            else "the frameworks share no protocol on this device"
        )
    measured = {*(case.pair for case in cases), *(one.pair for one in lacking)}
    without = dict.fromkeys(pair_text(one.pair) for one in found if one.pair not in measured)
    left_out = (
        *([f"no path that was asked for: {', '.join(without)}"] if without else []),
        *refused,
        *([no_path] if unmatched else []),
        *(f"paths of {one.consumer.name} to cuda ({no_cuda})" for one in lacking),
    )
    reasons = dict.fromkeys(f"on {target.device}: {target.reason}" for target in found)
    variables = {
        name: os.environ.get(name, value)  # as the user has set it
        for target in found
        for probe in (target.producer, target.consumer)
        for name, value in probe.variables.items()
    }
    if any(target.device == "cuda" for target in found):
        variables[QUEUES] = os.environ.get(QUEUES, MOST_QUEUES)
    steady = STEADY_TUNABLES if request.settings.in_turns else ""
    if tunables := os.environ.get(TUNABLES, steady):
        variables[TUNABLES] = tunables
    variables |= catalog.variables
    if catalog.simulated:
        reasons = {"on simulated CUDA devices: asked for": None}
    return Plan(cases, variables, "; ".join(reasons), tuple(dict.fromkeys(left_out)), unmatched)


def targets(request: Request, catalog: Catalog) -> tuple[list[Target], list[str]]:
    """Each pair on each device that was asked for, and in words what cannot be measured.

    Raises the first reason, an :class:`~dlprof.errors.Unmeasured`, if that is all.
    """
    found: dict[tuple[str, str, str], Target] = {}
    refused: dict[str, Unmeasured] = {}
    for producer, consumer in request.pairs:
        try:
            pair = catalog.installed(producer), catalog.installed(consumer)
        except MissingFramework as error:
            refused.setdefault(str(error), error)
            continue
        for asked in request.axes.devices:
            try:
                device, reason = pairing.choose_device(*pair, catalog, asked)
            except Unmeasured as error:
                refused.setdefault(f"{pair_text((pair[0].name, pair[1].name))}: {error}", error)
                continue
            every = pairing.paths(*pair, device)
            no_cuda = bool(catalog.interpreter.get("no_cuda"))
            missing = [one for one in every if no_cuda and one.import_.result_device == "cuda"]
            here = [one for one in every if one not in missing]
            target = Target(*pair, device, reason, here, missing)
            found.setdefault((*target.pair, device), target)
    if refused and not found:
        raise next(iter(refused.values()))
    return list(found.values()), list(refused)


def _all_cases(found: Sequence[Target], request: Request) -> Iterator[Case]:
    axes = request.axes
    for target in () if request.settings.survey_alone else found:
        chosen = pairing.choose(target.paths, request.globs)
        for shape, dtype, layout in product(axes.shapes, axes.dtypes, axes.layouts):
            for path in chosen:
                pair = target.producer, target.consumer
                yield Case(*pair, path, shape, dtype, layout, target.device)
    if request.settings.survey:
        yield from _surveyed(found, request)


def _surveyed(found: Sequence[Target], request: Request) -> Iterator[Case]:
    """Path after path: what one array breaks shows at the next."""
    for target in found:
        for path in pairing.choose(target.paths, request.globs):
            if path.protocol == Protocol.STEP:
                continue
            # The protocol hands over plain memory, and the import says what is in it.
            flags = () if path.protocol == Protocol.BUFFER else target.producer.flags
            for spec in survey.arrays(flags, target.device):
                array = spec.shape, spec.dtype, spec.layout, spec.device
                yield Case(target.producer, target.consumer, path, *array, surveyed=True)


def not_run(
    settings: Settings, rounds_done: int, undiagnosed: tuple[int, int], out_of_time: bool
) -> list[str]:
    """Return what the budget left out.

    ``undiagnosed`` counts the paths without a diagnosis, and all paths.
    """
    if settings.survey_alone or not out_of_time:
        return []
    words = []
    if rounds_done < settings.rounds:
        words.append(f"the budget ended after {rounds_done} of {settings.rounds} rounds")
    left, paths = undiagnosed
    if left:
        words.append(f"no diagnosis of {left} of {paths} paths")
    if settings.survey:
        words.append("no survey of other arrays: the budget was over")
    return words
