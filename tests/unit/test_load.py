"""The load of a case: whose memory is spoiled, and which values are compared."""

from __future__ import annotations

import dataclasses

import numpy
import pytest
from builders import make_subject
from simulated_device import Behaviour, pair

from dlprof.probes.base import Import, Protocol
from dlprof.probes.numpy import NumPy
from dlprof.worker.load import SPIN_UNIT_NS, default_sides, load_of

pytestmark = pytest.mark.unit


class Immutable(NumPy):
    def write(self, array, value):
        return NotImplemented


def host_load(producer=None, **changes):
    import_ = Import("any", (Protocol.DLPACK,), "{x}[...]", **changes)
    case = make_subject(import_=import_, producer=producer)
    return load_of(case, "y = x + 0", None, default_sides(case)), case


@pytest.mark.parametrize("producer", [NumPy(), Immutable()], ids=["writable", "immutable"])
def test_a_finished_array_is_spoiled_whether_it_can_be_written_or_not(producer):
    load, _ = host_load(producer)
    array = load.enqueue(1)
    before = array.copy()
    load.spoil(array)
    assert (array != before).any()


@pytest.mark.parametrize("producer", [NumPy(), Immutable()], ids=["writable", "immutable"])
def test_the_source_is_never_spoiled(producer):
    load, case = host_load(producer)
    before = case.source.copy()
    load.spoil(case.source)
    assert (case.source == before).all()


def test_values_are_compared_with_the_array_that_was_converted():
    load, case = host_load()
    array = case.source * 2
    assert load.is_right(load.look(array), array) is True
    assert load.is_right(load.look(case.source), array) is False


@pytest.mark.parametrize("seen", [None, numpy.zeros((4, 8), "int32"), numpy.zeros(32, "float32")])
def test_values_of_another_kind_are_not_compared(seen):
    load, case = host_load()
    assert load.is_right(seen, case.source) is None


def test_a_known_stream_is_loaded_by_a_spin_of_known_length():
    case, device = pair()
    load = load_of(case, case.producer.enqueue(case.spec), device, default_sides(case))
    began = device.now_ns
    load.finish(load.enqueue(50))
    assert device.now_ns - began == pytest.approx(50 * SPIN_UNIT_NS, rel=0.01)


def test_a_private_stream_is_loaded_by_its_framework():
    case, device = pair(producer=Behaviour(private=True))
    load = load_of(case, "y = producer.compute(x, 1000 * work)", device, default_sides(case))
    began = device.now_ns
    load.finish(load.enqueue(5_000))
    assert device.now_ns - began == pytest.approx(5_000_000, rel=0.01)


def test_a_consumer_on_the_device_that_cannot_be_asked_has_no_witness():
    case, device = pair(private=True, mute=True)
    load = load_of(case, case.producer.enqueue(case.spec), device, default_sides(case))
    assert (load.ready, load.ready_how) == (None, "")


def test_a_result_on_the_host_is_waited_for_by_the_consumer():
    case, device = pair()
    host = dataclasses.replace(case, result_device="cpu")
    load = load_of(host, case.producer.enqueue(case.spec), device, default_sides(case))
    assert load.ready_how == "the consumer's own wait"
