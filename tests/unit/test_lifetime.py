"""Lifetime: the judgment, what a conversion leaves behind, and real memory that is used again."""

import gc
import itertools
import math
import os
import threading
import weakref
from collections import defaultdict
from dataclasses import replace

import numpy
import pytest
from builders import Silent, make_subject

from dlprof.probes.base import ArraySpec, Import, Protocol
from dlprof.probes.numpy import NumPy
from dlprof.protocol.messages import UNSTEADY
from dlprof.worker.instruments import lifetime
from dlprof.worker.instruments.lifetime import CONVERSIONS, SIZE_BYTES
from dlprof.worker.subject import OneArray


class Clock:
    """A clock that goes on only while one sleeps; ``due`` is what happens at a time."""

    def __init__(self):
        self.now, self.due = 0.0, []

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds
        while self.due and self.due[0][0] <= self.now:
            self.due.pop(0)[1]()


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(lifetime, "time", clock)
    return clock


@pytest.mark.parametrize(
    ("what", "growth", "words"),
    [
        ("bytes", SIZE_BYTES / 100, "655 bytes"),
        ("references", 0.02, "0.02 references"),
        ("objects", 0.13, "0.13 blocks"),
    ],
)
def test_a_growth_that_is_no_proof_is_unknown_with_the_reason(what, growth, words):
    growths = {"bytes": 0.0, "references": 0.0, "objects": 0.0, what: growth}
    evidence = {f"{name}_per_conversion": value for name, value in growths.items()}
    evidence |= {"changed_after_drop": False, "size_bytes": SIZE_BYTES}
    verdict, reason = lifetime.judge({**evidence, "conversions": 200, "runs": 12})
    assert (verdict, reason.startswith(words)) == ("unknown", True)


class TestGrowth:
    def grown(self, convert):
        return lifetime.measure_growth(convert, object(), (lambda: 0,), SIZE_BYTES)

    def test_garbage_that_waits_for_a_collection_is_not_retained(self):
        def cycle():
            ring = []
            ring.append(ring)

        assert self.grown(cycle)["objects_per_conversion"] < lifetime.OBJECTS.nothing

    def test_each_file_that_stays_open_is_counted(self):
        kept = []

        def leaves_open():
            kept.append(os.open(os.devnull, os.O_RDONLY))

        found = self.grown(leaves_open)
        for descriptor in kept:
            os.close(descriptor)
        assert found["descriptors_per_conversion"] == pytest.approx(1, abs=0.1)
        assert len(kept) == 4 * 200
        assert lifetime.judge_growth(found) == "retained"

    @pytest.mark.parametrize(
        ("leaks", "verdict"), [(False, "nothing"), (True, "retained")], ids=["late", "never"]
    )
    def test_what_is_released_late_is_not_retained_and_hides_no_leak(self, clock, leaks, verdict):
        late, kept = [], []

        def convert():
            late.append([object() for _ in range(3)])
            clock.due.append((clock.now + 0.6, late.pop))
            kept.extend([object()] * leaks)

        assert lifetime.judge_growth(self.grown(convert)) == verdict

    def test_what_the_next_call_lets_go_is_not_retained(self, clock):
        kept = []

        def convert():
            kept[:] = [one for one in kept if one[0] > clock.now - 1]
            kept.append((clock.now, [object() for _ in range(3)]))

        assert lifetime.judge_growth(self.grown(convert)) == "nothing"

    def test_few_calls_that_leave_too_little_to_be_plain_end_after_one_run(self):
        kept, calls = [], []

        def leaves_one_in_three():
            calls.append(None)
            if len(calls) % 3 == 0:
                kept.append(object())

        assert not self.is_plain_in_few(leaves_one_in_three)
        assert len(calls) == 60

    def is_plain_in_few(self, convert):
        found = lifetime.measure_growth(
            convert, object(), (lambda: 0,), SIZE_BYTES, 30, lifetime.TRIAL
        )
        return lifetime.is_plain(found)

    def test_few_calls_of_which_each_leaves_something_are_plain_and_the_proof_needs_no_warm_up(
        self,
    ):
        kept = []

        def leaves():
            kept.append(object())

        assert self.is_plain_in_few(leaves)
        assert len(kept) == 3 * 30
        assert lifetime.is_plain(self.proved(leaves))
        assert len(kept) == 3 * 30 + 4 * 200

    def proved(self, convert, meter=lambda: 0):
        return lifetime.measure_growth(convert, object(), (meter,), SIZE_BYTES, 200, lifetime.PROOF)

    def test_the_proof_ends_with_a_run_that_leaves_too_little(self):
        calls = []
        found = self.proved(lambda: calls.append(None) if len(calls) < 100 else calls)
        assert (found["runs"], lifetime.is_plain(found)) == (1, False)

    def test_the_proof_goes_on_for_one_run_only_after_two_that_leave_much(self):
        kept = itertools.count()
        each = lifetime.MOST_BYTES // 100
        found = self.proved(lambda: next(kept), lambda: each * next(kept))
        assert found["runs"] == 3

    def test_a_cache_of_512_entries_that_looks_plain_in_few_calls_is_not_proved(self):
        kept = []

        def fills():
            if len(kept) < 512:
                kept.append(object())

        assert self.is_plain_in_few(fills)
        assert not lifetime.is_plain(self.proved(fills))

    def test_a_cache_that_fills_for_some_runs_is_waited_for(self):
        kept, calls = [], itertools.count()

        def fills():
            number = next(calls)
            if number < 5 * CONVERSIONS and number % 3 == 0:
                kept.append(object())

        found = self.grown(fills)
        assert found["objects_per_conversion"] < lifetime.OBJECTS.nothing
        assert found["runs"] == 5


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
    """Returns nothing to the system. Of what is free it hands out the last block, or the first."""

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
    """NumPy arrays on memory of a pool, so that freed memory is certainly used again."""

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
def test_views_and_copies_that_keep_what_they_need_are_safe(code):
    found = measured(code)
    assert (found["verdict"], found["evidence"]["changed_after_drop"]) == ("safe", False)
    assert found["evidence"]["source_after_drop"] == "same"


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


