"""Lifetime: a result without its source, a source without its result, and retained memory."""

import gc
import itertools
import math
import threading
import weakref
from collections import defaultdict
from dataclasses import replace

import numpy
import pytest
from builders import Silent, make_subject

from dlprof.probes.base import Import, Protocol
from dlprof.probes.numpy import NumPy
from dlprof.probes.torch import Torch
from dlprof.worker import growth
from dlprof.worker.instruments import lifetime
from dlprof.worker.instruments.lifetime import SIZE_BYTES
from dlprof.worker.simulated import NOT_COMPUTED
from dlprof.worker.subject import OneArray


@pytest.fixture(autouse=True)
def _no_wait(monkeypatch):
    monkeypatch.setattr(growth, "RELEASED_S", 0.0)


class Block:
    """Memory from a pool, returned to it when the last array on it is gone."""

    def __init__(self, memory, values):
        self.memory = memory
        self.__array_interface__ = {
            "version": 3,
            "shape": values.shape,
            "typestr": values.dtype.str,
            "data": (memory.ctypes.data, False),
        }


class Pool:
    """A pool that returns nothing to the system. It reuses the last free block, or the first."""

    def __init__(self, blocks=0, turn=-1):
        self.free = defaultdict(list)
        self.free[SIZE_BYTES] = [numpy.zeros(SIZE_BYTES, "uint8") for _ in range(blocks)]
        self.all, self.turn = [], turn

    def take(self, values):
        free = self.free[values.nbytes]
        memory = free.pop(self.turn) if free else numpy.zeros(values.nbytes, "uint8")
        self.all.append(memory)
        block = Block(memory, values)
        weakref.finalize(block, free.append, memory)
        array = numpy.asarray(block)
        array[...] = values
        return array


class Pooled(NumPy):
    """NumPy arrays in pool memory, so that freed memory is certain to be reused."""

    def create(self, spec):
        return f"{super().create(spec)}\nx = pool.take(x)"


def subject_of(code, **options):
    import_ = Import("any", (Protocol.DLPACK,), code)
    return make_subject(import_=import_, **{"producer": Pooled(), "pool": Pool(), **options})


def measured(code, **options):
    subject = subject_of(code, **options)
    gc.collect()
    before = subject.source.copy()
    found = lifetime.measure(subject, None, Silent())
    assert (subject.source == before).all(), "the case's source was changed"
    return found


@pytest.mark.parametrize("code", ["{x}[...]", "numpy.from_dlpack({x})", "{x}.copy()"])
def test_views_and_copies_that_own_their_memory_are_safe(code):
    found = measured(code)
    assert (found["verdict"], found["evidence"]["changed_after_drop"]) == ("safe", False)
    assert found["evidence"]["source_after_drop"] == "same"
    assert "released_by" not in found["evidence"]


def without_owner(array):
    interface = array.__array_interface__

    class Bare:
        __array_interface__ = interface

    return numpy.asarray(Bare())


@pytest.mark.parametrize(
    ("size_bytes", "shape"),
    [(512, [128]), (2 << 20, [2 << 18]), (128, [4, 8])],
    ids=["small", "large", "the case's own"],
)
def test_a_source_that_is_lost_at_one_size_only_is_lost(size_bytes, shape):
    def take(array):
        return without_owner(array) if array.nbytes == size_bytes else array[...]

    found = measured("take({x})", take=take)
    assert (found["verdict"], found["evidence"]["changed_after_drop"]) == ("dangling", True)
    assert found["evidence"]["created_shape"] == shape


@pytest.mark.parametrize("pool", [Pool(), Pool(blocks=13, turn=0)], ids=["only", "last"])
def test_a_view_that_does_not_keep_its_source_is_dangling(pool):
    assert measured("take({x})", take=without_owner, pool=pool)["verdict"] == "dangling"


@pytest.mark.parametrize("size_bytes", [SIZE_BYTES, 512, 2 << 20, 128])
def test_a_source_that_is_spoiled_when_its_result_goes_is_lost(size_bytes):
    def take(array):
        result = array.view()
        if array.nbytes == size_bytes:
            weakref.finalize(result, array.fill, 3)
        return result

    found = measured("take({x})", take=take)
    assert (found["verdict"], found["evidence"]["source_after_drop"]) == ("dangling", "changed")
    assert math.prod(found["evidence"]["created_shape"]) * 4 == size_bytes


