"""From a scenario to a request: with the command line, in the names of the frameworks there are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from dlprof.errors import ScenarioError, Unmeasured, UsageError
from dlprof.measuring.expectation import Expectation
from dlprof.measuring.expectation import parse as expectation
from dlprof.measuring.pairs import WILD, named, pairs, parse
from dlprof.measuring.scenario import Scenario, fault
from dlprof.runner.axes import simulated_in
from dlprof.runner.catalog import Catalog, frameworks_on
from dlprof.runner.options import settle
from dlprof.runner.plan import not_paired
from dlprof.runner.request import Request, ScenarioRecord, Step, request_of, step_named

Inspect = Callable[[str, tuple[str, ...], int], Catalog]
"""The catalog of an interpreter with these probe files and so many simulated devices."""
Found = TypeVar("Found")


@dataclass(frozen=True)
class Sweep:
    """What a scenario comes to here."""

    request: Request
    catalog: Catalog


def sweep(scenario: Scenario, given: Mapping[str, Any], inspect: Inspect) -> Sweep:
    """The request of a scenario and of the options ``given`` on the command line.

    Raises :class:`UsageError` for an unknown framework and for a contradiction.
    """
    problem, values = scenario.problem, settle(scenario.options, given)
    _check_given(scenario, {*scenario.options, *given})
    steps = _steps(scenario)
    probes = (*values["probes"], *(step.source for step in steps))
    catalog = inspect(values["python"], probes, simulated_in(values["devices"]))

    def resolved(text: str) -> Expectation:
        found = expectation(text)
        return replace(found, pair=named(found.pair, catalog))

    patterns = _located(scenario, "pairs", problem.pairs, lambda text: named(parse(text), catalog))
    expected = _located(scenario, "expect", problem.expect, resolved)
    wanted = tuple(step.pair for step in steps)
    wanted = wanted or pairs(patterns, catalog, frameworks_on(catalog, values["devices"]))
    if not wanted:
        raise Unmeasured(f"no framework that fits {', '.join(problem.pairs)} can be measured here")
    sides = [side for one in patterns for side in (one.producer, one.consumer)]
    globs = [side for side in sides if WILD & set(side)]
    request = request_of(values, wanted, ("run", str(scenario.file)))
    # Of steps there is no diagnosis that could be left out.
    settings = replace(request.settings, diagnose=request.settings.diagnose or bool(steps))
    record = ScenarioRecord(
        file=str(scenario.file),
        title=problem.title,
        question=problem.question,
        sources=tuple(problem.source),
        expect=tuple(map(str, expected)),
        thresholds=problem.thresholds,
        left_out=tuple(not_paired(catalog, wanted, globs)),
        pairs=tuple(map(str, patterns)),
    )
    return Sweep(replace(request, settings=settings, probe_files=probes, scenario=record), catalog)


def _check_given(scenario: Scenario, given: Collection[str]) -> None:
    """Raises :class:`ScenarioError` for options that do not go with the problem."""
    problem = scenario.problem
    if problem.step and "shapes" not in given:
        raise ScenarioError(f"{scenario.file}: name the shapes of the model's input")
    if problem.step and "placements" in given:
        raise fault(scenario, ("placements",), "it is about conversions, and steps are none")


def _steps(scenario: Scenario) -> tuple[Step, ...]:
    folder = Path(scenario.file).parent
    found = [
        step_named(one.framework, one.model, one.threads, folder) for one in scenario.problem.step
    ]
    return tuple(dict.fromkeys(found))


def _located(
    scenario: Scenario, key: str, texts: Sequence[str], find: Callable[[str], Found]
) -> list[Found]:
    """What ``find`` makes of each text of a list; an error gets file, line and key."""
    found = []
    for place, text in enumerate(texts):
        try:
            found.append(find(text))
        except UsageError as error:
            raise fault(scenario, (key, place), str(error)) from None
    return found
