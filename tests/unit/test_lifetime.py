"""Lifetime: the judgement, what a conversion leaves behind, and real memory that is used again."""

from __future__ import annotations

import gc
import itertools
import weakref
from dataclasses import replace

import numpy
import pytest
from builders import make_subject

from dlprof.probes.base import Import, Protocol
from dlprof.probes.numpy import NumPy
from dlprof.worker.instruments import lifetime
from dlprof.worker.instruments.lifetime import CONVERSIONS, MOST_RUNS, SIZE_BYTES

pytestmark = pytest.mark.unit


def evidence(changed=False, size_bytes=0.0, references=0.0, objects=0.0):
    return {
        "changed_after_drop": changed,
        "bytes_per_conversion": size_bytes,
        "references_per_conversion": references,
        "objects_per_conversion": objects,
        "size_bytes": SIZE_BYTES,
        "conversions": 200,
        "runs": 12,
    }


def judge(found):
    return lifetime.judge(found)[0]


LEAKS = [
    {"size_bytes": SIZE_BYTES},
    {"size_bytes": SIZE_BYTES / 3},
    {"size_bytes": SIZE_BYTES / 10},
    {"references": 1.0},
    {"references": 0.1},
    {"objects": 1.0},
    {"objects": 1 / 3},
]
TRACES = [{"size_bytes": 61.0}, {"references": 0.005}, {"objects": 0.07}, {"objects": -9}]
OPEN = [{"size_bytes": SIZE_BYTES / 100}, {"references": 0.02}, {"objects": 0.13}]


class TestJudgement:
    def test_a_result_that_keeps_its_values_and_leaves_nothing_is_safe(self):
        assert judge(evidence()) == "safe"

    @pytest.mark.parametrize("leak", [{}, *LEAKS])
    def test_a_result_that_changed_is_dangling_whatever_else_is_seen(self, leak):
        assert judge(evidence(changed=True, **leak)) == "dangling"

    @pytest.mark.parametrize("leak", LEAKS)
    @pytest.mark.parametrize("changed", [False, None])
    def test_whatever_grows_with_every_conversion_is_retained(self, changed, leak):
        assert judge(evidence(changed=changed, **leak)) == "retained"

    @pytest.mark.parametrize("trace", TRACES)
    def test_what_frameworks_leave_that_keep_nothing_is_not(self, trace):
        assert judge(evidence(**trace)) == "safe"

    @pytest.mark.parametrize(
        ("grown", "words"),
        [*zip(OPEN, ["655 bytes", "0.02 references", "0.13 blocks"], strict=True)],
    )
    def test_what_is_more_than_nothing_and_no_proof_is_unknown_with_the_reason(self, grown, words):
        verdict, reason = lifetime.judge(evidence(**grown))
        assert verdict == "unknown"
        assert reason.startswith(words)
        assert "in each of 12 runs of 200" in reason

    def test_a_result_that_cannot_be_read_is_unknown(self):
        assert judge(evidence(changed=None)) == "unknown"


class TestRetained:
    def grown(self, convert, source=None, memory_bytes=lambda: 0):
        return lifetime.measure_growth(convert, source or object(), [memory_bytes], SIZE_BYTES)

    def test_a_call_that_leaves_nothing_leaves_nothing(self):
        found = self.grown(object)
        assert found["bytes_per_conversion"] == found["references_per_conversion"] == 0
        assert found["objects_per_conversion"] < lifetime.OBJECTS.nothing

    def test_of_several_meters_the_one_that_grew_most_counts(self):
        used = itertools.count(0, 4096 * CONVERSIONS)
        meters = [lambda: 0, lambda: next(used), lambda: 7]
        found = lifetime.measure_growth(object, object(), meters, SIZE_BYTES)
        assert found["bytes_per_conversion"] == 4096

    def test_references_to_the_source_are_counted(self):
        source, kept = object(), []
        found = self.grown(lambda: kept.append(source), source)
        assert found["references_per_conversion"] == 1

    def test_an_object_that_only_a_collection_frees_is_not_retained(self):
        def cycle():
            ring = []
            ring.append(ring)

        assert self.grown(cycle)["objects_per_conversion"] < lifetime.OBJECTS.nothing

    def test_memory_that_somebody_else_takes_once_is_not_retained(self):
        # before and after a first run, and then before and after two more
        meter = iter([0, 0, 0, 10**9, 10**9, 10**9])
        assert self.grown(object, memory_bytes=lambda: next(meter))["bytes_per_conversion"] == 0

    def test_two_runs_are_enough_where_nothing_grows(self):
        calls = itertools.count()
        assert self.grown(lambda: next(calls))["runs"] == 2
        assert next(calls) == 3 * CONVERSIONS

    def test_a_cache_that_fills_for_some_runs_is_waited_for(self):
        kept, calls = [], itertools.count()

        def fills():
            number = next(calls)
            if number < 5 * CONVERSIONS and number % 3 == 0:
                kept.append(object())

        found = self.grown(fills)
        assert found["objects_per_conversion"] < lifetime.OBJECTS.nothing
        assert found["runs"] == 5

    @pytest.mark.parametrize("every", [3, 10])
    def test_a_leak_at_some_conversions_is_a_leak(self, every):
        kept, calls, source = [], itertools.count(), object()

        def leak():
            if next(calls) % every == 0:
                kept.append(source)

        found = self.grown(leak, source)
        assert lifetime.judge_growth(found) == "retained"
        assert found["references_per_conversion"] == pytest.approx(1 / every, rel=0.1)
        assert found["runs"] == MOST_RUNS


