"""Device time on a simulated device: exact times, and honest ignorance."""

from __future__ import annotations

import pytest
from simulated_device import Behaviour, Costs, FakeFramework, SimulatedDevice, subject

from dlprof.device.cuda import LEGACY_STREAM
from dlprof.worker.instruments import device_time

pytestmark = pytest.mark.unit

SIZE = 8_000
WARM_NS, COLD_NS = 2_000, 4_000
NO_BUDGET = 0.0


@pytest.fixture
def device():
    return SimulatedDevice(Costs(queue_ns=1_000, event_ns=700))


def measured(device, *, budget_s=NO_BUDGET, stream=LEGACY_STREAM, **behaviour):
    producer = FakeFramework(device, stream, name="producer")
    consumer = FakeFramework(device, stream, Behaviour(**{"order": "nothing", **behaviour}))
    case = subject(producer, consumer, SIZE)
    return device_time.measure(case, device, consumer.current_stream("cuda"), budget_s)


def test_a_copy_takes_its_own_time_with_a_warm_cache(device):
    assert measured(device, copies=True)["warm"]["median_ns"] == WARM_NS


def test_a_copy_takes_its_own_time_with_a_cold_cache(device):
    assert measured(device, copies=True)["cold"]["median_ns"] == COLD_NS


def test_a_view_takes_no_device_time(device):
    found = measured(device, copies=False)
    assert (found["warm"]["median_ns"], found["cold"]["median_ns"]) == (0, 0)


def test_a_host_slower_than_the_first_spin_gets_a_longer_one(device):
    found = measured(device, copies=True, host_ns=300_000)
    assert found["verdict"] == "ok"
    assert found["spin_ns"] > found["host_ns"] > device_time.SHORTEST_SPIN_NS
    assert found["warm"]["median_ns"] == WARM_NS


@pytest.mark.parametrize("order", ["host", "device"])
def test_a_call_that_waits_is_unknown_and_says_so(device, order):
    found = measured(device, copies=True, order=order)
    assert (found["verdict"], found["reason"]) == ("unknown", device_time.WAITS)


def test_a_consumer_without_a_visible_stream_is_unknown(device):
    found = measured(device, private=True)
    assert (found["verdict"], found["reason"]) == ("unknown", device_time.NO_STREAM)


def test_a_host_that_becomes_slower_than_the_spin_is_unknown(device):
    producer = FakeFramework(device, LEGACY_STREAM, name="producer")
    consumer = FakeFramework(device, LEGACY_STREAM, Behaviour(order="nothing"))
    case = subject(producer, consumer, SIZE)
    host_times = iter([0, 0, 0])
    plain = consumer.from_dlpack

    def slower_and_slower(source):
        device.spend(next(host_times, 10_000_000))
        return plain(source)

    consumer.from_dlpack = slower_and_slower
    found = device_time.measure(case, device, LEGACY_STREAM, NO_BUDGET)
    assert (found["verdict"], found["reason"]) == ("unknown", device_time.SLOW)


def test_the_resolution_is_no_better_than_the_driver_promises(device):
    assert measured(device)["resolution_ns"] == device_time.EVENT_RESOLUTION_NS


def test_samples_are_taken_until_the_budget_is_spent(device):
    few = measured(device, budget_s=NO_BUDGET)
    many = measured(device, budget_s=1.0)
    assert len(few["warm"]["samples_ns"]) == device_time.MIN_SAMPLES
    assert len(many["warm"]["samples_ns"]) == device_time.MAX_SAMPLES


def test_work_queued_before_the_measurement_is_not_in_it(device):
    device.spin(LEGACY_STREAM, 5_000_000)
    assert measured(device, copies=True)["warm"]["median_ns"] == WARM_NS
