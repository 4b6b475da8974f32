"""The selftest on a real device: faults planted on real streams, with real workers.

The plants (``dlprof/selftest/``) say which rule must find each fault.
"""

import sys

import pytest

from dlprof.device.cuda import CudaUnavailable, open_gpu
from dlprof.measuring.judged import load
from dlprof.measuring.selftest import run
from dlprof.runner.progress import Watcher
from dlprof.selftest.plants import DEVICE_PLANTS as PLANTS

try:
    open_gpu()
except CudaUnavailable as reason:
    pytest.skip(str(reason), allow_module_level=True)

ORDER = {
    "view": "stream-ordered",
    "queued-copy": "stream-ordered",
    "default-stream": "stream-ordered",
    "private-stream": "stream-ordered",
    "retry": "stream-ordered",
    "sync": "host-sync",
    "bounce": "host-sync",
    "device-sync": "device-sync",
    "race": "unordered",
    "legacy-race": "unordered",
    "race-and-wait": "unordered",
}
"""The ordering of each path, from its code."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("selftest")


@pytest.fixture(scope="module")
def outcomes(folder):
    found = run(sys.executable, folder, Watcher(), PLANTS)
    return {outcome.plant.name: outcome for outcome in found.outcomes}


# The first test measures all of them.
@pytest.mark.timeout(900)
@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_a_fault_on_a_stream_is_found_by_its_rule_and_a_control_is_not_blamed(outcomes, plant):
    outcome = outcomes[plant.name]
    assert not outcome.unmeasured, outcome
    if plant.rule:
        assert not outcome.missed, outcome
    else:
        assert outcome.false_alarms == ()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ORDER)
def test_the_order_of_each_way_is_told(outcomes, folder, name):
    plant = outcomes[name].plant
    (result,) = (
        result
        for path in folder.glob("*.json")
        for result in load(path).results
        if (result.case.consumer, result.case.import_) == (plant.consumer, plant.ways[0])
    )
    assert result.ordering is not None
    assert result.ordering.verdict == ORDER[name], result.ordering.evidence