def test_memory_that_is_used_again_gets_arrays_of_other_values_made_in_the_same_way():
    texts = []

    class Noting(NumPy):
        def create(self, spec):
            texts.append((spec.shape, super().create(spec)))
            return texts[-1][1]

    subject = subject_of("{x}.copy()", producer=Noting())
    texts.clear()
    lifetime.measure(subject, None, Silent())
    made = defaultdict(set)
    for shape, text in texts:
        made[shape].add(text)
    assert {len(made[shape]) for shape in ((128,), (16384,))} == {2}


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


def test_a_source_whose_memory_a_deleter_gives_to_others_is_lost():
    pool = Pool()

    def take(array):
        block = array
        while isinstance(block, numpy.ndarray):
            block = block.base
        result = array.view()
        weakref.finalize(result, pool.free[array.nbytes].append, block.memory)
        return result

    found = measured("take({x})", take=take, pool=pool)
    assert (found["verdict"], found["evidence"]["source_after_drop"]) == ("dangling", "changed")


@pytest.mark.parametrize("code", ["{x}.copy()", "{x}[...]"])
def test_an_array_that_other_arrays_change_without_a_conversion_proves_nothing(code):
    class Sharing(NumPy):
        def create(self, spec):
            return f"{super().create(spec)}\nx = one.setdefault(x.shape, x)"

    subject = subject_of(code, producer=Sharing(), one={})
    found = lifetime.measure(subject, None, Silent())
    assert found["verdict"] == "unknown"
    assert found["evidence"]["reason"] == UNSTEADY


def test_a_source_that_cannot_be_read_without_its_result_is_lost():
    results = []

    class Needing(NumPy):
        def to_numpy(self, array):
            if any(source() is array and result() is None for source, result in results):
                message = "invalid argument"
                raise RuntimeError(message)
            return super().to_numpy(array)

    def take(array):
        result = array.view()
        results.append((weakref.ref(array), weakref.ref(result)))
        return result

    found = measured("take({x})", producer=Needing(), take=take)
    assert found["verdict"] == "dangling"
    assert found["evidence"]["source_after_drop"] == "RuntimeError: invalid argument"


