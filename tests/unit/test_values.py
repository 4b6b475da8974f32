"""Values: what did not survive a conversion is seen."""

from __future__ import annotations

import tracemalloc

import pytest
from builders import make_subject

from dlprof.probes.base import DTYPES as KNOWN
from dlprof.probes.base import ArraySpec, Import, Protocol
from dlprof.probes.numpy import NumPy
from dlprof.worker import memory
from dlprof.worker.instruments import values

pytestmark = pytest.mark.unit


def measured(code, spec=None, producer=None, **names):
    import_ = Import("any", (Protocol.DLPACK,), code)
    return values.measure(make_subject(import_=import_, spec=spec, producer=producer, **names))


def changed(*args, **names):
    found = measured(*args, **names)
    assert found["verdict"] == "wrong"
    return found["evidence"]["changed"]


class Made(NumPy):
    """Makes the array that an expression gives."""

    def __init__(self, expression):
        self.expression = expression

    def create(self, spec):
        return f"x = {self.expression}"


class BFloat16(NumPy):
    """Arrays of a dtype that NumPy lacks: their bits can be read and not their numbers."""

    def create(self, spec):
        return f"x = numpy.arange(1, {spec.elements + 1}, dtype='uint16').reshape({spec.shape})"

    def dtype(self, array):
        return "bfloat16"


DTYPES = [dtype for dtype in KNOWN if dtype not in ("bfloat16", "float8_e4m3fn", "float8_e5m2")]
LAYOUTS = ["C", "aligned", "F", "strided", "sliced", "reversed", "broadcast", "readonly"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_faithful_copy_is_ok(dtype, layout):
    found = measured("{x}.copy()", ArraySpec((5, 7), dtype, layout))
    assert (found["verdict"], found["evidence"]["changed"]) == ("ok", {})


@pytest.mark.parametrize("layout", ["F", "strided", "reversed"])
def test_strides_that_were_ignored_are_seen(layout):
    code = "numpy.lib.stride_tricks.as_strided({x}, strides=(4 * {x}.shape[1], 4))"
    if layout == "reversed":
        code = "{x}[::-1]"
    found = changed(code, ArraySpec((6, 8), "float32", layout))
    assert found["values"]["of"] == 48
    assert found["values"]["different"] > 24


@pytest.mark.parametrize("stride", [2**power for power in range(1, 9)])
def test_a_stride_that_is_a_power_of_two_does_not_repeat_the_pattern(stride):
    code = f"numpy.resize({{x}}[::{stride}], {{x}}.shape)"
    assert "values" in changed(code, ArraySpec((1024,), "float32"))


def test_bits_of_a_dtype_that_numpy_lacks_are_not_compared_with_numbers():
    spec = ArraySpec((4, 8), "bfloat16")
    found = changed("({x}.astype('uint32') << 16).view('float32')", spec, BFloat16())
    assert found == {"dtype": ["bfloat16", "float32"]}


def test_numbers_of_two_dtypes_are_compared():
    found = changed("({x} + 1).astype('float64')", ArraySpec((4, 8), "float32"))
    assert found["dtype"] == ["float32", "float64"]
    assert found["values"]["different"] == 32


def test_one_wrong_value_is_counted_and_placed():
    def spoil(array):
        copy = array.copy()
        copy[2, 3] += 1
        return copy

    assert changed("spoil({x})", spoil=spoil) == {
        "values": {"different": 1, "of": 32, "first_index": 19}
    }


def test_a_wrong_half_of_a_complex_number_is_one_wrong_value():
    def spoil(array):
        copy = array.copy()
        copy[1] = complex(copy[1].real, 1)
        return copy

    found = changed("spoil({x})", ArraySpec((8,), "complex128"), spoil=spoil)
    assert found == {"values": {"different": 1, "of": 8, "first_index": 1}}


@pytest.mark.parametrize(
    ("dtype", "narrow"),
    [
        ("float64", "float32"),
        ("float32", "float16"),
        ("int64", "int32"),
        ("uint64", "uint32"),
        ("int32", "float32"),
        ("uint32", "int32"),
        ("int16", "int8"),
    ],
)
def test_a_narrower_dtype_is_seen_in_the_values_too(dtype, narrow):
    found = changed(f"{{x}}.astype('{narrow}')", ArraySpec((300,), dtype))
    assert found["dtype"] == [dtype, narrow]
    assert found["values"]["different"] > 0


@pytest.mark.parametrize(
    ("code", "shape"), [("{x}[:2]", [2, 8]), ("{x}.reshape(-1)", [32]), ("{x}[None]", [1, 4, 8])]
)
def test_a_changed_shape_is_seen(code, shape):
    assert changed(code) == {"shape": [[4, 8], shape]}


def test_nan_that_stays_nan_is_ok():
    assert (
        measured("{x}.copy()", producer=Made("numpy.full((4, 8), numpy.nan, 'float32')"))["verdict"]
        == "ok"
    )


def test_nan_of_other_bits_is_seen():
    made = Made("numpy.full((4, 8), numpy.nan, 'float32')")
    assert (
        changed("({x}.view('uint32') | 1).view('float32')", producer=made)["values"]["different"]
        == 32
    )


def test_a_zero_that_lost_its_sign_is_seen():
    made = Made("-numpy.zeros((4, 8), 'float32')")
    assert changed("numpy.abs({x})", producer=made)["values"]["different"] == 32


def test_whether_both_sides_can_be_written_is_evidence():
    spec = ArraySpec((4, 8), "float32", "readonly")
    assert measured("{x}.copy()", spec)["evidence"]["writable"] == {"source": False, "result": True}


def test_a_call_that_leaves_nothing_behind_has_no_values():
    import_ = Import("any", (Protocol.DLPACK,), "len({x})", returns_array=False)
    assert values.measure(make_subject(import_=import_))["verdict"] == "unknown"


@pytest.mark.parametrize("dtype", ["uint8", "float64", "complex64"])
def test_comparing_takes_no_more_memory_than_was_asked_for(dtype, monkeypatch):
    asked = []
    monkeypatch.setattr(memory, "fits", lambda needed: asked.append(needed) or True)
    way = Import("any", (Protocol.DLPACK,), "{x}")
    subject = make_subject(import_=way, spec=ArraySpec((1 << 20,), dtype))
    tracemalloc.start()
    values.measure(subject)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= max(asked) + (128 << 10)


def test_the_order_of_bytes_is_no_part_of_a_value():
    assert measured("{x}.astype('>f4')", ArraySpec((4, 8), "float32"))["verdict"] == "ok"
    found = changed("{x}.astype('>f4').view('<f4')", ArraySpec((4, 8), "float32"))
    assert found["values"]["different"] > 16
