"""Early write: a copy that still reads its source after it has returned, and ones that do not."""

from __future__ import annotations

import threading

import numpy
import pytest
from builders import make_subject

from dlprof.probes.base import ArraySpec, Import, Protocol
from dlprof.probes.numpy import NumPy
from dlprof.worker import memory
from dlprof.worker.instruments import early_write
from dlprof.worker.instruments.early_write import CHANGED, Tried, judge
from dlprof.worker.subject import OneArray

pytestmark = pytest.mark.unit

SIZES = (4 << 10, 64 << 10, 1 << 20)


class Late(NumPy):
    """A consumer whose copies are done by a thread that starts when they are waited for."""

    def __init__(self):
        self.pending = []

    def wait(self, device):
        return "late.finish({x})"

    def take(self, source):
        result, go = numpy.zeros_like(source), threading.Event()

        def copy():
            go.wait()
            result[...] = source

        thread = threading.Thread(target=copy)
        thread.start()
        self.pending.append((thread, go))
        return result

    def finish(self, result):
        while self.pending:
            thread, go = self.pending.pop()
            go.set()
            thread.join()


class LateInPart(Late):
    """Only a part of its copies is done late."""

    def part(self, source, where):
        result = source.copy()
        self.parts = result, where, self.take(source[where])
        return result

    def finish(self, result):
        super().finish(result)
        whole, where, part = self.parts
        whole[where] = part


def measured(code="{x}.copy()", sizes=SIZES, spec=None, **options):
    changes = {name: options.pop(name) for name in ("returns_array",) if name in options}
    import_ = Import("any", (Protocol.DLPACK,), code, **changes)
    subject = make_subject(import_=import_, spec=spec, **options)
    return early_write.measure(subject, sizes)


def seen(found):
    return list(found["evidence"]["sizes_bytes"].values())


class TestJudgement:
    def test_one_torn_copy_is_unsafe_whatever_the_others_were(self):
        assert judge(Tried({1: "whole", 2: "whole", 3: "torn"}))["verdict"] == "unsafe"

    def test_copies_that_were_whole_are_safe(self):
        assert judge(Tried({1: "view", 2: "whole", 3: "no memory"}))["verdict"] == "safe"

    @pytest.mark.parametrize("what", ["view", "no memory", "other dtype"])
    def test_without_a_copy_there_is_nothing_to_tell(self, what):
        found = judge(Tried({1: what}))
        assert found["verdict"] == "unknown"
        assert found["evidence"]["reason"] == "no size was copied"


def test_a_copy_that_is_done_when_the_call_returns_is_safe():
    found = measured()
    assert (found["verdict"], seen(found)) == ("safe", ["whole"] * 3)


def test_a_copy_that_is_done_when_it_is_waited_for_is_unsafe():
    late = Late()
    found = measured("late.take({x})", consumer=late, late=late)
    assert (found["verdict"], seen(found)) == ("unsafe", ["torn"])


class TestLargeCopies:
    """Of them sums of blocks are compared."""

    @pytest.fixture(autouse=True)
    def large(self, monkeypatch):
        monkeypatch.setattr(early_write, "LARGE_BYTES", 4 << 10)
        monkeypatch.setattr(early_write, "_tried_large", set())

    @pytest.mark.parametrize("size", [4 << 10, 1 << 20, (1 << 20) + 8, (1 << 20) + 4])
    def test_a_copy_that_is_done_when_the_call_returns_is_whole(self, size):
        assert seen(measured(sizes=[size])) == ["whole"]

    @pytest.mark.parametrize("size", [4 << 10, 1 << 20, (1 << 20) + 8, (1 << 20) + 4])
    @pytest.mark.parametrize("where", ["0, 1", "-1, None"])
    def test_one_value_that_changes_is_seen_wherever_it_is(self, size, where):
        late = LateInPart()
        found = measured(
            f"late.part({{x}}, slice({where}))", sizes=[size], consumer=late, late=late
        )
        assert seen(found) == ["torn"]

    @pytest.mark.parametrize("dtype", ["float64", "int32"])
    def test_a_copy_into_another_dtype_cannot_be_compared(self, dtype):
        assert seen(measured(f"{{x}}.astype('{dtype}')", sizes=[4 << 10])) == ["other dtype"]


class Own(OneArray, NumPy):
    """A user's own array."""

    def __init__(self, text):
        self.text = text

    def create(self, spec):
        return f"x = {self.text}"


OWN = {
    "numpy.ones(1 << 16, 'float32')": "float32",
    "numpy.ones(1 << 16, 'bool')": "bool",
    "numpy.zeros(1 << 16, 'float64')": "float64",
    "numpy.full(1 << 16, 3.0)": "float64",
    "numpy.tile([0.5, 2.0], 1 << 15)": "float64",
    "numpy.tile(numpy.array([0, 2]), 1 << 15)": "int64",
    "numpy.concatenate([numpy.ones(65000), numpy.zeros(536)])": "float64",
}


