"""DLPack capsules, read without consuming them."""

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dlprof.probes import capsule
from dlprof.probes.capsule import new_capsule


def versioned(array):
    return array.__dlpack__(max_version=(1, 0))


def consume(handed):
    class Producer:
        def __dlpack__(self, **_):
            return handed

        def __dlpack_device__(self):
            return (1, 0)

    return numpy.from_dlpack(Producer())


def test_a_versioned_capsule_gives_its_version_and_flags():
    array = numpy.zeros(3)
    contents = capsule.read(versioned(array))
    assert (contents.name, contents.version[:2]) == ("dltensor_versioned", "1.")
    assert contents.flags == ()
    array.flags.writeable = False
    assert capsule.read(versioned(array)).flags == ("read_only",)


@given(
    arrays.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=4),
    st.sampled_from(["int8", "float32", "complex128"]),
    st.randoms(use_true_random=False),
)
def test_shape_strides_and_address_match_the_array(shape, dtype, chance):
    array = numpy.zeros(shape, dtype)
    axes = list(range(array.ndim))
    chance.shuffle(axes)
    steps = (slice(None, None, chance.choice([1, 2, -1])) for _ in axes)
    array = array.transpose(axes)[(..., *steps)]
    contents = capsule.read(array.__dlpack__())
    assert (contents.shape, contents.device) == (array.shape, "cpu:0")
    if array.size and array.ndim and contents.strides is not None:
        assert contents.strides == tuple(stride // array.itemsize for stride in array.strides)
    if array.size:
        assert contents.address == array.__array_interface__["data"][0]


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_reading_does_not_consume_and_a_consumed_capsule_is_none(version):
    handed = numpy.arange(3.0).__dlpack__(max_version=version)
    assert capsule.read(handed) == capsule.read(handed)
    assert consume(handed).tolist() == [0.0, 1.0, 2.0]
    assert capsule.read(handed) is None


@pytest.mark.parametrize(
    "thing",
    [
        *(None, 1, "dltensor", numpy.zeros(3), object(), (1, 0)),
        *(new_capsule(1, name, None) for name in (b"something", b"used_dltensor", b"DLTENSOR")),
    ],
)
def test_anything_but_an_unconsumed_dlpack_capsule_is_none(thing):
    assert capsule.read(thing) is None


@pytest.mark.parametrize(("code", "name"), [(3, "cuda_host"), (18, "trainium"), (19, "tpu")])
def test_a_capsule_names_each_device_of_the_standard(code, name):
    handed = numpy.zeros(3).__dlpack__()
    pointer = capsule.capsule_pointer(handed, b"dltensor")
    capsule.Managed.from_address(pointer).tensor.device_type = code
    assert capsule.read(handed).device == f"{name}:0"