class Block:
    """Memory from a pool, which has it back when the last array on it is gone."""

    def __init__(self, memory, values):
        self.memory = memory
        self.__array_interface__ = {
            "version": 3,
            "shape": values.shape,
            "typestr": values.dtype.str,
            "data": (memory.ctypes.data, False),
        }


class Pool:
    """Hands the memory out first that came back last, and never returns any to the system."""

    def __init__(self):
        self.free = []
        self.all = []

    def take(self, values):
        memory = self.free.pop() if self.free else numpy.zeros(values.nbytes, "uint8")
        self.all.append(memory)
        block = Block(memory, values)
        weakref.finalize(block, self.free.append, memory)
        array = numpy.asarray(block)
        array[...] = values
        return array


class Pooled(NumPy):
    """NumPy arrays on memory of a pool, so that what is freed is used again for certain."""

    def create(self, spec):
        return f"{super().create(spec)}\nx = pool.take(x)"


def without_owner(array):
    """A view that keeps nothing alive."""
    interface = array.__array_interface__

    class Bare:
        __array_interface__ = interface

    return numpy.asarray(Bare())


def measured(code, returns_array=True, **names):
    import_ = Import("any", (Protocol.DLPACK,), code, returns_array=returns_array)
    subject = make_subject(import_=import_, producer=Pooled(), pool=Pool(), **names)
    gc.collect()
    return lifetime.measure(subject)


@pytest.mark.parametrize("code", ["{x}[...]", "numpy.from_dlpack({x})", "{x}.copy()"])
def test_views_and_copies_that_keep_what_they_need_are_safe(code):
    found = measured(code)
    assert found["verdict"] == "safe"
    assert found["evidence"]["changed_after_drop"] is False


def test_a_view_that_does_not_keep_its_source_is_dangling():
    assert measured("take({x})", take=without_owner)["verdict"] == "dangling"


def test_a_result_that_is_kept_for_good_is_retained():
    kept = []

    def leak(array):
        kept.append(array.copy())
        return kept[-1]

    found = measured("take({x})", take=leak)
    assert found["verdict"] == "retained"
    assert found["evidence"]["bytes_per_conversion"] > SIZE_BYTES / 2


def test_a_source_that_is_kept_for_good_is_retained():
    kept = []

    def leak(array):
        kept.append(array)
        return array.copy()

    found = measured("take({x})", take=leak)
    assert found["verdict"] == "retained"
    assert found["evidence"]["references_per_conversion"] == pytest.approx(1, abs=0.1)


def test_a_conversion_without_a_result_is_unknown():
    found = measured("len({x})", returns_array=False)
    assert (found["verdict"], found["evidence"]["changed_after_drop"]) == ("unknown", None)


def test_the_cases_own_source_is_left_alone():
    import_ = Import("any", (Protocol.DLPACK,), "{x}[...]")
    subject = make_subject(import_=import_, producer=Pooled(), pool=Pool())
    before = subject.source.copy()
    lifetime.measure(subject)
    assert (subject.source == before).all()


class Counting(NumPy):
    """Says how much of the device's memory it uses: what ``used`` says."""

    def __init__(self, used):
        self.used = used

    def memory_in_use(self, device):
        return sum(self.used)


def measured_to_device(take, consumer):
    """A conversion from the host whose result is said to be on the device."""
    import_ = Import("any", (Protocol.DLPACK,), "take({x})")
    subject = make_subject(
        import_=import_, producer=Pooled(), consumer=consumer, pool=Pool(), take=take
    )
    return lifetime.measure(replace(subject, result_device="cuda"))


def test_memory_of_the_device_that_a_conversion_from_the_host_keeps_is_retained():
    used = []

    def leak(array):
        used.append(array.nbytes)
        return array.copy()

    found = measured_to_device(leak, Counting(used))
    assert found["verdict"] == "retained"
    assert found["evidence"]["bytes_per_conversion"] == SIZE_BYTES


def test_nothing_is_called_safe_where_nobody_counts_the_memory_of_the_device():
    found = measured_to_device(numpy.copy, NumPy())
    assert found["verdict"] == "unknown"
    assert found["evidence"]["reason"] == lifetime.UNCOUNTED
    assert found["evidence"]["device_counted"] is False


class Told:
    """A listener that writes down what it is told."""

    def __init__(self):
        self.said = []

    def stage(self, name):
        self.said.append(name)

    def part(self, name, value):
        self.said.append({name: dict(value)})


def test_it_says_where_it_is_so_that_a_death_can_be_placed():
    told = Told()
    calls = []

    def note(array):
        calls.append(list(told.said))
        return array.copy()

    import_ = Import("any", (Protocol.DLPACK,), "take({x})")
    subject = make_subject(import_=import_, producer=Pooled(), pool=Pool(), take=note)
    calls.clear()
    lifetime.measure(subject, listener=told)
    assert told.said == [
        "lifetime after drop",
        "lifetime release",
        {"after_drop": {"changed_after_drop": False}},
        "lifetime repetition",
    ]
    assert calls[0] == []
    assert all(call[-1] == "lifetime repetition" for call in calls[1:])
