"""Early write: copies that still read their source after the call returns, and ones that do not."""

import threading

import numpy
import pytest
from builders import make_subject

from dlprof.probes.base import ArraySpec, Import, Protocol
from dlprof.probes.numpy import NumPy
from dlprof.worker.instruments import early_write
from dlprof.worker.subject import OneArray

SIZES = (4 << 10, 64 << 10, 1 << 20)
SPEC = ArraySpec((4, 8), "float32")


class Late(NumPy):
    """A consumer whose copies are made by a thread, started by a wait for the copy."""

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


def measured(code="{x}.copy()", sizes=SIZES, **options):
    if "late." in code:
        late = Late()
        options |= {"late": late, "consumer": late}
    import_ = Import("any", (Protocol.DLPACK,), code)
    return early_write.measure(make_subject(import_=import_, **options), sizes)


def seen(found):
    return list(found["evidence"]["sizes_bytes"].values())


OWN = {
    "numpy.ones(1 << 16, 'float32')": "float32",
    "numpy.ones(1 << 16, 'bool')": "bool",
    "numpy.concatenate([numpy.ones(65000), numpy.zeros(536)])": "float64",
}


@pytest.mark.parametrize("text", OWN)
def test_a_torn_copy_of_a_users_own_array_is_seen_for_any_values(text):
    class Own(OneArray, NumPy):
        def create(self, spec):
            return f"x = {text}"

    own = {"producer": Own(), "spec": ArraySpec((1 << 16,), OWN[text])}
    assert seen(measured("late.take({x})", **own)) == ["torn"]
    assert seen(measured(**own)) == ["whole"]


def test_a_copy_that_is_wrong_even_without_a_write_is_not_called_torn():
    def take(source):
        result = source.copy()
        result.reshape(-1)[0] += 1
        return result

    assert measured("take({x})", SIZES[:1], take=take)["verdict"] == "unknown"


@pytest.mark.parametrize(
    ("code", "layout", "looks"),
    [
        ("{x}[...]", "C", {"view"}),
        ("{x}.copy()", "readonly", {"immutable"}),
        ("{x}.astype('float64')", "C", {"other dtype"}),
    ],
)
def test_a_view_an_immutable_source_and_another_dtype_are_unknown(code, layout, looks):
    found = measured(code, spec=ArraySpec((4, 8), "float32", layout))
    assert (found["verdict"], set(seen(found))) == ("unknown", looks)
    assert found["evidence"]["moot"] is (looks != {"other dtype"})


class TestUnaligned:
    """A different code path may copy memory that is not aligned."""

    @pytest.mark.parametrize("aligned", ["copy()", "view()"])
    def test_a_copy_that_is_late_only_for_unaligned_memory_is_unsafe(self, aligned):
        code = f"(late.take({{x}}) if {{x}}.ctypes.data % 8 else {{x}}.{aligned})"
        found = measured(code, spec=SPEC)
        assert found["verdict"] == "unsafe"
        assert seen(found) == ["whole" if aligned == "copy()" else "view"]
        assert found["evidence"]["unaligned_bytes"] == {"4096": "torn"}
        assert found["evidence"]["aligned"] == ("whole" if aligned == "copy()" else "view")

    def test_a_refusal_of_unaligned_memory_keeps_the_answer(self):
        def refuse(array):
            if array.ctypes.data % 8:
                raise ValueError("not aligned")
            return array.copy()

        found = measured("refuse({x})", refuse=refuse, spec=SPEC)
        assert (found["verdict"], seen(found)) == ("safe", ["whole"] * 3)
        assert set(found["evidence"]["unaligned_bytes"].values()) == {"refused"}
