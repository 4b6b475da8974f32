"""Objects that no probe knows, by what they say of themselves."""

from __future__ import annotations

import numpy
import pytest

from dlprof.probes.base import Unsupported
from dlprof.worker.foreign import NOTHING, Foreign, has, metadata, wait_text

pytestmark = pytest.mark.unit


class Box:
    """An array of somebody's, with one of the protocols."""

    def __init__(self, array, *protocols):
        self.array = array
        if "interface" in protocols:
            self.__array_interface__ = array.__array_interface__
        if "cuda" in protocols:
            self.__cuda_array_interface__ = array.__array_interface__


class Capsules:
    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Refuses:
    def __dlpack__(self):
        raise BufferError("no")


class Other(Foreign):
    name = "other"
    module = "builtins"


ARRAY = numpy.arange(12, dtype="float32").reshape(3, 4)


@pytest.mark.parametrize(
    "box", [Box(ARRAY, "interface"), Capsules(ARRAY)], ids=["interface", "dlpack"]
)
def test_an_array_protocol_tells_of_the_array(box):
    found = metadata(box)
    assert (found.shape, found.dtype, found.device) == ((3, 4), "float32", "cpu")
    assert found.address == ARRAY.__array_interface__["data"][0]
    assert found.layout == "C"


def test_the_cuda_array_interface_tells_of_the_device():
    assert metadata(Box(ARRAY, "cuda")).device == "cuda"


@pytest.mark.parametrize("thing", [None, 3, [1, 2], object(), numpy.ndarray, Refuses()])
def test_an_object_that_says_nothing_is_not_known(thing):
    assert metadata(thing) is NOTHING
    assert metadata(thing).layout == "unknown"


@pytest.mark.parametrize(
    ("array", "word"),
    [
        (ARRAY, "C"),
        (numpy.asfortranarray(ARRAY), "F"),
        (ARRAY[:, ::2], "strided"),
        (ARRAY[::-1], "strided"),
        (numpy.broadcast_to(ARRAY[0], (3, 4)), "broadcast"),
        (numpy.zeros((0, 4)), "C"),
        (numpy.float32(1), "C"),
        (ARRAY[:1, ::2][:, :1], "C"),
    ],
)
def test_the_layout_is_told_by_the_strides(array, word):
    assert metadata(array).layout == word


def test_strides_of_parts_of_elements_are_not_taken_for_contiguous():
    records = numpy.zeros(4, dtype=[("a", "f4"), ("b", "i2")])
    assert metadata(records["a"]).layout != "C"


def test_the_values_are_read_by_the_protocol():
    for box in (Box(ARRAY, "interface"), Capsules(ARRAY)):
        assert Other().to_numpy(box).tolist() == ARRAY.tolist()


def test_an_array_is_waited_for_by_its_protocol():
    assert wait_text(Box(ARRAY, "interface")) == "{x}.__array_interface__"
    assert wait_text(Capsules(ARRAY)) == "{x}.__dlpack__()"
    assert wait_text(Box(ARRAY, "cuda")) == "_device_wait()"
    assert wait_text([1]) == ""


def test_an_object_of_python_is_ready_when_it_is_returned():
    Other().check_ready([1, 2])
    with pytest.raises(Unsupported, match=r"nothing says when a .*Refuses is ready"):
        Other().check_ready(Refuses())


class Raises:
    """As a tensor of torch does that requires a gradient."""

    @property
    def __cuda_array_interface__(self):
        raise RuntimeError("detach it first")


def test_an_attribute_that_raises_is_there_and_says_nothing():
    assert has(Raises(), "__cuda_array_interface__")
    assert not has(Raises(), "__array_interface__")
    assert metadata(Raises()) is NOTHING