def test_a_result_that_is_spoiled_when_another_of_its_source_goes_is_lost():
    shared = {}

    def take(array):
        copy = shared.setdefault(id(array), array.copy())
        result = copy.view()
        weakref.finalize(result, copy.fill, 3)
        return result

    found = measured("take({x})", take=take)
    states = found["evidence"]["source_after_drop"], found["evidence"]["other_after_drop"]
    assert (found["verdict"], *states) == ("dangling", "same", "changed")


def test_a_source_that_is_lost_when_another_thread_drops_its_result_is_lost():
    main = threading.get_ident()

    def release(array):
        if threading.get_ident() != main:
            array.fill(3)

    def take(array):
        result = array.view()
        weakref.finalize(result, release, array)
        return result

    found = measured("take({x})", take=take)
    assert (found["verdict"], found["evidence"]["released_by"]) == ("dangling", "another thread")


@pytest.mark.parametrize("released_by", ["y.set_()", "a backward pass"])
def test_a_source_that_is_lost_when_its_consumer_releases_the_result_is_lost(released_by):
    import torch

    class Spoiled(Torch):
        def releases(self, dtype):
            text = super().releases(dtype)[released_by]
            return {released_by: f"{text}\nspoil()"}

    made = []

    def take(array):
        made.append(array)
        return torch.from_numpy(array)

    names = {"consumer": Spoiled(), "take": take, "torch": torch, "spoil": lambda: made[-1].fill(3)}
    found = measured("take({x})", **names)
    assert (found["verdict"], found["evidence"]["released_by"]) == ("dangling", released_by)


def test_a_brief_look_drops_and_repeats_nothing():
    kept = []
    subject = subject_of("take({x})", take=lambda array: kept.append(array) or array[...])
    found = lifetime.measure(subject, None, Silent(), is_brief=True)
    assert (found["verdict"], len(kept) < 10) == ("safe", True)
    dangling = lifetime.measure(
        subject_of("take({x})", take=without_owner), None, Silent(), is_brief=True
    )
    assert dangling["verdict"] == "dangling"


def test_a_brief_look_is_left_out_if_a_users_setup_takes_long(monkeypatch):
    class Own(OneArray, Pooled):
        array_name = created = "x"

    slow = subject_of("take({x})", producer=Own(), take=lambda array: array)
    monkeypatch.setattr(lifetime, "BRIEF_S", 0.0)
    assert lifetime.measure(slow, None, Silent(), is_brief=True) is None


class Late(numpy.ndarray):
    """A result whose values come after the first read."""

    reads = 0

    def copy(self):
        self.reads += 1
        return numpy.full(self.shape, self.reads, self.dtype)


def test_a_result_that_changes_while_its_source_is_kept_is_not_accused_of_losing_it():
    found = measured("take({x})", take=lambda array: array.copy().view(Late))
    assert found["verdict"] == "unknown"
    assert "while its source is kept" in found["evidence"]["reason"]


class Mapped(numpy.ndarray):
    """Memory that a driver unmaps when its source is freed."""

    source = None

    def copy(self):
        if self.source is not None and self.source() is None:
            message = "invalid argument"
            raise RuntimeError(message)
        return super().copy()


def test_a_result_that_cannot_be_read_without_its_source_is_dangling():
    def take(array):
        result = without_owner(array).view(Mapped)
        result.source = weakref.ref(array)
        return result

    found = measured("take({x})", take=take)
    assert found["verdict"] == "dangling"
    assert found["evidence"]["error_after_drop"] == "RuntimeError: invalid argument"


@pytest.mark.parametrize("keeps", ["source", "result"])
def test_a_source_or_a_result_that_is_kept_forever_is_retained(keeps):
    kept = []

    def leak(array):
        result = array.copy()
        kept.append(array if keeps == "source" else result)
        return result

    found = measured("take({x})", take=leak)
    assert found["verdict"] == "retained"
    if keeps == "source":
        assert found["evidence"]["references_per_conversion"] == pytest.approx(1, abs=0.1)
    else:
        assert found["evidence"]["bytes_per_conversion"] > SIZE_BYTES / 2


def keeps_each_new_source(kept):
    """A conversion that keeps a copy of each new source."""
    last = [None]

    def keep_each(array):
        if last[0] is None or last[0]() is not array:
            last[0] = weakref.ref(array)
            kept.append(array.copy())
        return array.copy()

    return keep_each


