"""The simulated device keeps the rules of CUDA streams."""

from __future__ import annotations

import pytest
from simulated_device import (
    Behaviour,
    Costs,
    FakeArray,
    FakeFramework,
    SimulatedDevice,
    subject,
)

from dlprof.device.cuda import LEGACY_STREAM, PER_THREAD_STREAM, Gpu

pytestmark = pytest.mark.unit

FREE = Costs(queue_ns=0, event_ns=0)
WORK_NS = 1_000_000


@pytest.fixture
def device():
    return SimulatedDevice(FREE)


def ends_after(device, stream):
    """When an empty piece of work queued on ``stream`` now would be done."""
    return device.queue(stream, 0)[1]


def test_it_is_a_gpu(device):
    gpu: Gpu = device
    assert gpu.properties.l2_size_bytes > 0


def test_queueing_costs_the_host_and_not_the_device():
    device = SimulatedDevice(Costs(queue_ns=30))
    device.spin(LEGACY_STREAM, WORK_NS)
    assert device.host_ns() == 30


def test_work_on_one_stream_runs_in_order(device):
    device.spin(PER_THREAD_STREAM, WORK_NS)
    device.spin(PER_THREAD_STREAM, WORK_NS)
    assert ends_after(device, PER_THREAD_STREAM) == 2 * WORK_NS


def test_an_idle_stream_starts_work_when_the_host_queues_it(device):
    device.spend(500)
    assert device.queue(PER_THREAD_STREAM, 10) == (500, 510)


def test_synchronizing_a_stream_moves_the_host_to_the_end_of_its_work(device):
    device.spin(PER_THREAD_STREAM, WORK_NS)
    device.synchronize(PER_THREAD_STREAM)
    assert device.host_ns() == WORK_NS


def test_synchronizing_an_idle_stream_takes_no_time(device):
    device.synchronize(PER_THREAD_STREAM)
    assert device.host_ns() == 0


def test_synchronizing_the_device_waits_for_every_stream(device):
    device.spin(device.new_stream(blocking=False), WORK_NS)
    device.synchronize_device()
    assert device.host_ns() == WORK_NS


@pytest.mark.parametrize("legacy", [0, LEGACY_STREAM])
def test_the_legacy_default_stream_waits_for_blocking_streams(device, legacy):
    device.spin(device.new_stream(blocking=True), WORK_NS)
    assert ends_after(device, legacy) == WORK_NS


def test_the_legacy_default_stream_waits_for_the_per_thread_default_stream(device):
    device.spin(PER_THREAD_STREAM, WORK_NS)
    assert ends_after(device, LEGACY_STREAM) == WORK_NS


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


def test_an_event_is_done_when_the_host_has_reached_it(device):
    event = device.event()
    device.spin(PER_THREAD_STREAM, WORK_NS)
    device.record(event, PER_THREAD_STREAM)
    assert not device.is_done(event)
    device.synchronize(PER_THREAD_STREAM)
    assert device.is_done(event)


def test_the_time_between_two_events_holds_the_work_and_one_event():
    device = SimulatedDevice(Costs(queue_ns=0, event_ns=700))
    start, end = device.event(), device.event()
    device.record(start, PER_THREAD_STREAM)
    device.spin(PER_THREAD_STREAM, WORK_NS)
    device.record(end, PER_THREAD_STREAM)
    device.synchronize(PER_THREAD_STREAM)
    assert device.elapsed_ns(start, end) == WORK_NS + 700


def test_memory_holds_what_was_written_by_address(device):
    address = device.allocate(4)
    device.write(address, b"\7\7\7\7")
    assert device.read(address, 4) == b"\7\7\7\7"


def test_a_write_of_a_part_leaves_the_rest(device):
    address = device.allocate(4)
    device.write(address, b"\1\2\3\4")
    device.write(address, b"\7\7")
    assert device.read(address, 4) == b"\7\7\3\4"


def test_a_copy_carries_every_byte(device):
    source, target = device.allocate(4), device.allocate(4)
    device.write(source, b"\1\2\3\4")
    device.copy(target, source, 3, PER_THREAD_STREAM)
    device.synchronize(PER_THREAD_STREAM)
    assert device.read(target, 4) == b"\1\2\3\0"


def test_a_write_right_after_a_copy_has_ended_is_not_in_it(device):
    source, target = device.allocate(8), device.allocate(8)
    device.copy(target, source, 8, PER_THREAD_STREAM)
    device.synchronize(PER_THREAD_STREAM)
    device.write(source, b"\5" * 8)
    assert device.read(target, 1) == b"\0"


