"""What a request comes to in one interpreter: its cases, and what cannot be measured."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import product

from dlprof import inference
from dlprof.errors import MissingDevice, MissingFramework, Unmeasured, UsageError
from dlprof.probes.base import HOST_MEMORY, Protocol
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


def no_path(globs: Iterable[str]) -> str:
    return f"no path matches {', '.join(map(repr, globs))}"


@dataclass(frozen=True)
class Target:
    """A pair on a device, and why there. ``no_cuda`` is why this machine has no CUDA device."""

    producer: ProbeInfo
    consumer: ProbeInfo
    device: str
    reason: str
    no_cuda: str = ""

    @property
    def paths(self) -> list[Path]:
        """Those that can be measured here."""
        found = pairing.paths(self.producer, self.consumer, self.device)
        return [path for path in found if not self._is_missing(path)]

    @property
    def missing(self) -> list[Path]:
        """Those to a device that this machine lacks."""
        found = pairing.paths(self.producer, self.consumer, self.device)
        return [path for path in found if self._is_missing(path)]

    def _is_missing(self, path: Path) -> bool:
        return bool(self.no_cuda) and path.import_.result_device == "cuda"


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
    if not cases and lacking:
        raise MissingDevice(f"these paths end on cuda, and {lacking[0].no_cuda}")
    if not cases:
        raise UsageError(
            f"{no_path(request.globs)}; 'dlprof list paths PRODUCER CONSUMER' lists them"
            if request.globs
            else "the frameworks share no protocol on this device"
        )
    known = [path for target in found for path in (*target.paths, *target.missing)]
    unmatched = tuple(
        glob for glob in request.globs if not any(pairing.matches(path, glob) for path in known)
    )
    measured = {case.pair for case in cases}
    pairs = dict.fromkeys((one.producer.name, one.consumer.name) for one in found)
    measured |= {(one.producer.name, one.consumer.name) for one in lacking}
    without = ", ".join(pair_text(pair) for pair in pairs if pair not in measured)
    # Who names pairs wants no other framework; a scenario with wildcards says which it lacks.
    is_matrix = request.command[:1] == ("matrix",)
    left_out = (
        *(not_paired(catalog, request.pairs) if is_matrix else []),
        *([f"no path that was asked for: {without}"] if without else []),
        *refused,
        *([no_path(unmatched)] if unmatched else []),
        *(f"paths of {one.consumer.name} to cuda ({one.no_cuda})" for one in lacking),
        *(request.scenario.left_out if request.scenario else ()),
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
            no_cuda = catalog.interpreter.get("no_cuda") or ""
            target = Target(*pair, device, reason, no_cuda)
            found.setdefault((pair[0].name, pair[1].name, device), target)
    if refused and not found:
        raise next(iter(refused.values()))
    return list(found.values()), list(refused)


def count(request: Request, catalog: Catalog) -> int:
    """How many cases a request has; none of them is made."""
    found, _ = targets(request, catalog)
    axes, settings = request.axes, request.settings
    arrays = len(axes.shapes) * len(axes.dtypes) * len(axes.layouts)
    paths = sum(len(pairing.choose(target.paths, request.globs)) for target in found)
    timed = 0 if settings.survey_alone else arrays * paths
    return timed + (sum(1 for _ in _surveyed(found, request)) if settings.survey else 0)


def _all_cases(found: Sequence[Target], request: Request) -> Iterator[Case]:
    if not request.settings.survey_alone:
        yield from _cases(found, request)
    if request.settings.survey:
        yield from _surveyed(found, request)


def _cases(found: Sequence[Target], request: Request) -> Iterator[Case]:
    axes = request.axes
    for target in found:
        chosen = pairing.choose(target.paths, request.globs)
        for shape, dtype, layout in product(axes.shapes, axes.dtypes, axes.layouts):
            for path in chosen:
                pair = target.producer, target.consumer
                yield Case(*pair, path, shape, dtype, layout, target.device)


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


def not_paired(
    catalog: Catalog, pairs: Sequence[tuple[str, str]], globs: Sequence[str] = ("*",)
) -> list[str]:
    """Which frameworks that a glob asks for are in none of the pairs, and why."""
    paired = {name for pair in pairs for name in pair}
    return [
        f"{probe.name} ({'owns no arrays there' if probe.found else 'not installed'})"
        for probe in catalog.probes
        if probe.name not in paired and probe.name not in HOST_MEMORY
        if any(fnmatchcase(probe.name, glob) for glob in globs)
    ]


def not_run(
    settings: Settings,
    rounds_done: int,
    undiagnosed: tuple[int, int] | None = None,
    out_of_time: bool = False,
) -> list[str]:
    """What was asked for, and the budget did not let be measured.

    ``undiagnosed`` is for how many paths the time was over before their diagnosis, and of how many.
    """
    if settings.survey_alone:
        return []
    words = []
    if rounds_done < settings.rounds:
        words.append(f"the budget ended after {rounds_done} of {settings.rounds} rounds")
    left, paths = undiagnosed or (0, 0)
    looks: tuple[str, ...] = ("alignment",)
    if settings.diagnose:
        looks = ("waiting", "alignment", "peak memory", "early writes", "lifetime")
    if rounds_done < settings.rounds or left:
        some = f" of {left} of {paths} paths:" if 0 < left < paths else " of"
        words.append(f"no diagnosis{some} {', '.join(looks)}")
    if settings.survey and (out_of_time or rounds_done < settings.rounds):
        words.append("no survey of other arrays: the budget was over")
    return words
