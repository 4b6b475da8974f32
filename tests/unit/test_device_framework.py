"""The synthetic frameworks on a device: their memory, their streams, what they hand over."""

from __future__ import annotations

import numpy
import pytest
from planted_on_device import put_in_place

from dlprof.device.cuda import LEGACY_STREAM
from dlprof.probes import capsule
from dlprof.selftest import device as frameworks
from dlprof.selftest.device import Pool

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


def test_a_block_that_has_no_owner_is_handed_out_again_on_its_own_stream_only(device):
    pool = Pool(device)
    address = pool.take(100, LEGACY_STREAM).address
    assert pool.take(100, device.new_stream(blocking=False)).address != address
    assert pool.take(100, LEGACY_STREAM).address == address


def test_an_array_after_work_is_not_there_before_its_end(device, framework):
    values, stream = numbers(3, 5), device.new_stream(blocking=False)
    array = framework.array(values)
    with framework.on(stream):
        assert framework.stream == stream
        later = array.after(MS)
    assert framework.stream == LEGACY_STREAM
    begin = device.now_ns
    assert not device.is_idle(later.stream)
    assert (later.get() == values).all()
    assert device.now_ns - begin >= 0.9 * MS


def test_new_memory_is_written_behind_the_work_of_its_last_owner(device, framework):
    with framework.on(device.new_stream(blocking=False)):
        framework.array(numbers(3, 5)).after(MS)  # dropped before it is made
        values = numbers(3, 5) + 1
        held = [framework.array(values) for _ in range(2)]
    device.synchronize_device()
    assert all((array.get() == values).all() for array in held)


def test_an_order_makes_one_stream_wait_and_not_the_host(device, framework):
    first, second, then, other = (device.new_stream(blocking=False) for _ in range(4))
    device.spin(first, MS)
    framework.order(first, then)
    framework.order(second, other)  # does not change the earlier one
    assert device.end_of(then) >= MS
    assert device.now_ns < MS / 10


def test_a_capsule_describes_the_array(framework):
    array = framework.array(numbers(3, 4, dtype="float64"))
    found = capsule.read(array.__dlpack__())
    assert found.name == "dltensor"
    assert (found.device, found.dtype, found.shape) == ("cuda:0", "float64", (3, 4))
    assert (found.strides, found.address) == ((4, 1), array.address)
