"""The synthetic frameworks on a device: their memory, their streams, what they hand over."""

from __future__ import annotations

import numpy
import pytest
from planted_on_device import put_in_place

from dlprof.device.cuda import LEGACY_STREAM
from dlprof.probes import capsule
from dlprof.selftest import device as frameworks
from dlprof.selftest.device import GRAIN_BYTES, Pool

pytestmark = pytest.mark.unit

MS = 1_000_000


@pytest.fixture
def device(monkeypatch):
    return put_in_place(monkeypatch)


@pytest.fixture
def framework(device):
    return frameworks.named("one")


def numbers(*shape, dtype="float32"):
    return numpy.arange(numpy.prod(shape)).reshape(shape).astype(dtype)


class TestPool:
    def test_a_block_that_nobody_holds_is_handed_out_again(self, device):
        pool = Pool(device)
        first = pool.take(100, LEGACY_STREAM)
        address = first.address
        del first
        assert pool.take(100, LEGACY_STREAM).address == address

    def test_no_other_stream_gets_it_on_which_its_last_work_may_not_be_done(self, device):
        pool = Pool(device)
        address = pool.take(100, LEGACY_STREAM).address
        assert pool.take(100, device.new_stream(blocking=False)).address != address

    def test_bytes_in_use_are_those_that_somebody_holds(self, device):
        pool = Pool(device)
        held = [pool.take(1, LEGACY_STREAM), pool.take(GRAIN_BYTES + 1, LEGACY_STREAM)]
        assert pool.bytes_in_use == 3 * GRAIN_BYTES
        held.pop()
        assert pool.bytes_in_use == GRAIN_BYTES


class TestArrays:
    @pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "complex128"])
    def test_values_come_back_from_the_device(self, framework, dtype):
        values = numbers(3, 5, dtype=dtype)
        assert (framework.array(values).get() == values).all()

    def test_an_array_after_work_is_not_there_before_its_end(self, device, framework):
        values = numbers(3, 5)
        array = framework.array(values)
        with framework.on(device.new_stream(blocking=False)):
            later = array.after(MS)
        begin = device.now_ns
        assert not device.is_idle(later.stream)
        assert (later.get() == values).all()
        assert device.now_ns - begin >= 0.9 * MS

    def test_new_memory_is_written_behind_what_its_last_owner_queued(self, device, framework):
        stream = device.new_stream(blocking=False)
        with framework.on(stream):
            framework.array(numbers(3, 5)).after(MS)  # dropped before it is made
            values = numbers(3, 5) + 1
            held = [framework.array(values) for _ in range(2)]
        device.synchronize_device()
        assert all((array.get() == values).all() for array in held)


class TestStreams:
    def test_a_framework_begins_on_the_legacy_default_stream(self, framework):
        assert framework.stream == LEGACY_STREAM

    def test_it_is_put_on_a_stream_and_back(self, device, framework):
        stream = device.new_stream(blocking=False)
        with framework.on(stream):
            assert framework.stream == stream
        assert framework.stream == LEGACY_STREAM

    def test_an_order_makes_one_stream_wait_and_not_the_host(self, device, framework):
        first, then = (device.new_stream(blocking=False) for _ in range(2))
        device.spin(first, MS)
        framework.order(first, then)
        assert not device.is_idle(then)
        assert device.now_ns < MS / 10

    def test_a_later_order_does_not_change_an_earlier_one(self, device, framework):
        first, second, then = (device.new_stream(blocking=False) for _ in range(3))
        device.spin(first, MS)
        framework.order(first, then)
        framework.order(second, device.new_stream(blocking=False))
        assert device.end_of(then) >= MS


class TestHandingOver:
    def test_a_capsule_describes_the_array(self, framework):
        array = framework.array(numbers(3, 4, dtype="float64"))
        found = capsule.read(array.__dlpack__())
        assert found.name == "dltensor"
        assert (found.device, found.dtype, found.shape) == ("cuda:0", "float64", (3, 4))
        assert (found.strides, found.address) == ((4, 1), array.address)
