"""From a scenario to a request: in the names of the frameworks that are there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from dlprof.errors import MissingFramework, Unmeasured, UsageError
from dlprof.plan import pairing
from dlprof.plan.axes import parse_dtype, parse_layout, parse_placement, parse_shapes
from dlprof.plan.catalog import Catalog, pairs_of
from dlprof.plan.floors import FloorRule
from dlprof.plan.omissions import not_paired
from dlprof.plan.pairing import Axes
from dlprof.plan.plan import installed_pairs
from dlprof.plan.request import Request
from dlprof.plan.scenario_record import ScenarioRecord
from dlprof.plan.settings import Settings
from dlprof.plan.step_request import Asked, asked, check_distinct
from dlprof.scenario.expectation import ANY, Expectation, resolve
from dlprof.scenario.expectation import parse as parse_expectation
from dlprof.scenario.model import Scenario
from dlprof.scenario.pairs import WILD, named, pairs, parse
from dlprof.scenario.read import fault
from dlprof.scenario.settle import Origins
from dlprof.session import files

Inspect = Callable[[str, tuple[str, ...]], Catalog]
"""The catalog of an interpreter with these probe files."""
Found = TypeVar("Found")

MOST_CASES = 20_000
"""More are measured only if the user says that he means it."""


@dataclass(frozen=True)
class Sweep:
    """What a scenario comes to here."""

    request: Request
    catalog: Catalog


def sweep(
    scenario: Scenario,
    origins: Origins,
    path: Path,
    python: str,
    inspect: Inspect,
) -> Sweep:
    """The request of a scenario that was read from ``path``.

    ``python`` is the interpreter to measure. Raises :class:`UsageError` for a framework that
    nobody knows, and for what the pairs contradict.
    """
    steps = _steps(scenario, path)
    files = tuple(_probe_file(path, place, file) for place, file in enumerate(scenario.probes))
    files += tuple(step.source for step in steps)
    catalog = inspect(python, files)
    axes = axes_of(scenario)
    able = _able(catalog, axes)
    patterns = [
        _told(path, ("pairs", place), text, lambda text: named(parse(text), catalog))
        for place, text in enumerate(scenario.pairs)
    ]
    wanted = tuple(step.pair for step in steps) or pairs(patterns, catalog, able)
    if not wanted:
        raise Unmeasured(f"no framework that fits {', '.join(scenario.pairs)} can be measured here")
    expected = tuple(
        _told(path, ("expect", place), text, lambda text: resolve(parse_expectation(text), catalog))
        for place, text in enumerate(scenario.expect)
    )
    check(scenario, path, wanted, expected)
    wild = any(WILD & set(text) for text in scenario.pairs)
    told = ScenarioRecord(
        file=str(path),
        title=scenario.title,
        question=scenario.question,
        sources=tuple(scenario.source),
        report=scenario.report,
        expect=tuple(map(str, expected)),
        thresholds=scenario.thresholds,
        origins=origins,
        left_out=tuple(not_paired(catalog, wanted)) if wild else (),
        floors=tuple(
            FloorRule(
                spec.case,
                spec.measure,
                None if spec.percent is None else spec.percent / 100,
                spec.ns,
                times=spec.times is None,
            )
            for spec in scenario.floor
        ),
        pairs=tuple(map(str, patterns)),
    )
    return Sweep(
        Request(
            pairs=wanted,
            axes=axes,
            globs=tuple(scenario.paths),
            settings=settings_of(scenario),
            python=python,
            probe_files=files,
            command=("sweep", str(path)),
            scenario=told,
        ),
        catalog,
    )


def axes_of(scenario: Scenario) -> Axes:
    """The axes of a scenario, ranges spread out."""
    shapes = (shape for text in scenario.shapes for shape in parse_shapes(str(text)))
    devices = tuple(scenario.devices)
    return Axes(
        shapes=tuple(dict.fromkeys(shapes)),
        dtypes=tuple(dict.fromkeys(parse_dtype(text) for text in scenario.dtypes)),
        layouts=tuple(dict.fromkeys(parse_layout(text) for text in scenario.layouts)),
        device=devices[0] if len(devices) == 1 else "auto",
        devices=devices if len(devices) > 1 else (),
    )


def settings_of(scenario: Scenario) -> Settings:
    """How a scenario is measured."""
    return Settings(
        rounds=scenario.rounds,
        seed=scenario.seed,
        sample_ns=round(scenario.sample_ms * 1e6),
        limit_s=scenario.timeout,
        budget_s=scenario.budget,
        together=scenario.together,
        diagnose=scenario.diagnose or bool(scenario.step),  # of steps there is no diagnosis
        round_trips=scenario.round_trips or 0,
        placements=tuple(dict.fromkeys(parse_placement(text) for text in scenario.placement)),
    )


def count(found: Sweep) -> int:
    """How many cases there are, without making them. What cannot be measured counts for none."""
    request = found.request
    try:
        here, _ = installed_pairs(request.pairs, found.catalog)
        targets = pairing.targets(here, found.catalog, request.axes)
    except (MissingFramework, Unmeasured):
        return 0
    return pairing.count(targets, request.axes, request.globs)


def check_count(cases: int, meant: bool) -> None:
    """Raises :class:`UsageError` for more than :data:`MOST_CASES` that nobody confirmed."""
    if cases > MOST_CASES and not meant:
        raise UsageError(
            f"these are {cases:,} cases, more than {MOST_CASES:,}: "
            "add --yes if you mean it, or name fewer shapes, dtypes, layouts or paths"
        )


def _steps(scenario: Scenario, path: Path) -> list[Asked]:
    found = [
        step
        for one in scenario.step
        for step in asked([one.framework], one.model, one.threads, path.parent)
    ]
    check_distinct(found)
    return found


def _able(catalog: Catalog, axes: Axes) -> list[str]:
    return [name for device in axes.asked for pair in pairs_of(catalog, device) for name in pair]


def _told(path: Path, where: Sequence[str | int], text: str, find: Callable[[str], Found]) -> Found:
    """What ``find`` makes of ``text``; if it refuses, file, line and key are told."""
    try:
        return find(text)
    except UsageError as error:
        raise fault(path, where, str(error)) from None


def _probe_file(scenario: Path, place: int, file: str) -> str:
    path = scenario.parent / files.at_home(Path(file))
    if not path.is_file():
        raise fault(scenario, ("probes", place), f"there is no probe file {file}")
    return str(path.absolute())


def check(
    scenario: Scenario,
    path: Path,
    wanted: Sequence[tuple[str, str]],
    expected: Sequence[Expectation],
) -> None:
    """Raises :class:`~dlprof.errors.ScenarioError` for trips that have no way back, and for what
    is expected of a pair that is not measured.

    ``wanted`` are the pairs, installed or not; ``expected`` is in the catalog's names.
    """
    there = {pair for pair in wanted if pair[0] != pair[1]}
    if scenario.round_trips and not any(pair[::-1] in there for pair in there):
        told = "no pair is there in both directions, as tf<->cupy would be"
        raise fault(path, ("round_trips",), told)
    if any(WILD & set(text) for text in scenario.pairs):
        return  # what a glob means depends on what is installed
    for place, one in enumerate(expected):
        if one.pair != ANY and not any(map(one.pair.matches, wanted)):
            raise fault(path, ("expect", place), f"{one.pair} is none of the pairs")
