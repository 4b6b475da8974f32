"""Objects without a probe, identified by their own protocols."""

import array
import ctypes

import numpy
import pytest

from dlprof.probes import generic
from dlprof.probes.base import Unsupported
from dlprof.probes.generic import NOTHING, Generic, metadata, wait_text
from dlprof.probes.numpy import NumPy
from dlprof.worker.inspect import describe_array

NUMBERS = numpy.arange(24.0).reshape(4, 6)


class Box:
    """An object with one array protocol."""

    def __init__(self, array, name="__array_interface__"):
        self.array = array
        setattr(self, name, array.__array_interface__)


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


class Other(Generic):
    name = "other"
    module = "builtins"


ARRAY = numpy.arange(12, dtype="float32").reshape(3, 4)
ON_DEVICE = Box(ARRAY, "__cuda_array_interface__")


@pytest.mark.parametrize(
    ("box", "wait"),
    [(Box(ARRAY), "{x}.__array_interface__"), (Capsules(ARRAY), "{x}.__dlpack__()")],
    ids=["interface", "dlpack"],
)
def test_an_array_protocol_identifies_the_array_and_waits_for_it(box, wait):
    found = metadata(box)
    assert (found.shape, found.dtype, found.device) == ((3, 4), "float32", "cpu")
    assert (found.address, found.layout) == (ARRAY.ctypes.data, "C")
    assert Other().to_numpy(box).tolist() == ARRAY.tolist()
    assert wait_text(box) == wait


def test_the_cuda_array_interface_gives_the_device():
    assert metadata(ON_DEVICE).device == "cuda"
    assert wait_text(ON_DEVICE) == "_device_wait({x})"


def test_values_on_a_device_need_a_driver(monkeypatch):
    monkeypatch.setattr(generic, "open_gpu", lambda ordinal: None)
    with pytest.raises(Unsupported):
        Other().to_numpy(ON_DEVICE)


@pytest.mark.parametrize("thing", [None, 3, [1, 2], numpy.ndarray, Refuses()])
def test_an_object_without_a_protocol_is_unknown(thing):
    assert metadata(thing) is NOTHING
    assert metadata(thing).layout == "unknown"
    assert wait_text(thing) == ""


@pytest.mark.parametrize(
    ("array", "word"),
    [
        (ARRAY, "C"),
        (numpy.asfortranarray(ARRAY), "F"),
        (ARRAY[:, ::2], "strided"),
        (ARRAY[::-1], "strided"),
        (numpy.broadcast_to(ARRAY[0], (3, 4)), "broadcast"),
        (numpy.zeros((0, 4)), "C"),
        (numpy.zeros(4, dtype=[("a", "f4"), ("b", "i2")])["a"], "strided"),
    ],
)
def test_the_layout_follows_from_the_strides(array, word):
    assert metadata(array).layout == word


class Device:
    """Device memory that lies in a host array, and can be read once the work has been waited for."""

    is_idle = False

    def synchronize_device(self):
        self.is_idle = True

    def read(self, address, size_bytes):
        assert self.is_idle
        return ctypes.string_at(address, size_bytes)


@pytest.mark.parametrize(
    "view",
    [NUMBERS, NUMBERS[:, ::2], NUMBERS.T, NUMBERS[::-1, 1:], NUMBERS[:0]],
    ids=["whole", "strided", "transposed", "negative", "empty"],
)
def test_an_array_on_a_device_is_read_by_its_address(view, monkeypatch):
    monkeypatch.setattr(generic, "open_gpu", lambda _ordinal: Device())
    values = Other().to_numpy(Box(view, "__cuda_array_interface__"))
    numpy.testing.assert_array_equal(values, view)


class OnDevice(Box):
    """An array on a device, of a library whose probe knows host arrays alone."""

    __module__ = "numpy"
    shape, dtype, ctypes = NUMBERS.shape, NUMBERS.dtype, NUMBERS.ctypes