@pytest.mark.parametrize("least_large", [4 << 10, 128 << 20])
@pytest.mark.parametrize("text", OWN)
def test_a_torn_copy_of_an_array_of_ones_own_shows_whatever_its_values_are(
    monkeypatch, text, least_large
):
    monkeypatch.setattr(early_write, "LARGE_BYTES", least_large)
    monkeypatch.setattr(early_write, "_tried_large", set())
    late, spec = Late(), ArraySpec((1 << 16,), OWN[text])
    own = {"producer": Own(text), "spec": spec, "numpy": numpy}
    assert seen(measured("late.take({x})", consumer=late, late=late, **own)) == ["torn"]
    assert seen(measured(**own))[0] in ("whole", "tried on another path of this import")


class Counted:
    """A copy that is wrong by itself in every so many calls."""

    def __init__(self, every):
        self.calls, self.every = 0, every

    def take(self, source):
        self.calls += 1
        result = source.copy()
        if self.calls % self.every == 0:
            result.reshape(-1)[0] += 1
        return result


@pytest.mark.parametrize("every", [1, 2, 3, 5])
def test_a_copy_that_is_wrong_without_a_write_too_is_not_called_torn(every):
    found = measured("wrong.take({x})", wrong=Counted(every))
    assert (found["verdict"], CHANGED in seen(found)) == ("unknown", True)
    assert "without a write" in found["evidence"]["reason"]


def test_a_view_must_change_and_is_not_unsafe():
    found = measured("{x}[...]")
    assert (found["verdict"], set(seen(found))) == ("unknown", {"view"})


def test_a_source_that_is_not_writable_is_unknown():
    found = measured(spec=ArraySpec((4, 8), "float32", "readonly"))
    assert (found["verdict"], seen(found)) == ("unknown", ["immutable"])


def test_a_copy_into_another_dtype_cannot_be_compared():
    found = measured("{x}.astype('float64')")
    assert (found["verdict"], set(seen(found))) == ("unknown", {"other dtype"})


def test_a_call_without_a_result_is_unknown():
    found = measured("len({x})", returns_array=False)
    assert found["evidence"]["reason"] == "the call leaves no array behind to compare"


def test_a_size_for_which_there_is_no_memory_is_left_out(monkeypatch):
    def check(spec):
        if spec.size_bytes > 4 << 10:
            raise memory.TooLarge("no")

    monkeypatch.setattr(memory, "check_room", check)
    found = measured()
    assert (found["verdict"], seen(found)) == ("safe", ["whole", "no memory", "no memory"])


@pytest.mark.parametrize("dtype", ["bool", "int8", "float64", "complex128"])
def test_every_dtype_is_compared_by_its_bytes(dtype):
    late = Late()
    spec = ArraySpec((4, 8), dtype)
    assert measured(spec=spec)["verdict"] == "safe"
    torn = measured("late.take({x})", spec=spec, consumer=late, late=late)
    assert torn["verdict"] == "unsafe"


class TestUnaligned:
    """Another way of copying may serve memory that is not aligned."""

    CODE = "(late.take({x}) if {x}.ctypes.data % 8 else {x}.copy())"
    SPEC = ArraySpec((4, 8), "float32")

    def test_a_copy_that_is_late_only_there_is_unsafe(self):
        late = Late()
        found = measured(self.CODE, spec=self.SPEC, consumer=late, late=late)
        assert (found["verdict"], seen(found)) == ("unsafe", ["whole"])
        assert found["evidence"]["unaligned_bytes"] == {"4096": "torn"}
        assert found["evidence"]["torn_layout"] == "sliced"
        assert found["evidence"]["torn_alignment_bytes"] == 4

    def test_a_view_of_aligned_memory_whose_copies_of_other_memory_are_late_is_unsafe(self):
        late = Late()
        code = "(late.take({x}) if {x}.ctypes.data % 8 else {x}[...])"
        found = measured(code, spec=self.SPEC, consumer=late, late=late)
        assert (found["verdict"], seen(found)) == ("unsafe", ["view"])
        assert found["evidence"]["unaligned_bytes"] == {"4096": "torn"}

    def test_who_asks_for_aligned_memory_is_told_of_no_other(self):
        late = Late()
        spec = ArraySpec((4, 8), "float32", "aligned")
        code = "(late.take({x}) if {x}.ctypes.data % 64 else {x}.copy())"
        found = measured(code, spec=spec, consumer=late, late=late)
        assert (found["verdict"], "unaligned_bytes" in found["evidence"]) == ("safe", False)


def test_what_is_a_view_is_not_made_at_a_size_that_takes_seconds():
    code = "({x}.copy() if {x}.ctypes.data % 8 else {x}[...])"
    sizes = (*SIZES, early_write.LARGE_BYTES)
    found = measured(code, sizes, spec=ArraySpec((4, 8), "float32"))
    assert seen(found) == ["view"] * 3


def test_memory_that_is_refused_elsewhere_costs_no_answer():
    def refuse(array):
        if array.ctypes.data % 8:
            raise ValueError("not aligned")
        return array.copy()

    found = measured("refuse({x})", refuse=refuse, spec=ArraySpec((4, 8), "float32"))
    assert (found["verdict"], seen(found)) == ("safe", ["whole"] * 3)
    assert set(found["evidence"]["unaligned_bytes"].values()) == {"refused"}