def test_allocations_do_not_overlap(device):
    first, second = device.allocate(1_000), device.allocate(1)
    assert second - first >= 1_000


def test_a_copy_lands_when_its_stream_has_got_to_it(device):
    source, target = device.allocate(8), device.allocate(8)
    device.write(source, b"\5" * 8)
    device.spin(PER_THREAD_STREAM, WORK_NS)
    device.copy(target, source, 8, PER_THREAD_STREAM)
    assert device.read(target, 1) == b"\0"
    device.synchronize(PER_THREAD_STREAM)
    assert device.read(target, 1) == b"\5"


def test_a_copy_sees_a_write_that_lands_while_it_is_queued(device):
    source, target = device.allocate(8), device.allocate(8)
    device.spin(PER_THREAD_STREAM, WORK_NS)
    device.copy(target, source, 8, PER_THREAD_STREAM)
    device.write(source, b"\5" * 8)
    device.synchronize(PER_THREAD_STREAM)
    assert device.read(target, 1) == b"\5"


def test_a_copy_does_not_see_a_later_write(device):
    source, target = device.allocate(8), device.allocate(8)
    device.copy(target, source, 8, PER_THREAD_STREAM)
    device.synchronize(PER_THREAD_STREAM)
    device.spend(1)
    device.write(source, b"\5" * 8)
    assert device.read(target, 1) == b"\0"


def test_a_copy_after_a_flush_of_the_l2_cache_takes_longer(device):
    source, target = device.allocate(800), device.allocate(800)
    device.copy(target, source, 800, LEGACY_STREAM)
    warm = device.copy_ns(800)
    device.flush_l2(LEGACY_STREAM)
    assert (warm, device.copy_ns(800)) == (200, 400)


class TestFrameworks:
    """Each with a millisecond of work queued on the producer, on streams that ignore each other."""

    @pytest.fixture
    def convert(self, device):
        def convert(**behaviour):
            producer = FakeFramework(device, device.new_stream(blocking=False), name="producer")
            other = device.new_stream(blocking=False)
            device.spin(other, 3 * WORK_NS)
            stream = device.new_stream(blocking=False)
            consumer = FakeFramework(device, stream, Behaviour(host_ns=100, **behaviour))
            source = producer.compute(producer.array(8), WORK_NS)
            return source, consumer.from_dlpack(source)

        return convert

    def test_a_view_has_the_producers_address(self, convert):
        source, result = convert()
        assert result.address == source.address

    def test_a_copy_has_an_address_of_its_own(self, convert):
        source, result = convert(copies=True)
        assert result.address != source.address

    def test_a_host_wait_ends_with_the_producers_stream(self, device, convert):
        convert(order="host")
        assert device.host_ns() == WORK_NS

    def test_a_device_wait_ends_with_the_last_stream(self, device, convert):
        convert(order="device")
        assert device.host_ns() == 3 * WORK_NS

    def test_an_event_makes_the_stream_wait_and_not_the_host(self, device, convert):
        _, result = convert(order="event")
        assert device.host_ns() == 100
        assert not device.is_idle(result.stream)

    def test_an_unordered_import_leaves_its_stream_idle(self, device, convert):
        _, result = convert(order="nothing")
        assert device.is_idle(result.stream)

    def test_an_ordered_copy_has_the_producers_result(self, device, convert):
        _, result = convert(order="event", copies=True)
        device.synchronize(result.stream)
        assert device.read(result.address, 1) == b"\1"

    def test_an_unordered_copy_has_a_stale_value(self, device, convert):
        _, result = convert(order="nothing", copies=True)
        device.synchronize_device()
        assert device.read(result.address, 1) == b"\0"

    def test_a_private_stream_is_not_shown(self, device):
        framework = FakeFramework(device, LEGACY_STREAM, Behaviour(private=True))
        assert framework.current_stream("cuda") is None


def test_a_subject_converts_the_source_by_its_own_code(device):
    producer = FakeFramework(device, LEGACY_STREAM, name="producer")
    consumer = FakeFramework(device, PER_THREAD_STREAM)
    case = subject(producer, consumer, 64)
    assert case.code == "consumer.from_dlpack(x)"
    assert case.convert() == FakeArray(case.source.address, 64, PER_THREAD_STREAM)
