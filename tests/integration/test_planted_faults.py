"""Planted faults are found, and innocent ways are not blamed: with real workers."""

from __future__ import annotations

import sys

import pytest

from dlprof.api import Silent
from dlprof.selftest import run
from dlprof.synthetic.faults import PLANTS

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    found = run(sys.executable, tmp_path_factory.mktemp("selftest"), Silent())
    return {outcome.plant.name: outcome for outcome in found.outcomes}


@pytest.mark.parametrize("name", [plant.name for plant in PLANTS if plant.rule])
def test_a_planted_fault_is_found_by_its_rule(outcomes, name):
    assert not outcomes[name].missed, outcomes[name]


@pytest.mark.parametrize("name", [plant.name for plant in PLANTS if not plant.rule])
def test_a_control_is_not_blamed(outcomes, name):
    assert outcomes[name].false_alarms == ()
