"""The selftest on a real device: faults planted on real streams, with real workers.

The truth is that of the plants (``dlprof/synthetic/device/faults.py``): which rule must find what.
"""

from __future__ import annotations

import sys

import pytest

from dlprof.selftest import run
from dlprof.synthetic.device.faults import PLANTS
from dlprof.worker.cuda import CudaUnavailable, open_gpu

pytestmark = pytest.mark.cuda

try:
    open_gpu()
except CudaUnavailable as reason:
    pytest.skip(str(reason), allow_module_level=True)


class Silence:
    def start(self, total):
        pass

    def case(self, case, round_, stage):
        pass

    def step(self):
        pass


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    found = run(sys.executable, tmp_path_factory.mktemp("selftest"), Silence(), PLANTS)
    return {outcome.plant.name: outcome for outcome in found.outcomes}


# All of it is measured by the first test that asks.
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", [plant.name for plant in PLANTS if plant.rule])
def test_a_fault_planted_on_a_stream_is_found_by_its_rule(outcomes, name):
    assert not outcomes[name].missed, outcomes[name]
    assert not outcomes[name].unmeasured, outcomes[name]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", [plant.name for plant in PLANTS if not plant.rule])
def test_a_control_on_a_stream_is_not_blamed(outcomes, name):
    assert outcomes[name].false_alarms == ()
    assert not outcomes[name].unmeasured, outcomes[name]
