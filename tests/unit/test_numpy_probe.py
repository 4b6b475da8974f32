"""NumPy's layouts have the strides and flags that they promise."""

from __future__ import annotations

import numpy
import pytest
from builders import make_subject

from dlprof.probes.base import DTYPES, LAYOUTS, PATTERNS, ArraySpec, Unsupported
from dlprof.probes.numpy import NumPy

pytestmark = pytest.mark.unit

FOREIGN = ("bfloat16", "float8_e4m3fn", "float8_e5m2")
OWN = [dtype for dtype in DTYPES if dtype not in FOREIGN]
SHAPE = (6, 10)


def made(layout, shape=SHAPE, dtype="float32"):
    return make_subject(spec=ArraySpec(shape, dtype, layout)).source


def address(array):
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", OWN)
@pytest.mark.parametrize("shape", [(6, 10), (64,), (3, 4, 5), (1, 1)])
def test_every_layout_has_its_shape_and_dtype(shape, dtype, layout):
    array = made(layout, shape, dtype)
    assert (array.shape, array.dtype.name) == (shape, dtype)


@pytest.mark.parametrize("dtype", OWN)
def test_aligned_begins_at_a_multiple_of_64_bytes(dtype):
    assert address(made("aligned", dtype=dtype)) % 64 == 0


@pytest.mark.parametrize("dtype", OWN)
def test_sliced_begins_one_element_after_a_multiple_of_64_bytes(dtype):
    array = made("sliced", dtype=dtype)
    assert address(array) % 64 == array.itemsize % 64
    assert array.flags.aligned


@pytest.mark.parametrize(
    ("layout", "strides"),
    [
        *dict.fromkeys(("C", "aligned", "sliced", "readonly"), (40, 4)).items(),
        ("F", (4, 24)),
        ("strided", (80, 8)),
        ("reversed", (-40, 4)),
        ("broadcast", (0, 4)),
    ],
)
def test_every_layout_has_its_strides(layout, strides):
    assert made(layout).strides == strides


@pytest.mark.parametrize("dtype", OWN)
@pytest.mark.parametrize("layout", ["C", "aligned", "F", "readonly"])
def test_the_values_are_the_pattern_of_the_dtype(dtype, layout):
    pattern = PATTERNS[dtype]
    index = numpy.arange(700)
    values = index % pattern.modulus + pattern.offset
    if dtype.startswith("complex"):
        values = values + 2j * values
    expected = values.astype(dtype).reshape(7, 100)
    assert numpy.array_equal(made(layout, (7, 100), dtype), expected)


@pytest.mark.parametrize("layout", ["strided", "reversed", "broadcast"])
def test_a_scalar_has_no_axis_for_some_layouts(layout):
    with pytest.raises(Unsupported, match=r"^a scalar has no axis to "):
        made(layout, ())


@pytest.mark.parametrize("layout", ["C", "aligned", "F", "sliced", "readonly"])
def test_a_scalar_has_the_other_layouts(layout):
    assert made(layout, ()).shape == ()


@pytest.mark.parametrize("dtype", FOREIGN)
def test_a_dtype_that_numpy_lacks_is_refused_in_words(dtype):
    with pytest.raises(Unsupported, match=f"^NumPy has no dtype {dtype}"):
        made("C", dtype=dtype)


def test_a_read_only_array_is_not_written():
    probe = NumPy()
    assert probe.write(made("readonly"), 1) is NotImplemented
    array = made("C")
    assert probe.write(array, 1) is None
    assert (array == 1).all()