@pytest.mark.parametrize(
    ("name", "device"), [("__array_interface__", "cpu"), ("__cuda_array_interface__", "cuda")]
)
def test_a_probe_of_host_arrays_does_not_take_an_array_on_a_device(name, device):
    found = describe_array(OnDevice(NUMBERS, name), [("builtin", NumPy())])
    assert found["device"] == device
    assert (found["side"]["probe"] is None) == (device == "cuda")


def test_a_wait_is_for_the_device_of_the_object(monkeypatch):
    devices = [Device(), Device()]
    monkeypatch.setattr(generic, "open_gpu", devices.__getitem__)
    monkeypatch.setattr(generic, "device_ordinal", lambda _address: 1)
    generic.device_wait(Box(NUMBERS, "__cuda_array_interface__"))
    assert [device.is_idle for device in devices] == [False, True]


class Values:
    """A class with ``__array__`` alone."""

    def __init__(self, make):
        self.make = make

    def __array__(self, dtype=None, copy=None):
        return self.make()


def test_an_object_that_gives_out_its_own_memory_has_its_address():
    found = metadata(Values(lambda: ARRAY))
    assert (found.shape, found.dtype, found.address) == ((3, 4), "float32", ARRAY.ctypes.data)
    assert found.layout == "C"


def test_an_object_that_is_copied_by_each_conversion_has_values_and_no_address():
    thing = Values(ARRAY.copy)
    found = metadata(thing)
    assert (found.shape, found.dtype, found.address) == ((3, 4), "float32", None)
    assert found.layout == "unknown"
    assert Other().to_numpy(thing).tolist() == ARRAY.tolist()
    assert wait_text(thing) == ""  # its values may be made when they are read


def boxed(*items):
    """Return an object array, as lists of several arrays become."""
    found = numpy.empty(len(items), dtype=object)
    found[:] = items
    return Values(lambda: found)


def test_an_array_of_arrays_is_read_as_one():
    thing = boxed(*ARRAY)
    assert (Other().shape(thing), Other().dtype(thing)) == ((3, 4), "float32")
    assert metadata(thing).address is None
    assert Other().to_numpy(thing).tolist() == ARRAY.tolist()


@pytest.mark.parametrize(
    "items",
    [(None, 1.0), (1, "a"), (ARRAY[0], ARRAY[0][1:])],
    ids=["None", "numbers and text", "ragged"],
)
def test_addresses_of_objects_are_no_values(items):
    with pytest.raises(Unsupported):
        Other().to_numpy(boxed(*items))


def test_an_object_that_refuses_a_capsule_is_waited_for_and_read_by_numpy():
    thing = Values(lambda: ARRAY)
    thing.__dlpack__ = Refuses().__dlpack__
    assert wait_text(thing) == "_numpy_array({x})"
    assert Other().to_numpy(thing).tolist() == ARRAY.tolist()


@pytest.mark.parametrize(
    "thing",
    [(ctypes.c_double * 6)(*range(6)), array.array("d", range(6))],
    ids=["ctypes", "array"],
)
def test_the_buffer_protocol_gives_the_dtype(thing):
    found = metadata(thing)
    assert (found.shape, found.dtype, found.writable) == ((6,), "float64", True)
    assert found.address == numpy.asarray(thing).ctypes.data
    assert Other().shape(thing) == (6,)


@pytest.mark.parametrize("thing", [b"abcd", memoryview(bytearray(4))], ids=["bytes", "view"])
def test_bytes_have_neither_shape_nor_dtype(thing):
    assert (Other().shape(thing), Other().dtype(thing)) == (None, None)
    assert Other().to_numpy(thing).tobytes() == bytes(thing)


def test_the_values_of_an_object_without_a_protocol_are_unsupported():
    with pytest.raises(Unsupported):
        Other().to_numpy(object())


def test_a_type_that_was_made_in_a_namespace_without_a_name_is_described():
    names = {}
    exec("import ctypes; x = (ctypes.c_double * 7)()", names)
    found = describe_array(names["x"], [])
    assert (found["side"]["name"], found["shape"]) == ("c_double_Array_7", [7])
