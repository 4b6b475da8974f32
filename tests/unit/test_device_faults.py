"""Planted faults on the simulated device: instruments, rules, and the selftest's judgment."""

from functools import partial

import pytest
from planted_on_device import (
    NOT_SIMULATED,
    PLANTED,
    PROBES,
    case_of,
    put_in_place,
    result_of,
)

from dlprof.measuring.selftest import judge
from dlprof.rules import RULES, find
from dlprof.selftest import device as frameworks
from dlprof.selftest.faults import DEVICE_PLANTS as PLANTS
from dlprof.selftest.faults import NOT_ON_DEVICE
from dlprof.worker.contract import check_probe
from dlprof.worker.instruments import ordering
from dlprof.worker.queued_work import default_sides, queue_of

SIMULATED = [plant for plant in PLANTS if plant.name not in NOT_SIMULATED]


@pytest.fixture
def device(monkeypatch):
    return put_in_place(monkeypatch)


@pytest.mark.parametrize("plant", SIMULATED, ids=lambda plant: plant.name)
def test_a_fault_is_found_by_its_rule_and_a_control_is_not_blamed(plant, device):
    results = [
        result_of(case, device) for case in map(partial(case_of, plant), range(len(plant.ways)))
    ]
    (outcome,) = judge([plant], results, find(results))
    if plant.rule:
        assert not outcome.missed, outcome
    else:
        assert (outcome.false_alarms, outcome.unmeasured) == ((), False)


@pytest.mark.parametrize("name", ["race", "legacy-race"])
def test_on_default_streams_a_race_is_innocent(device, name):
    case = case_of(PLANTED[name])
    queue = queue_of(case, case.producer.enqueue(case.spec), device, default_sides(case))
    assert ordering.measure_queue(queue)["verdict"] == "stream-ordered"


def test_every_rule_is_planted_on_a_device_or_has_a_reason_why_not():
    planted = {plant.rule for plant in PLANTS if plant.rule}
    assert planted | set(NOT_ON_DEVICE) == {rule.id for rule in RULES}
    assert not planted & set(NOT_ON_DEVICE)


def test_every_plant_has_a_probe_that_keeps_to_the_contract_and_ways_that_exist():
    for plant in PLANTS:
        check_probe(type(PROBES[plant.consumer]))
        assert plant.producer in PROBES
        assert tuple(way.name for way in PROBES[plant.consumer].imports) == plant.ways
        assert all(callable(getattr(frameworks, way)) for way in plant.ways)
