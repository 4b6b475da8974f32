"""The simulated device keeps the rules of CUDA streams."""

from __future__ import annotations

import pytest
from simulated_device import (
    Costs,
    SimulatedDevice,
)

from dlprof.device.cuda import LEGACY_STREAM, PER_THREAD_STREAM

pytestmark = pytest.mark.unit

FREE = Costs(queue_ns=0, event_ns=0)
WORK_NS = 1_000_000


@pytest.fixture
def device():
    return SimulatedDevice(FREE)


def ends_after(device, stream):
    """When an empty piece of work queued on ``stream`` now would be done."""
    return device.queue(stream, 0)[1]


@pytest.mark.parametrize("legacy", [0, LEGACY_STREAM])
def test_the_legacy_default_stream_waits_for_blocking_streams(device, legacy):
    device.spin(device.new_stream(blocking=True), WORK_NS)
    assert ends_after(device, legacy) == WORK_NS


def test_blocking_streams_wait_for_the_legacy_default_stream(device):
    device.spin(LEGACY_STREAM, WORK_NS)
    assert ends_after(device, device.new_stream(blocking=True)) == WORK_NS


def test_blocking_streams_do_not_wait_for_each_other(device):
    device.spin(device.new_stream(blocking=True), WORK_NS)
    assert ends_after(device, device.new_stream(blocking=True)) == 0


def test_non_blocking_streams_do_not_wait_for_the_legacy_default_stream(device):
    device.spin(LEGACY_STREAM, WORK_NS)
    assert ends_after(device, device.new_stream(blocking=False)) == 0


def test_the_legacy_default_stream_does_not_wait_for_non_blocking_streams(device):
    device.spin(device.new_stream(blocking=False), WORK_NS)
    assert ends_after(device, LEGACY_STREAM) == 0


def test_a_stream_waits_for_an_event_of_another(device):
    first, second = device.new_stream(blocking=False), device.new_stream(blocking=False)
    event = device.event()
    device.spin(first, WORK_NS)
    device.record(event, first)
    device.wait_event(second, event)
    assert ends_after(device, second) == WORK_NS


def test_the_time_between_two_events_holds_the_work_and_one_event():
    device = SimulatedDevice(Costs(queue_ns=0, event_ns=700))
    start, end = device.event(), device.event()
    device.record(start, PER_THREAD_STREAM)
    device.spin(PER_THREAD_STREAM, WORK_NS)
    device.record(end, PER_THREAD_STREAM)
    device.synchronize(PER_THREAD_STREAM)
    assert device.elapsed_ns(start, end) == WORK_NS + 700


def test_a_copy_lands_when_its_stream_has_got_to_it(device):
    source, target = device.allocate(8), device.allocate(8)
    device.write(source, b"\5" * 8)
    device.spin(PER_THREAD_STREAM, WORK_NS)
    device.copy(target, source, 8, PER_THREAD_STREAM)
    assert device.read(target, 1) == b"\0"
    device.synchronize(PER_THREAD_STREAM)
    assert device.read(target, 1) == b"\5"
