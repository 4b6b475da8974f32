"""From a scenario to a request: with the command line, in the names of the frameworks there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from dlprof.errors import MissingFramework, ScenarioError, Unmeasured, UsageError
from dlprof.plan import pairing
from dlprof.plan.catalog import Catalog, able
from dlprof.plan.floors import FloorRule
from dlprof.plan.option import Value, value_text
from dlprof.plan.options import PLACEMENTS, Values, settle
from dlprof.plan.plan import installed_pairs, not_paired
from dlprof.plan.request import Request, ScenarioRecord, request_of
from dlprof.plan.step_request import Asked, asked, check_distinct
from dlprof.scenario.expectation import ANY, Expectation, resolve
from dlprof.scenario.expectation import parse as parse_expectation
from dlprof.scenario.model import Scenario
from dlprof.scenario.pairs import WILD, named, pairs, parse
from dlprof.scenario.read import fault

Inspect = Callable[[str, tuple[str, ...]], Catalog]
"""The catalog of an interpreter with these probe files."""
Found = TypeVar("Found")

MOST_CASES = 20_000
"""More cases need ``--yes``."""
OF_CONVERSIONS = ("placements", "round_trips")
"""Options that have no meaning beside steps."""


@dataclass(frozen=True)
class Sweep:
    """What a scenario comes to here."""

    request: Request
    catalog: Catalog


def sweep(scenario: Scenario, given: Mapping[str, Value], inspect: Inspect) -> Sweep:
    """The request of a scenario and of the options ``given`` on the command line.

    Raises :class:`UsageError` for an unknown framework and for a contradiction.
    """
    problem, values = scenario.problem, settle(scenario.options, given)
    _check_values(scenario, values)
    steps = _steps(scenario)
    probes = (*values["probes"], *(step.source for step in steps))
    catalog = inspect(values["python"], probes)
    patterns = [
        _located(scenario, ("pairs", place), lambda text: named(parse(text), catalog), text)
        for place, text in enumerate(problem.pairs)
    ]
    expected = [
        _located(
            scenario,
            ("expect", place),
            lambda text: resolve(parse_expectation(text), catalog),
            text,
        )
        for place, text in enumerate(problem.expect)
    ]
    wanted = tuple(step.pair for step in steps)
    wanted = wanted or pairs(patterns, catalog, able(catalog, values["devices"]))
    if not wanted:
        raise Unmeasured(f"no framework that fits {', '.join(problem.pairs)} can be measured here")
    _check_pairs(scenario, values, wanted, expected)
    request = request_of(values, wanted, ("sweep", str(scenario.file)))
    # Of steps there is no diagnosis that could be left out.
    settings = replace(request.settings, diagnose=request.settings.diagnose or bool(steps))
    record = ScenarioRecord(
        file=str(scenario.file),
        title=problem.title,
        question=problem.question,
        sources=tuple(problem.source),
        report=problem.report,
        expect=tuple(map(str, expected)),
        thresholds=problem.thresholds,
        origins=_origins(scenario, values),
        left_out=tuple(not_paired(catalog, wanted)) if _wild(scenario) else (),
        floors=tuple(
            FloorRule(
                spec.case,
                spec.measure,
                None if spec.percent is None else spec.percent / 100,
                spec.ns,
                times=spec.times is None,
            )
            for spec in problem.floor
        ),
        pairs=tuple(map(str, patterns)),
    )
    return Sweep(replace(request, settings=settings, probe_files=probes, scenario=record), catalog)


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
    """Raises :class:`UsageError` for more than :data:`MOST_CASES` without ``--yes``."""
    if cases > MOST_CASES and not meant:
        raise UsageError(
            f"these are {cases:,} cases, more than {MOST_CASES:,}: "
            "add --yes if you mean it, or name fewer shapes, dtypes, layouts or paths"
        )


def _origins(scenario: Scenario, values: Values) -> tuple[tuple[str, str, str], ...]:
    problem = scenario.problem
    what = problem.pairs or [step.name for step in problem.step]
    return (
        ("pairs" if problem.pairs else "step", value_text(what), "file"),
        *values.origins(),
        *(
            (f"threshold {key}", value_text(value), "file")
            for key, value in problem.thresholds.items()
        ),
    )


def _check_values(scenario: Scenario, values: Values) -> None:
    """Raises :class:`ScenarioError` for options that do not go with the problem."""
    problem = scenario.problem
    if problem.step and not values.given("shapes"):
        raise ScenarioError(f"{scenario.file}: name the shapes of the model's input")
    if problem.report == "loop" and not set(values["placements"]) - {PLACEMENTS.default}:
        raise fault(scenario, ("report",), "'loop' needs a placement: in-loop, hoisted or implicit")
    if values["round_trips"] and problem.report != "round trip":
        raise fault(
            scenario,
            ("round_trips",),
            "write report = 'round trip', which is the only report of them",
        )
    for key in OF_CONVERSIONS:
        if problem.step and values.given(key):
            raise fault(scenario, (key,), "it is about conversions, and steps are none")


def _check_pairs(
    scenario: Scenario,
    values: Values,
    wanted: Sequence[tuple[str, str]],
    expected: Sequence[Expectation],
) -> None:
    """Raises :class:`ScenarioError` for trips that have no way back, and for what is expected of a
    pair that is not measured.

    ``wanted`` are the pairs, installed or not; ``expected`` is in the catalog's names.
    """
    there = {pair for pair in wanted if pair[0] != pair[1]}
    if values["round_trips"] and not any(pair[::-1] in there for pair in there):
        words = "no pair is there in both directions, as tf<->cupy would be"
        raise fault(scenario, ("round_trips",), words)
    if _wild(scenario):
        return  # what a glob means depends on what is installed
    for place, one in enumerate(expected):
        if one.pair != ANY and not any(map(one.pair.matches, wanted)):
            raise fault(scenario, ("expect", place), f"{one.pair} is none of the pairs")


def _wild(scenario: Scenario) -> bool:
    return any(WILD & set(text) for text in scenario.problem.pairs)


def _steps(scenario: Scenario) -> list[Asked]:
    folder = Path(scenario.file).parent
    found = [
        step
        for one in scenario.problem.step
        for step in asked([one.framework], one.model, one.threads, folder)
    ]
    check_distinct(found)
    return found


def _located(
    scenario: Scenario, where: Sequence[str | int], find: Callable[[str], Found], text: str
) -> Found:
    """What ``find`` makes of ``text``; an error gets file, line and key."""
    try:
        return find(text)
    except UsageError as error:
        raise fault(scenario, where, str(error)) from None
