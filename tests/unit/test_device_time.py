"""Device time on a simulated device: exact times, or unknown."""

import itertools

import pytest
from simulated_device import SimulatedDevice, pair

from dlprof.device.cuda import LEGACY_STREAM
from dlprof.worker.instruments import device_time

SIZE = 8_000
WARM_NS, COLD_NS = 2_000, 4_000


@pytest.fixture
def device():
    return SimulatedDevice()


def measured(device, is_slow=lambda call: False, order="nothing", **behaviour):
    """Return the device time of a conversion on legacy streams; ``is_slow`` calls take 10 ms."""
    case, _ = pair(device, ("legacy", "legacy"), size_bytes=SIZE, order=order, **behaviour)
    plain, calls = case.consumer.from_dlpack, itertools.count()

    def convert(source):
        device.spend(10_000_000 * is_slow(next(calls)))
        return plain(source)

    case.consumer.from_dlpack = convert
    return device_time.measure(case, device, case.consumer.current_stream("cuda"), 0.0)


def test_a_copy_takes_its_own_time_regardless_of_queued_work(device):
    device.spin(LEGACY_STREAM, 5_000_000)
    found = measured(device, copies=True)
    assert (found["warm"]["median_ns"], found["cold"]["median_ns"]) == (WARM_NS, COLD_NS)
    assert found["resolution_ns"] == device_time.EVENT_RESOLUTION_NS


def test_a_view_takes_no_device_time(device):
    found = measured(device, copies=False)
    assert (found["warm"]["median_ns"], found["cold"]["median_ns"]) == (0, 0)


def test_a_host_slower_than_the_first_spin_gets_a_longer_one(device):
    found = measured(device, copies=True, host_ns=300_000)
    assert found["verdict"] == "ok"
    assert found["warm"]["median_ns"] == WARM_NS


def test_a_sample_with_a_gap_is_taken_again(device):
    found = measured(device, copies=True, is_slow=lambda call: call == 7)
    assert found["verdict"] == "ok"
    assert found["warm"]["median_ns"] == WARM_NS


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"order": "host", "copies": True}, device_time.WAITS),
        ({"order": "device", "copies": True}, device_time.WAITS),
        ({"private": True}, device_time.NO_STREAM),
        ({"is_slow": lambda call: call >= 3}, device_time.SLOW),
    ],
)
def test_a_call_that_cannot_be_measured_is_unknown_with_a_reason(device, options, reason):
    found = measured(device, **options)
    assert (found["verdict"], found["reason"]) == ("unknown", reason)
