"""The selftest's whole judgement on the simulated device: instruments, rules, plants."""

from __future__ import annotations

import pytest
from planted_on_device import NOT_SIMULATED, cases_of, put_in_place, result_of

from dlprof.measuring.selftest import judge
from dlprof.rules import findings
from dlprof.selftest.faults import DEVICE_PLANTS as PLANTS

pytestmark = pytest.mark.unit

SIMULATED = [plant for plant in PLANTS if plant.name not in NOT_SIMULATED]


def outcome_of(plant, monkeypatch):
    device = put_in_place(monkeypatch)
    results = [result_of(case, device) for case in cases_of(plant)]
    (outcome,) = judge([plant], results, findings(results))
    return outcome


@pytest.mark.parametrize(
    "plant", [plant for plant in SIMULATED if plant.rule], ids=lambda plant: plant.name
)
def test_a_fault_on_the_device_is_found_by_its_rule(plant, monkeypatch):
    outcome = outcome_of(plant, monkeypatch)
    assert not outcome.missed, outcome


@pytest.mark.parametrize(
    "plant", [plant for plant in SIMULATED if not plant.rule], ids=lambda plant: plant.name
)
def test_a_control_on_the_device_is_not_blamed(plant, monkeypatch):
    outcome = outcome_of(plant, monkeypatch)
    assert (outcome.false_alarms, outcome.unmeasured) == ((), False)