def test_memory_that_cannot_be_given_other_values_shows_no_loss():
    class Unreachable(NumPy):
        def pointer(self, array):
            return None

        def write(self, array, value):
            return NotImplemented

    found = measured("{x}.copy()", producer=Unreachable())
    assert (found["verdict"], found["evidence"]["reason"]) == ("unknown", lifetime.SAME_VALUES)


def test_a_loss_that_would_not_show_is_unknown_whatever_else_was_left_out():
    left_out = f"{lifetime.SAME_VALUES}; new arrays: no"
    seen = {"changed_after_drop": False, "source_after_drop": "same"}
    assert lifetime.judge_drops(seen) == "safe"
    assert lifetime.judge_drops(seen | {"left_out": left_out}) == "unknown"


class Mapped(numpy.ndarray):
    """Memory that a driver takes out of the address space with its source."""

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


def test_a_result_that_can_never_be_read_again_proves_nothing():
    reads = iter(range(1))

    class Broken(Mapped):
        def copy(self):
            next(reads)
            return numpy.array(self)

    with pytest.raises(StopIteration):
        measured("take({x})", take=lambda array: without_owner(array).view(Broken))


def test_what_was_held_before_is_read_last_without_a_wait_if_enough_time_has_passed(monkeypatch):
    kept, waits = [], []

    def take(array):
        if kept or waits:
            return array.copy()
        kept.append(array)
        return without_owner(array)

    subject = subject_of("take({x})", take=take)
    held = lifetime.hold(subject, Silent())
    waits.append(0.0)
    kept.clear()
    monkeypatch.setattr(lifetime.time, "sleep", waits.append)
    before = [one._replace(since=one.since - 1) for one in held]
    found = lifetime.measure(subject, None, Silent(), before)
    assert (found["verdict"], found["evidence"]["later_s"] >= 1) == ("dangling", True)
    assert set(waits) == {0.0}


def test_a_small_view_whose_source_goes_late_is_dangling(clock):
    kept = []

    def take(array):
        if array.nbytes != lifetime.SMALL_BYTES:
            return array.copy()
        kept.append(array)
        clock.due.append((clock.now + 0.1, kept.clear))
        return without_owner(array)

    found = measured("take({x})", take=take)
    assert found["verdict"] == "dangling"
    assert {"later_s", "created_shape"} <= {*found["evidence"]}
    assert found["evidence"]["created_shape"] == [128]


@pytest.mark.parametrize("keeps", ["source", "result"])
def test_a_source_or_a_result_that_is_kept_for_good_is_retained(keeps):
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
    """A conversion that keeps a copy of each source it meets for the first time."""
    last = [None]

    def keep_each(array):
        if last[0] is None or last[0]() is not array:
            last[0] = weakref.ref(array)
            kept.append(array.copy())
        return array.copy()

    return keep_each