def test_a_reference_kept_by_one_call_in_fifty_is_neither_safe_nor_retained():
    kept, calls = [], itertools.count()

    def seldom(array):
        if next(calls) % 50 == 0:
            kept.append(array)
        return numpy.asarray(array)

    assert measured("take({x})", take=seldom)["verdict"] == "unknown"


def test_memory_kept_for_each_new_source_but_no_later_conversion_is_retained():
    kept = []
    found = measured("take({x})", take=keeps_each_new_source(kept))
    assert (found["verdict"], found["evidence"]["per_source"]) == ("retained", True)
    assert found["evidence"]["created_shape"] == [growth.NEW_SOURCE_BYTES // 4]


def test_memory_left_behind_by_making_the_sources_is_not_blamed_on_the_conversion():
    class Leaking(NumPy):
        def create(self, spec):
            return f"{super().create(spec)}\nkept.append(x.copy())"

    found = measured("{x}.copy()", producer=Leaking(), kept=[])
    assert (found["verdict"], "per_source" in found["evidence"]) == ("safe", False)


class Counting(NumPy):
    """A framework that reports ``used`` as its device memory."""

    def idioms(self, device, dtype):
        return {"memory": "sum(used)"}


def measured_to_device(take, consumer, **names):
    """A conversion from the host whose result claims to be on the device."""
    names["take"] = take
    subject = replace(subject_of("take({x})", consumer=consumer, **names), result_device="cuda")
    return lifetime.measure(subject, None, Silent())


def test_device_memory_that_a_conversion_from_the_host_keeps_is_retained():
    used = []
    found = measured_to_device(lambda x: used.append(x.nbytes) or x.copy(), Counting(), used=used)
    assert found["verdict"] == "retained"
    assert found["evidence"]["bytes_per_conversion"] == SIZE_BYTES


def test_nothing_is_called_safe_if_no_framework_counts_the_devices_memory():
    found = measured_to_device(numpy.copy, NumPy())
    assert found["verdict"] == "unknown"
    assert found["evidence"]["reason"] == lifetime.UNCOUNTED


class Simulated:
    """A device that counts reads of values that no kernel has computed."""

    reads = 0

    def __init__(self):
        self.copies = []

    def uncomputed_reads(self):
        return self.reads

    def synchronize_device(self):
        while self.copies:
            target, values = self.copies.pop()
            target[...] = values


@pytest.mark.parametrize(("calls", "expected"), [(1, "unknown"), (100, "safe")])
def test_only_the_drops_depend_on_values_that_a_kernel_computed(calls, expected):
    device, seen = Simulated(), itertools.count(1)

    def take(x):
        device.reads += next(seen) >= calls
        return x.copy()

    found = lifetime.measure(subject_of("take({x})", take=take), device, Silent())
    assert found["verdict"] == expected
    assert (found["evidence"].get("reason") == NOT_COMPUTED) == (expected == "unknown")


def test_a_copy_that_ends_after_the_call_does_not_depend_on_its_source():
    device = Simulated()

    class Late(Pool):
        def take(self, values):
            device.synchronize_device()
            return super().take(values)

    def take(x):
        device.copies.append((numpy.zeros_like(x), x.copy()))
        return device.copies[-1][0]

    subject = subject_of("take({x})", take=take, pool=Late())
    assert lifetime.measure(subject, device, Silent(), is_brief=True)["verdict"] == "safe"


def test_each_read_without_the_source_is_reported_before_it_starts():
    told, read = {"shape": None}, []

    class Told:
        def stage(self, name):
            told["stage"] = name

        def part(self, name, value):
            told["shape"] = value.get("created_shape")

    class Watched(Mapped):
        def copy(self):
            if self.source is not None and self.source() is None:
                read.append((told["stage"], told["shape"] or [SIZE_BYTES // 4], list(self.shape)))
            return numpy.array(self)

    def take(array):
        result = array.copy().view(Watched)
        result.source = weakref.ref(array)
        return result

    lifetime.measure(subject_of("take({x})", take=take), None, Told())
    assert {stage for stage, _, _ in read} == {"lifetime after drop"}
    assert all(shape == seen for _, shape, seen in read)
    assert {math.prod(shape) * 4 for *_, shape in read} == {128, 512, SIZE_BYTES, 2 << 20}
