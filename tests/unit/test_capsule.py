"""DLPack capsules, read without being consumed."""

from __future__ import annotations

import ctypes

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dlprof.probes import capsule
from dlprof.probes.base import DTYPES as KNOWN

pytestmark = pytest.mark.unit

DTYPES = [dtype for dtype in KNOWN if dtype not in ("bfloat16", "float8_e4m3fn", "float8_e5m2")]
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


def versioned(array):
    return array.__dlpack__(max_version=(1, 0))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "hand_over", [numpy.ndarray.__dlpack__, versioned], ids=["unversioned", "versioned"]
)
def test_every_dtype_is_named_in_the_sessions_words(dtype, hand_over):
    assert capsule.read(hand_over(numpy.zeros(3, dtype))).dtype == dtype


def test_a_versioned_capsule_tells_its_version():
    contents = capsule.read(versioned(numpy.zeros(3)))
    assert contents.name == "dltensor_versioned"
    assert contents.version.startswith("1.")
    assert contents.flags == ()


def test_a_read_only_array_is_flagged():
    array = numpy.zeros(3)
    array.flags.writeable = False
    assert capsule.read(versioned(array)).flags == ("read_only",)


@given(
    arrays.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=4),
    st.sampled_from(["int8", "float32", "complex128"]),
    st.randoms(use_true_random=False),
)
def test_shape_strides_and_address_are_those_of_the_array(shape, dtype, chance):
    array = numpy.zeros(shape, dtype)
    axes = list(range(array.ndim))
    chance.shuffle(axes)
    array = array.transpose(axes)[
        (..., *(slice(None, None, chance.choice([1, 2, -1])) for _ in axes))
    ]
    contents = capsule.read(array.__dlpack__())
    assert contents.shape == array.shape
    if array.size and array.ndim and contents.strides is not None:
        assert contents.strides == tuple(stride // array.itemsize for stride in array.strides)
    if array.size:
        assert contents.address == array.__array_interface__["data"][0]
    assert contents.device == "cpu:0"


@pytest.mark.parametrize(
    ("address", "bytes_"), [(0, 0), (1, 1), (12, 4), (64, 64), (4096 * 3, 4096), (2**40, 4096)]
)
def test_alignment_is_the_largest_power_of_two_up_to_a_page(address, bytes_):
    assert capsule.alignment(address) == bytes_


def test_reading_does_not_consume():
    array = numpy.arange(3.0)
    handed = array.__dlpack__()
    assert capsule.read(handed) == capsule.read(handed)

    class Producer:
        def __dlpack__(self, **_):
            return handed

        def __dlpack_device__(self):
            return (1, 0)

    assert numpy.from_dlpack(Producer()).tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_a_consumed_capsule_is_none(version):
    handed = numpy.arange(3.0).__dlpack__(max_version=version)

    class Producer:
        def __dlpack__(self, **_):
            return handed

        def __dlpack_device__(self):
            return (1, 0)

    numpy.from_dlpack(Producer())
    assert capsule.read(handed) is None


@pytest.mark.parametrize(
    "thing", [None, 1, "dltensor", b"dltensor", numpy.zeros(3), object(), {}, (1, 0)]
)
def test_what_is_no_capsule_is_none(thing):
    assert capsule.read(thing) is None


@pytest.mark.parametrize(
    "name", [b"something", b"used_dltensor", b"used_dltensor_versioned", b"DLTENSOR", b""]
)
def test_a_capsule_of_another_name_is_none(name):
    assert capsule.read(new_capsule(1, name, None)) is None


def tensor(**changes):
    """A capsule over a tensor of one's own making, which must be kept alive."""
    held = capsule.Managed()
    for name, value in changes.items():
        setattr(held.tensor, name, value)
    return held, new_capsule(ctypes.addressof(held), b"dltensor", None)


@pytest.mark.parametrize(
    ("code", "bits", "lanes", "name"),
    [
        (4, 16, 1, "bfloat16"),
        (10, 8, 1, "float8_e4m3fn"),
        (12, 8, 1, "float8_e5m2"),
        (6, 8, 1, "bool"),
        (2, 32, 4, "float32x4"),
        (0, 4, 1, "int4"),
        (99, 8, 1, "code99"),
    ],
)
def test_dtypes_that_numpy_lacks_are_named_too(code, bits, lanes, name):
    held, handed = tensor(code=code, bits=bits, lanes=lanes)
    assert capsule.read(handed).dtype == name
    del held


@pytest.mark.parametrize(
    ("kind", "name"),
    [(2, "cuda:1"), (3, "cuda_host:1"), (13, "cuda_managed:1"), (77, "device type 77:1")],
)
def test_devices_are_named(kind, name):
    held, handed = tensor(device_type=kind, device_id=1, lanes=1)
    assert capsule.read(handed).device == name
    del held


def test_the_byte_offset_belongs_to_the_address():
    held, handed = tensor(data=4096, byte_offset=12, lanes=1)
    contents = capsule.read(handed)
    assert (contents.address, contents.alignment_bytes) == (4108, 4)
    del held
