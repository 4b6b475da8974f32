"""Any object that is an array by protocol, of a library without a probe.

The protocols are ``__cuda_array_interface__``, ``__array_interface__``, ``__dlpack__``, the buffer
protocol, ``__array__`` and ``__arrow_c_array__``. They tell address, shape, dtype and values.
Instruments that need more answer ``unknown``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, TypeVar

from dlprof.device.cuda import device_ordinal, open_gpu
from dlprof.probes import capsule
from dlprof.probes.base import ANY_DEVICE, DTYPES, ArraySpec, Probe, Unsupported

Answer = TypeVar("Answer")
UNKNOWN = "unknown"
_KINDS = {"b": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex"}
INTERFACES = {"__cuda_array_interface__": "cuda", "__array_interface__": "cpu"}
CONVERTED = ("__array__", "__arrow_c_array__")
"""Protocols of objects that NumPy converts: their values may be elsewhere, as in a file."""
PROTOCOLS = (*INTERFACES, "__dlpack__", *CONVERTED)


@dataclass(frozen=True)
class Metadata:
    """The memory of an object; ``strides`` in elements, None for contiguous."""

    address: int | None
    shape: tuple[int, ...]
    dtype: str
    device: str
    strides: tuple[int, ...] | None = None
    writable: bool | None = None

    @property
    def layout(self) -> str:
        """The layout in memory; ``unknown`` without an address."""
        if 0 in self.shape:
            return "C"
        if self.address is None:
            return UNKNOWN
        if self.strides is None:
            return "C"
        axes = [axis for axis in zip(self.shape, self.strides, strict=False) if axis[0] > 1]
        if _is_dense(reversed(axes)):
            return "C"
        if _is_dense(axes):
            return "F"
        return "broadcast" if any(stride == 0 for _, stride in axes) else "strided"


NOTHING = Metadata(None, (), UNKNOWN, "cpu")


def metadata(thing: Any) -> Metadata:
    """Read the array protocols of ``thing``; :data:`NOTHING` for an object without one.

    An object that NumPy converts has an address if two conversions have the same one: it gives out
    memory that it holds. Otherwise each conversion is a copy.
    """
    if isinstance(thing, type):
        return NOTHING
    told: Metadata | None
    for name, device in INTERFACES.items():
        interface = _answer(partial(getattr, thing, name))
        told = _answer(partial(_interface_metadata, interface, device))
        if told is not None:
            return told
    told = _answer(partial(capsule_metadata, thing))
    if told is not None:
        return told
    array = _answer(lambda: as_numpy(thing))
    if array is None:
        return NOTHING
    found = _interface_metadata(array.__array_interface__, "cpu")
    again = _answer(lambda: as_numpy(thing))
    is_held = (
        again is not None
        and again.__array_interface__["data"] == (array.__array_interface__["data"])
    )
    return found if is_held else Metadata(None, found.shape, found.dtype, "cpu", found.strides)


def as_numpy(thing: Any) -> Any:
    """Return the values as a ``numpy.ndarray``: of the buffer protocol, else by ``__array__``.

    Raises :class:`Unsupported` for an object without either, and what the object raises. An array
    of arrays is one array: the bytes of objects are addresses, which differ at each look.
    """
    import numpy

    found = _as_numpy(thing)
    if found.dtype.hasobject:
        items = list(found.reshape(-1))
        found = numpy.stack(items) if items and type(items[0]) is numpy.ndarray else found
    if found.dtype.hasobject:
        raise Unsupported(f"dlprof cannot read the objects of a {type(thing).__name__}")
    return found


def _as_numpy(thing: Any) -> Any:
    import numpy

    view = _answer(lambda: memoryview(thing))
    if view is not None:
        return numpy.asarray(view)
    if has(thing, "__array__"):
        return numpy.asarray(thing)
    if has(thing, "__arrow_c_array__"):
        import pyarrow

        return pyarrow.array(thing).to_numpy(zero_copy_only=False)
    raise Unsupported(f"dlprof cannot read the values of {type(thing).__name__}")


def device_values(found: Metadata) -> Any:
    """Read an array on a CUDA device by its address, once the device has finished its work.

    Raises :class:`Unsupported` without an address, a dtype of NumPy's, or a driver.
    """
    import numpy

    kind, shape = _answer(lambda: numpy.dtype(found.dtype)), found.shape
    if 0 in shape:
        return numpy.empty(shape, kind)
    gpu = _answer(lambda: open_gpu(device_ordinal(found.address)))
    if found.address is None or kind is None or gpu is None:
        raise Unsupported(f"dlprof cannot read {found.dtype} values on the device")
    strides = numpy.empty(shape, kind).strides
    if found.strides is not None:
        strides = tuple(kind.itemsize * stride for stride in found.strides)
    reaches = [stride * (length - 1) for stride, length in zip(strides, shape, strict=True)]
    low = sum(reach for reach in reaches if reach < 0)
    gpu.synchronize_device()
    memory = gpu.read(found.address + low, sum(map(abs, reaches)) + kind.itemsize)
    return numpy.ndarray(shape, kind, memory, -low, strides).copy()


def read_shape(thing: Any) -> tuple[int, ...]:
    """Read the shape by an array protocol, else from ``shape``; empty if neither tells."""
    found = metadata(thing)
    if found is not NOTHING or isinstance(thing, type):
        return found.shape
    shape: tuple[int, ...] = _answer(lambda: _checked(thing.shape)) or ()
    return shape


def has(thing: Any, name: str) -> bool:
    """Whether it has the attribute, or an attribute that raises an error of its own."""
    try:
        return getattr(thing, name) is not None
    except Exception as error:  # noqa: BLE001 - an object of an unknown library
        return not isinstance(error, AttributeError)


def is_bytes(thing: Any) -> bool:
    """Whether it is memory without a dtype, such as ``bytes``: the consumer says what is in it."""
    view = _answer(lambda: memoryview(thing))
    is_plain = view is not None and view.format in ("B", "b", "c") and view.ndim == 1
    return is_plain and not any(has(thing, name) for name in PROTOCOLS)


def is_array(thing: Any) -> bool:
    if isinstance(thing, (type, str)):
        return False
    return any(has(thing, name) for name in PROTOCOLS) or (
        _answer(lambda: memoryview(thing)) is not None
    )


def wait_text(thing: Any) -> str:
    """Return source text that waits until the values of such an object ``{x}`` are there.

    The protocols promise that host memory can be read once they have answered. Empty for an object
    whose values may be made when they are read.
    """
    found = metadata(thing)
    if found is NOTHING or (found.address is None and not has(thing, "__array_interface__")):
        return ""
    if found.device != "cpu":
        return "_device_wait({x})"
    if has(thing, "__array_interface__"):
        return "{x}.__array_interface__"
    is_capsule = _answer(lambda: thing.__dlpack__()) is not None  # noqa: PLW0108 - it may lack one
    return "{x}.__dlpack__()" if is_capsule else "_numpy_array({x})"


def _answer(ask: Callable[[], Answer]) -> Any:
    """Return the answer; None if the object raises: one of an unknown library raises any error."""
    try:
        return ask()
    except Exception:  # noqa: BLE001 - see above
        return None


def _is_dense(axes: Any) -> bool:
    expected = 1
    for length, stride in axes:
        if stride != expected:
            return False
        expected *= length
    return True


def capsule_metadata(thing: Any) -> Metadata:
    contents = capsule.read(thing.__dlpack__())
    if contents is None:
        raise Unsupported("__dlpack__() gives no capsule")
    return Metadata(
        contents.address or None,
        _checked(contents.shape),
        contents.dtype if contents.dtype in DTYPES else UNKNOWN,
        contents.device.partition(":")[0],
        contents.strides,
        "read_only" not in contents.flags if contents.version else None,
    )


def _checked(shape: Iterable[Any]) -> tuple[int, ...]:
    """Return the lengths of a shape. Raises ValueError for a negative one."""
    found = tuple(map(operator.index, shape))
    if min(found, default=0) < 0:
        raise ValueError(found)
    return found


def _interface_metadata(interface: Mapping[str, Any], device: str) -> Metadata:
    kind, digits = interface["typestr"][1], interface["typestr"][2:]
    size = int(digits) if digits.isdigit() else 0  # objects have no size, and times have a unit
    dtype = _KINDS.get(kind, "") + ("" if kind == "b" else str(8 * size))
    data, strides = interface.get("data"), interface.get("strides")
    whole = size and all(stride % size == 0 for stride in strides or ())
    return Metadata(
        int(data[0]) or None if isinstance(data, tuple) else None,
        _checked(interface["shape"]),
        dtype if dtype in DTYPES else UNKNOWN,
        device,
        # No dense array has strides that are not a whole number of elements.
        strides and tuple(stride // size if whole else -1 for stride in strides),
        not data[1] if isinstance(data, tuple) else None,
    )


class Generic(Probe):
    devices = ANY_DEVICE
    setup = (
        "from dlprof.probes.generic import as_numpy as _numpy_array, device_wait as _device_wait"
    )
    wait_text: ClassVar[str] = ""
    """The answer of :func:`wait_text` for the object."""

    def pointer(self, array: Any) -> int | None:
        return metadata(array).address

    def shape(self, array: Any) -> tuple[int, ...] | None:
        return None if is_bytes(array) else read_shape(array)

    def dtype(self, array: Any) -> str | None:
        return None if is_bytes(array) else metadata(array).dtype

    def device(self, array: Any) -> str:
        return metadata(array).device

    def writable(self, array: Any) -> bool | None:
        return metadata(array).writable

    def to_numpy(self, array: Any) -> Any:
        import numpy

        if is_bytes(array):
            return numpy.frombuffer(array, dtype="uint8")
        if metadata(array).device != "cpu":
            return device_values(metadata(array))
        if has(array, "__array_interface__"):
            return numpy.array(array)
        values = _answer(lambda: as_numpy(array))
        if values is None and has(array, "__dlpack__"):
            values = numpy.from_dlpack(array)
        if values is None:
            raise Unsupported(f"dlprof cannot read the values of {type(array).__name__}")
        return numpy.array(values)

    def wait(self, device: str) -> str:
        return self.wait_text

    def enqueue(self, spec: ArraySpec) -> str | None:
        raise Unsupported(f"dlprof cannot queue work for {self.name}")

    def check_ready(self, result: Any) -> None:
        """Raise :class:`Unsupported` if nothing says whether a result is complete."""
        kind = type(result)
        module = getattr(kind, "__module__", "builtins")  # made in a namespace without a name
        if module != "builtins":
            name = f"{module}.{kind.__qualname__}"
            raise Unsupported(f"nothing says when {name} is ready")


def device_wait(thing: Any) -> None:
    """Wait for all work of the object's CUDA device: its stream is unknown."""
    open_gpu(device_ordinal(metadata(thing).address)).synchronize_device()
