"""Planted faults on the simulated device: instruments, rules, and the selftest's judgment."""

import pytest
from builders import Silent, make_measure, make_result
from simulated_device import SimulatedDevice

from dlprof.measuring.selftest import judge
from dlprof.probes.base import ArraySpec
from dlprof.rules import find
from dlprof.selftest import device as frameworks
from dlprof.selftest.faults import DEVICE_PLANTS as PLANTS
from dlprof.selftest.faults import Plant
from dlprof.selftest.probes import probes
from dlprof.worker.instruments import early_write, lifetime, ordering, ownership, values
from dlprof.worker.queued_work import default_sides, queue_of
from dlprof.worker.subject import Path, namespace_for

SHAPE = (128, 256)
CALL_NS = 2_000
"""What Python takes for a call, of which the simulated clock knows nothing."""
PLANTED = {plant.name: plant for plant in PLANTS}
PROBES = {probe.name: probe for probe in probes()}
SIMULATED = [plant for plant in PLANTS if plant.placements == Plant.placements]
"""Loops need the host's own clock."""
GROWING = ("copy", "early", "late")
"""The simulation remembers every write, so that the host's memory grows with each copy."""


@pytest.fixture
def device(monkeypatch):
    """A simulated device, which the synthetic frameworks take for the real one."""
    device = SimulatedDevice()
    monkeypatch.setattr(frameworks, "open_gpu", lambda: device)
    frameworks.named.cache_clear()
    frameworks.private.cache_clear()
    return device


def case_of(plant, number=0):
    """The case of a plant's way in."""
    giver, taker = PROBES[plant.producer], PROBES[plant.consumer]
    import_ = taker.imports[number]
    export = next(one for one in giver.exports if one.protocol in import_.protocols)
    spec = ArraySpec(SHAPE, plant.dtypes[0], plant.layouts[0], "cuda")
    names = namespace_for(giver, taker, import_)
    return Path(giver, taker, export, import_, names).subject(spec)


def times_ns(case, device):
    """Until the call returns, and until the values are there, on an idle device."""
    device.synchronize_device()
    begin = device.now_ns
    device.spend(CALL_NS)
    result = case.convert()
    host = device.now_ns - begin
    case.wait_for(result)
    return host, device.now_ns - begin


def result_of(case, device):
    """What the instruments say of a case, by the simulated clock, as a session has it."""
    case.convert()
    host, ready = (make_measure(ns, (0.99 * ns, 1.01 * ns)) for ns in times_ns(case, device))
    found = {
        "values": values.measure(case),
        "ownership": ownership.measure(case, device),
        "ordering": ordering.measure(case, device),
        "early_write": early_write.measure(case, [4 << 10]),
        "lifetime": None,
    }
    if case.import_.name not in GROWING:
        found["lifetime"] = lifetime.measure(case, device, Silent())
    return make_result(case.code, case=record_of(case), host_time=host, ready_time=ready, **found)


def record_of(case):
    return {
        "producer": case.producer.name,
        "consumer": case.consumer.name,
        "export": case.export.name,
        "import": case.import_.name,
        "protocol": case.export.protocol.value,
        "shape": case.spec.shape,
        "dtype": case.spec.dtype,
        "layout": case.spec.layout,
        "device": "cuda",
        "promise": case.import_.promise,
    }


@pytest.mark.parametrize("plant", SIMULATED, ids=lambda plant: plant.name)
def test_a_fault_is_found_by_its_rule_and_a_control_is_not_blamed(plant, device):
    cases = [case_of(plant, number) for number in range(len(plant.ways))]
    results = [result_of(case, device) for case in cases]
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
