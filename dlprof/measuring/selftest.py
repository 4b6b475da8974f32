"""Plant known faults on this machine, and see whether the rules find them and nothing else.

The synthetic framework (:mod:`dlprof.selftest`) is measured like any other. A fault counts as found
only by its own rule. A control is clean if nothing worse than an info is found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from dlprof.errors import Unmeasured
from dlprof.judge import NEED_TIMES, find
from dlprof.judge.case_view import is_known
from dlprof.runner.axes import simulated_in
from dlprof.runner.catalog import SYNTHETIC, Catalog, inspect_interpreter, why_unusable
from dlprof.runner.measurement import Measurement
from dlprof.runner.progress import Watcher
from dlprof.runner.request import Axes, Request, Settings
from dlprof.runner.session import FindingRecord, Result
from dlprof.selftest.plants import DEVICE_PLANTS, PLANTS, Plant
from dlprof.text.clean import first_line

SETTINGS = Settings(rounds=3, sample_ns=10_000_000, limit_s=15.0, largest_bytes=1 << 20)
CUDA_SETTINGS = replace(SETTINGS, limit_s=20.0, together=True)
"""Each process makes a context and compiles the spin kernel, which takes longer than to measure."""
SIMULATED_SETTINGS = replace(CUDA_SETTINGS, rounds=1, times=False)
"""Rounds only repeat times, and a simulated device has none."""
ALARMS = ("warning", "error")
NOT_MEASURED = ("unsupported", "invalid", "skipped")
SIMULATED_PLANTS = tuple(
    plant
    for plant in DEVICE_PLANTS
    if plant.rule not in NEED_TIMES and plant.placements == Plant.placements
)
ATTEMPTS = 3
"""Measurements of a plant that was missed, or that other programs disturbed."""
DISTURBED = "other programs disturbed its times"


@dataclass(frozen=True)
class PlantResult:
    """The rules with a warning or an error for one plant.

    ``reason`` says why a part was not measured.
    """

    plant: Plant
    found: tuple[str, ...]
    reason: str | None = None

    @property
    def is_found(self) -> bool:
        return self.plant.rule in self.found

    @property
    def unmeasured(self) -> bool:
        return self.reason is not None and not (self.is_found or self.false_alarms)

    @property
    def missed(self) -> bool:
        return self.plant.rule is not None and not self.is_found and not self.unmeasured

    @property
    def false_alarms(self) -> tuple[str, ...]:
        return self.found if self.plant.rule is None else ()


@dataclass(frozen=True)
class Selftest:
    """The outcomes of all plants."""

    outcomes: tuple[PlantResult, ...]

    @property
    def passed(self) -> bool:
        return not any(outcome.missed or outcome.false_alarms for outcome in self.outcomes)

    @property
    def unmeasured(self) -> tuple[PlantResult, ...]:
        return tuple(outcome for outcome in self.outcomes if outcome.unmeasured)


def run(
    python: str,
    folder: Path,
    watcher: Watcher,
    plants: Sequence[Plant] = PLANTS,
    simulated: int = 0,
) -> Selftest:
    """Measure every plant under ``python``; the sessions stay in ``folder``.

    A plant that was missed is measured again, :data:`ATTEMPTS` times in all: on a busy machine the
    smallest faults are within the noise.
    """
    catalog = inspect_interpreter(python, (SYNTHETIC,), simulated)
    outcomes: dict[Plant, PlantResult] = {}
    for number, group in enumerate(_groups(plants)):
        remaining = group
        for attempt in range(ATTEMPTS):
            path = folder / f"selftest-{number}-{attempt}.json"
            results = _measure(remaining, catalog, path, watcher)
            judged = {
                outcome.plant: outcome for outcome in judge(remaining, results, find(results))
            }
            outcomes |= judged
            remaining = [
                plant
                for plant, outcome in judged.items()
                if outcome.missed or outcome.reason == DISTURBED
            ]
            if not remaining:
                break
    return Selftest(tuple(outcomes[plant] for plant in plants))


def plants_for(python: str, device: str | None) -> tuple[tuple[Plant, ...], str | None]:
    """Return the plants for this machine, and why none are on a device.

    ``device`` asks for the host or a device alone; else plants are on the host, and on a CUDA
    device if there is one. Raises :class:`Unmeasured`.
    """
    if device == "cpu":
        return PLANTS, "only the host was asked for"
    simulated = simulated_in([device or ""])
    catalog = inspect_interpreter(python, (SYNTHETIC,), simulated)
    synthetic = catalog.find("synthetic-cuda")
    no_streams = catalog.interpreter.get("no_cuda") or why_unusable(catalog, synthetic)
    if device is None:
        return (PLANTS if no_streams else (*PLANTS, *DEVICE_PLANTS)), no_streams
    if no_streams:
        raise Unmeasured(f"{device} cannot be measured: {no_streams}")
    return (SIMULATED_PLANTS if simulated else DEVICE_PLANTS), None


def judge(
    plants: Sequence[Plant], results: Sequence[Result], findings: Sequence[FindingRecord]
) -> Iterator[PlantResult]:
    for plant in plants:
        indices = {
            index
            for index, result in enumerate(results)
            if plant.consumer in (result.case.consumer, result.case.producer)
        }
        rules = {
            finding.rule
            for finding in findings
            if indices & set(finding.results)
            and (finding.severity in ALARMS or finding.rule == plant.rule)
        }
        measured = [results[index] for index in sorted(indices)]
        gaps = [result for result in measured if result.status in NOT_MEASURED]
        if plant.surveyed and len(gaps) < len(measured):
            gaps = []  # no framework makes every array of a survey
        reason = f"{gaps[0].status}: {first_line(gaps[0].reason)}" if gaps else None
        if reason is None and plant.rule in NEED_TIMES and plant.rule not in rules:
            reason = None if all(map(_has_times, measured)) else DISTURBED
        yield PlantResult(plant, tuple(sorted(rules)), reason)


def _has_times(result: Result) -> bool:
    """Whether other programs left all of its times undisturbed."""
    loops = result.placement
    if loops is None:
        return is_known(result.ready_time)
    return is_known(loops.in_loop) and loops.share is not None and loops.share.is_known


def _groups(plants: Sequence[Plant]) -> list[list[Plant]]:
    """Group plants that one run can measure: on the same arrays, in the same loops."""

    def arrays(plant: Plant) -> tuple[object, ...]:
        array = plant.source_device, plant.device, plant.shape, plant.dtypes, plant.layouts
        return *array, plant.placements, plant.surveyed

    return [list(group) for _, group in groupby(sorted(plants, key=arrays), key=arrays)]


def _settings(plant: Plant, simulated: int) -> Settings:
    """Return settings; plants in loops need no diagnosis, because others have it."""
    settings = SETTINGS if plant.device == "cpu" else CUDA_SETTINGS
    if simulated:
        return SIMULATED_SETTINGS
    if plant.surveyed:
        return replace(settings, survey=True, survey_alone=True, diagnose=False)
    alone = plant.placements == settings.placements
    return replace(settings, placements=plant.placements, diagnose=alone)


def _measure(
    plants: Sequence[Plant], catalog: Catalog, path: Path, watcher: Watcher
) -> list[Result]:
    request = Request(
        pairs=tuple((plant.producer, plant.consumer) for plant in plants),
        axes=Axes(
            shapes=(plants[0].shape,),
            dtypes=plants[0].dtypes,
            layouts=plants[0].layouts,
            devices=(plants[0].source_device,),
        ),
        settings=_settings(plants[0], catalog.simulated),
        python=catalog.python,
        probe_files=(SYNTHETIC,),
        command=("selftest",),
        simulated=catalog.simulated,
    )
    with closing(Measurement(request, catalog, path, watcher)) as measurement:
        measurement.run()
        return measurement.results()
