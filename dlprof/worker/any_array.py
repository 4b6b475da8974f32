"""A probe for any object that has an array protocol.

``__array_interface__``, ``__cuda_array_interface__`` and ``__dlpack__`` tell address, shape and
dtype. Instruments that need more answer ``unknown``.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from dlprof.probes import capsule
from dlprof.probes.base import ANY_DEVICE, DTYPES, ArraySpec, Probe, Unsupported
from dlprof.worker.refusal import Refusal, attempt

UNKNOWN = "unknown"
_KINDS = {"b": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex"}


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
        """The layout in memory, or ``unknown``."""
        if self is NOTHING:
            return UNKNOWN
        if self.strides is None:
            return "C"
        axes = [axis for axis in zip(self.shape, self.strides, strict=False) if axis[0] > 1]
        if 0 in self.shape or _is_dense(reversed(axes)):
            return "C"
        if _is_dense(axes):
            return "F"
        return "broadcast" if any(stride == 0 for _, stride in axes) else "strided"


NOTHING = Metadata(None, (), UNKNOWN, "cpu")


def metadata(thing: Any) -> Metadata:
    """Read the array protocols of ``thing``; :data:`NOTHING` for an object without one."""
    for name, device in (("__cuda_array_interface__", "cuda"), ("__array_interface__", "cpu")):
        interface = attempt(partial(getattr, thing, name, None))
        if isinstance(interface, Mapping):
            return _interface_metadata(interface, device)
    if isinstance(thing, type):
        return NOTHING
    contents = attempt(lambda: capsule.read(thing.__dlpack__()))
    if contents is None or isinstance(contents, Refusal):
        return NOTHING
    return Metadata(
        contents.address or None,
        contents.shape,
        contents.dtype if contents.dtype in DTYPES else UNKNOWN,
        contents.device.partition(":")[0],
        contents.strides,
        "read_only" not in contents.flags if contents.version else None,
    )


def read_shape(thing: Any) -> tuple[int, ...]:
    """Read the shape by an array protocol, else from ``shape``; empty if neither tells."""
    found = metadata(thing)
    if found is not NOTHING or isinstance(thing, type):
        return found.shape
    shape = attempt(lambda: tuple(map(operator.index, thing.shape)))
    return () if isinstance(shape, Refusal) or min(shape, default=0) < 0 else shape


def has(thing: Any, name: str) -> bool:
    """Whether it has the attribute, or an attribute that raises an error of its own."""
    found = attempt(partial(getattr, thing, name))
    return not (isinstance(found, Refusal) and isinstance(found.error, AttributeError))


def wait_text(thing: Any) -> str:
    """Return source text that waits until the values of such an object ``{x}`` are there.

    Both protocols promise that host memory can be read once they have answered.
    """
    found = metadata(thing)
    if found is NOTHING:
        return ""
    if found.device != "cpu":
        return "_device_wait()"
    return "{x}.__array_interface__" if has(thing, "__array_interface__") else "{x}.__dlpack__()"


def _is_dense(axes: Any) -> bool:
    expected = 1
    for length, stride in axes:
        if stride != expected:
            return False
        expected *= length
    return True


def _interface_metadata(interface: Mapping[str, Any], device: str) -> Metadata:
    kind, digits = interface["typestr"][1], interface["typestr"][2:]
    size = int(digits) if digits.isdigit() else 0  # objects have no size, and times have a unit
    dtype = _KINDS.get(kind, "") + ("" if kind == "b" else str(8 * size))
    data, strides = interface.get("data"), interface.get("strides")
    whole = size and all(stride % size == 0 for stride in strides or ())
    return Metadata(
        int(data[0]) or None if isinstance(data, tuple) else None,
        tuple(interface["shape"]),
        dtype if dtype in DTYPES else UNKNOWN,
        device,
        # No dense array has strides that are not a whole number of elements.
        strides and tuple(stride // size if whole else -1 for stride in strides),
        not data[1] if isinstance(data, tuple) else None,
    )


class Foreign(Probe):
    devices = ANY_DEVICE
    setup = "from dlprof.worker.any_array import device_wait as _device_wait"
    wait_text: ClassVar[str] = ""
    """The answer of :func:`wait_text` for the object."""

    def pointer(self, array: Any) -> int | None:
        return metadata(array).address

    def shape(self, array: Any) -> tuple[int, ...]:
        return read_shape(array)

    def dtype(self, array: Any) -> str:
        return metadata(array).dtype

    def device(self, array: Any) -> str:
        return metadata(array).device

    def writable(self, array: Any) -> bool | None:
        return metadata(array).writable

    def to_numpy(self, array: Any) -> Any:
        import numpy

        found = metadata(array)
        if found is NOTHING or found.device != "cpu":
            raise Unsupported(f"dlprof cannot read the values of a {type(array).__name__}")
        if hasattr(array, "__array_interface__"):
            return numpy.array(array)
        return numpy.from_dlpack(array).copy()

    def wait(self, device: str) -> str:  # noqa: ARG002 - the contract's argument
        return self.wait_text

    def enqueue(self, spec: ArraySpec) -> str | None:  # noqa: ARG002 - the contract's argument
        raise Unsupported(f"dlprof cannot queue work for {self.name}")

    def check_ready(self, result: Any) -> None:
        """Raise :class:`Unsupported` if nothing says whether a result is complete."""
        kind = type(result)
        if kind.__module__ != "builtins":
            name = f"{kind.__module__}.{kind.__qualname__}"
            raise Unsupported(f"nothing says when a {name} is ready; the host's time is all")


def device_wait() -> None:
    """Wait for all work of the CUDA device: the object's stream is unknown."""
    from dlprof.device.cuda import open_gpu

    open_gpu().synchronize_device()