def test_what_is_kept_of_each_new_source_and_of_no_later_conversion_is_retained():
    kept = []
    found = measured("take({x})", take=keeps_each_new_source(kept))
    assert (found["verdict"], found["evidence"]["per_source"]) == ("retained", True)
    assert found["evidence"]["created_shape"] == [lifetime.NEW_SOURCE_BYTES // 4]


class Own(OneArray, Pooled):
    """Arrays of a user's setup, which takes other values each time."""

    def create(self, spec):
        return f"{super().create(spec)}\nx[...] = numpy.random.random(x.shape)"


def test_an_array_of_a_users_own_is_dropped_in_another_thread_and_read_late_as_well():
    dropped_in, last = set(), [None]

    def take(array):
        if last[0] is None or last[0]() is not array:
            last[0] = weakref.ref(array)
            weakref.finalize(array, lambda: dropped_in.add(threading.current_thread()))
        return array.copy()

    subject = subject_of("take({x})", producer=Own(), take=take)
    held = lifetime.hold(subject, Silent())
    found = lifetime.measure(subject, None, Silent(), held)
    assert (found["verdict"], "left_out" in found["evidence"]) == ("safe", False)
    assert held
    assert len(dropped_in) > 1


def test_a_source_of_a_users_own_that_is_spoiled_is_lost_whatever_values_the_setup_takes():
    def take(array):
        result = array.view()
        weakref.finalize(result, array.fill, 3)
        return result

    found = measured("take({x})", producer=Own(), take=take)
    assert (found["verdict"], found["evidence"]["source_after_drop"]) == ("dangling", "changed")


def test_what_is_kept_of_each_new_array_of_a_users_own_is_retained():
    kept = []
    spec = ArraySpec((64, 64), "float32")
    found = measured("take({x})", producer=Own(), take=keeps_each_new_source(kept), spec=spec)
    assert (found["verdict"], found["evidence"]["per_source"]) == ("retained", True)


def test_a_setup_that_takes_long_is_not_run_hundreds_of_times_and_that_is_told(monkeypatch):
    monkeypatch.setattr(lifetime, "SLOW_SETUP_S", -1.0)
    subject = subject_of("{x}.copy()", producer=Own())
    assert lifetime.hold(subject, Silent()) == []
    assert lifetime.measure(subject, None, Silent())["evidence"]["left_out"] == lifetime.SLOW_SETUP


def test_what_the_making_of_the_sources_leaves_behind_is_not_blamed_on_the_conversion():
    class Leaking(NumPy):
        def create(self, spec):
            return f"{super().create(spec)}\nkept.append(x.copy())"

    found = measured("{x}.copy()", producer=Leaking(), kept=[])
    assert (found["verdict"], "per_source" in found["evidence"]) == ("safe", False)
    assert "making the array" in found["evidence"]["left_out"]


def test_what_a_conversion_leaves_behind_is_found_beside_what_the_making_of_the_sources_does():
    class Leaking(NumPy):
        def create(self, spec):
            return f"{super().create(spec)}\nkept.append(object())"

    kept = []
    found = measured("take({x})", producer=Leaking(), take=keeps_each_new_source(kept), kept=kept)
    assert (found["verdict"], found["evidence"]["per_source"]) == ("retained", True)
    assert found["evidence"]["bytes_per_conversion"] > lifetime.NEW_SOURCE_BYTES / 2


class Counting(NumPy):
    """Says how much of the device's memory it uses: what ``used`` says."""

    def __init__(self, used):
        self.used = used

    def memory_in_use(self, device):
        return sum(self.used)


def measured_to_device(take, consumer):
    """A conversion from the host whose result is said to be on the device."""
    subject = replace(subject_of("take({x})", consumer=consumer, take=take), result_device="cuda")
    return lifetime.measure(subject, None, Silent())


def test_device_memory_that_a_conversion_from_the_host_keeps_is_retained():
    used = []
    found = measured_to_device(lambda x: used.append(x.nbytes) or x.copy(), Counting(used))
    assert found["verdict"] == "retained"
    assert found["evidence"]["bytes_per_conversion"] == SIZE_BYTES


def test_nothing_is_called_safe_if_no_framework_counts_the_devices_memory():
    found = measured_to_device(numpy.copy, NumPy())
    assert found["verdict"] == "unknown"
    assert found["evidence"]["reason"] == lifetime.UNCOUNTED
    assert found["evidence"]["device_counted"] is False


def test_a_counter_of_the_source_s_framework_says_nothing_of_a_result_on_another_device():
    class Source(Counting):
        name = "source"

    subject = subject_of("take({x})", producer=Source([]), consumer=NumPy(), take=numpy.copy)
    found = lifetime.measure(replace(subject, result_device="cuda"), None, Silent())
    assert (found["verdict"], found["evidence"]["reason"]) == ("unknown", lifetime.UNCOUNTED)


def test_each_read_without_the_source_is_told_before_so_that_a_death_can_be_placed():
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
