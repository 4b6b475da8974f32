"""The synthetic frameworks on a real device do what is said of them, whatever instruments see.

Truth is established here: a spin of known length in front, the host's clock, and memory that is
overwritten first.
"""

from __future__ import annotations

import numpy
import pytest

from dlprof.device.cuda import CudaUnavailable, open_gpu
from dlprof.selftest import device as frameworks

pytestmark = pytest.mark.cuda

try:
    GPU = open_gpu()
except CudaUnavailable as reason:
    pytest.skip(str(reason), allow_module_level=True)

MS = 1_000_000
SPIN_NS = 50 * MS
SHORT_NS = 20 * MS
"""More than a call takes that does not wait, much less than the spin."""
VALUES = numpy.arange(4096, dtype="float32").reshape(64, 64)


@pytest.fixture
def producer():
    framework = frameworks.named("producer")
    with framework.on(GPU.new_stream(blocking=False)):
        yield framework
    GPU.synchronize_device()


@pytest.fixture
def consumer():
    framework = frameworks.named("consumer")
    with framework.on(GPU.new_stream(blocking=False)):
        yield framework
    GPU.synchronize_device()


@pytest.fixture(autouse=True)
def _everything_is_loaded(producer, consumer):
    # What is used for the first time may load code, which waits for the device.
    for way in (frameworks.copy, frameworks.early, frameworks.slow, frameworks.retry):
        way(producer.array(VALUES).after(0), consumer).get()
    producer.array(VALUES).after(0).fill(0)
    GPU.synchronize_device()


def busy(producer):
    """An array that is there after the spin, in memory that holds zeros until then."""
    source = producer.array(VALUES)
    spoiled = producer.array(VALUES)
    spoiled.fill(0)
    address = spoiled.address
    del spoiled  # the next array of its size and stream gets its memory
    array = source.after(SPIN_NS)
    assert array.address == address
    return array


def took_ns(call):
    begin = GPU.host_ns()
    result = call()
    return result, GPU.host_ns() - begin


def test_values_come_back_from_the_device(producer):
    assert (producer.array(VALUES).get() == VALUES).all()


@pytest.mark.parametrize("way", [frameworks.sync, frameworks.device_sync])
def test_a_way_that_waits_returns_after_the_work(producer, consumer, way):
    source = busy(producer)
    _, host = took_ns(lambda: way(source, consumer))
    assert host > SPIN_NS / 2


def test_a_wait_for_one_stream_is_none_for_another(producer, consumer):
    source = producer.array(VALUES)
    other = GPU.new_stream(blocking=False)
    GPU.spin(other, SPIN_NS)
    _, host = took_ns(lambda: frameworks.sync(source, consumer))
    assert host < SHORT_NS
    _, host = took_ns(lambda: frameworks.device_sync(source, consumer))
    assert host > SPIN_NS / 4


@pytest.mark.parametrize("way", [frameworks.view, frameworks.copy, frameworks.retry])
def test_an_ordered_way_returns_at_once_and_its_values_come_after_the_work(producer, consumer, way):
    source = busy(producer)
    result, host = took_ns(lambda: way(source, consumer))
    assert host < SHORT_NS
    assert (result.get() == VALUES).all()


@pytest.mark.parametrize("way", [frameworks.race, frameworks.legacy_race])
def test_a_race_reads_what_was_there_before_the_work(producer, consumer, way):
    result = way(busy(producer), consumer)
    assert not result.get().any()
    GPU.synchronize_device()
    assert (result.get() == VALUES).all()


def test_where_both_are_on_the_legacy_default_stream_the_same_way_races_not():
    producer, consumer = frameworks.named("fixed"), frameworks.named("fixed too")
    assert (frameworks.race(busy(producer), consumer).get() == VALUES).all()


@pytest.mark.parametrize(
    ("way", "whole"), [(frameworks.copy, True), (frameworks.early, True), (frameworks.late, False)]
)
def test_a_source_that_is_written_at_once_changes_a_late_copy_only(producer, consumer, way, whole):
    source = producer.array(VALUES)
    result = way(source, consumer)
    source.fill(0)
    assert (result.get() == VALUES).all() == whole


def test_a_view_without_an_owner_shows_what_the_memory_is_used_for_next(producer, consumer):
    source = producer.array(VALUES)
    result = frameworks.dangle(source, consumer)
    kept = frameworks.view(source, consumer)
    del source
    producer.array(VALUES + 1)
    assert (result.get() == VALUES).all()  # another view keeps it yet
    del kept
    GPU.synchronize_device()
    again = producer.array(VALUES + 1)
    assert (result.get() == again.get()).all()


def test_a_leak_takes_more_device_memory_each_time(producer, consumer):
    source = producer.array(VALUES)
    before = consumer.pool.bytes_in_use
    for _ in range(3):
        frameworks.leak(source, consumer)
    assert consumer.pool.bytes_in_use - before == 3 * VALUES.nbytes
