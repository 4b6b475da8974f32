"""What in a scenario makes no sense beside its pairs, once these are known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dlprof.scenario.expectation import ANY, Expectation
from dlprof.scenario.model import Scenario
from dlprof.scenario.pairs import WILD
from dlprof.scenario.read import fault


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
