"""Aftermath: a conversion that changes its source, or an earlier result, is seen."""

from __future__ import annotations

import numpy
import pytest
from builders import make_subject

from dlprof.probes.base import ArraySpec, Import, Protocol
from dlprof.probes.numpy import NumPy
from dlprof.worker.instruments import values
from dlprof.worker.subject import OneArray

pytestmark = pytest.mark.unit


def measured(convert, spec=None, producer=None, consumer=None):
    way = Import("any", (Protocol.DLPACK,), "convert({x})")
    subject = make_subject(
        import_=way, spec=spec, producer=producer, consumer=consumer, convert=convert
    )
    return values.measure(subject)


def changed(*args, **names):
    found = measured(*args, **names)
    assert found["verdict"] == "wrong", found
    return found["evidence"]["changed"]


class Immutable(NumPy):
    """Does not let its arrays be written."""

    def write(self, array, value):
        return NotImplemented


class ReadOnly(NumPy):
    """Says that its arrays cannot be written."""

    def writable(self, array):
        return False


class Own(OneArray, NumPy):
    """Makes arrays by a user's own text."""

    array_name = "x"

    def __init__(self, text="x = numpy.arange(32, dtype='float32').reshape(4, 8)"):
        self.text = text

    def create(self, spec):
        return self.text


class OneBuffer:
    """Gives the same memory for every array of a shape."""

    def __init__(self):
        self.buffers = {}

    def __call__(self, array):
        buffer = self.buffers.setdefault(array.shape, numpy.empty_like(array))
        buffer[...] = array
        return buffer


class Cached:
    """Keeps a copy of each array, whatever is written to it later."""

    def __init__(self):
        self.kept = []

    def __call__(self, array):
        for source, copy in self.kept:
            if source is array:
                return copy
        self.kept.append((array, array.copy()))
        return self.kept[-1][1]


def write_source(array):
    copy = array.copy()
    array.reshape(-1)[3] = -5
    return copy


def lock(array):
    array.flags.writeable = False
    return array


INNOCENT = {
    "copy": numpy.copy,
    "view": lambda array: array[...],
    "itself": lambda array: array,
    "frozen copy": lambda array: lock(array.copy()),
}
ARRAYS = [
    ArraySpec((4, 8), "float32"),
    ArraySpec((), "float32"),
    ArraySpec((1,), "bool"),
    ArraySpec((0, 3), "float32"),
    ArraySpec((5, 7), "complex128"),
    ArraySpec((4, 8), "float32", "readonly"),
    ArraySpec((4, 8), "float32", "broadcast"),
    ArraySpec((4, 8), "int16", "strided"),
    ArraySpec((1 << 20,), "float32", "reversed"),
]


@pytest.mark.parametrize("spec", ARRAYS, ids=str)
@pytest.mark.parametrize("way", INNOCENT)
def test_what_is_innocent_is_not_blamed(way, spec):
    found = measured(INNOCENT[way], spec)
    assert (found["verdict"], found["evidence"]["changed"]) == ("ok", {})


def test_a_write_to_the_source_is_seen():
    assert changed(write_source) == {"source": {"different": 1, "of": 32, "first_index": 3}}


def test_a_source_that_can_be_written_after_the_call_alone_is_seen():
    def unlock(array):
        array.flags.writeable = True
        return array

    spec = ArraySpec((4, 8), "float32", "readonly")
    assert changed(unlock, spec) == {"source_writable": [False, True]}


def test_a_framework_may_guard_what_it_shares_by_making_the_source_read_only():
    assert measured(lock)["verdict"] == "ok"


def test_a_second_conversion_that_overwrites_the_first_result_is_seen():
    assert changed(OneBuffer()) == {"earlier_result": {"different": 32, "of": 32, "first_index": 0}}


def test_of_immutable_sources_two_copies_at_one_address_are_an_overwritten_result():
    assert changed(OneBuffer(), producer=Immutable()) == {"earlier_result": {"same_address": True}}


def test_immutable_results_may_share_what_has_the_same_values():
    found = measured(OneBuffer(), producer=Immutable(), consumer=ReadOnly())
    assert found["verdict"] == "ok"
    assert found["evidence"]["not_tried"] == "the source cannot be written"


def test_old_values_after_a_write_to_the_source_are_seen():
    assert changed(Cached()) == {"after_write": {"different": 32, "of": 32, "first_index": 0}}


def test_a_large_array_is_looked_at_small_and_its_text_is_kept():
    found = measured(OneBuffer(), ArraySpec((1024, 1024), "float32"))
    assert found["evidence"]["changed"]["earlier_result"]["of"] == 16384
    assert "16384" in found["evidence"]["create"]


def test_a_refusal_on_the_way_blames_nobody():
    calls = []

    def refuse(array):
        calls.append(array)
        if len(calls) > 2:
            raise ValueError("no more")
        return array.copy()

    found = measured(refuse)
    assert found["verdict"] == "ok"
    assert "no more" in found["evidence"]["not_tried"]


def test_a_slow_conversion_is_made_once_more_and_no_further(monkeypatch):
    monkeypatch.setattr(values, "SLOW_NS", -1)
    found = measured(OneBuffer())
    assert found["verdict"] == "ok"
    assert "takes too long" in found["evidence"]["not_tried"]


def test_a_users_own_array_is_looked_at_for_a_write():
    assert "source" in changed(write_source, producer=Own())


def test_a_buffer_of_a_users_own_is_his_own():
    assert measured(OneBuffer(), producer=Own())["verdict"] == "ok"


def test_the_measured_source_is_not_written():
    way = Import("any", (Protocol.DLPACK,), "convert({x})")
    subject = make_subject(import_=way, convert=numpy.copy)
    before = subject.source.copy()
    values.measure(subject)
    assert numpy.array_equal(subject.source, before)
