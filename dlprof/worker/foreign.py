"""An object of a framework that has no probe: what it says of itself by the array protocols.

``__array_interface__``, ``__cuda_array_interface__`` and ``__dlpack__`` tell of address, shape and
dtype. What none of them tells is not known, and the instruments that need it say so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from dlprof.probes import capsule
from dlprof.probes.base import ANY_DEVICE, DTYPES, ArraySpec, Probe, Unsupported

UNKNOWN = "unknown"
_KINDS = {"b": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex"}


@dataclass(frozen=True)
class Metadata:
    """What an object says of its memory; ``strides`` in elements, None for contiguous."""

    address: int | None
    shape: tuple[int, ...]
    dtype: str
    device: str
    strides: tuple[int, ...] | None = None
    writable: bool | None = None


NOTHING = Metadata(None, (), UNKNOWN, "cpu")


def metadata(thing: Any) -> Metadata:
    """What ``thing`` says of itself; :data:`NOTHING` for an object that says nothing."""
    for name, device in (("__cuda_array_interface__", "cuda"), ("__array_interface__", "cpu")):
        interface = _attribute(thing, name)
        if isinstance(interface, Mapping):
            return _of_interface(interface, device)
    contents = capsule.read(_capsule(thing))
    if contents is None:
        return NOTHING
    return Metadata(
        contents.address or None,
        contents.shape,
        contents.dtype if contents.dtype in DTYPES else UNKNOWN,
        contents.device.partition(":")[0],
        contents.strides,
        "read_only" not in contents.flags if contents.version else None,
    )


def has(thing: Any, name: str) -> bool:
    """Whether it has the attribute, also one that raises an error of its own."""
    try:
        getattr(thing, name)
    except AttributeError:
        return False
    except Exception:  # noqa: BLE001 - any framework, any error
        return True
    return True


def _attribute(thing: Any, name: str) -> Any:
    """None also where asking for it raises, as a tensor of torch does that requires a gradient."""
    try:
        return getattr(thing, name, None)
    except Exception:  # noqa: BLE001 - any framework, any error: it says nothing of itself
        return None


def layout(found: Metadata) -> str:
    """The word for how the array lies in memory, or ``unknown``."""
    if found is NOTHING:
        return UNKNOWN
    axes = [
        (length, stride)
        for length, stride in zip(
            found.shape, found.strides or _c_strides(found.shape), strict=False
        )
        if length > 1
    ]
    if 0 in found.shape or _is_dense(reversed(axes)):
        return "C"
    if _is_dense(axes):
        return "F"
    return "broadcast" if any(stride == 0 for _, stride in axes) else "strided"


def wait_text(thing: Any) -> str:
    """Source text that returns when the values of such a ``{x}`` are there.

    Both protocols promise that host memory can be read when they have answered.
    """
    found = metadata(thing)
    if found is NOTHING:
        return ""
    if found.device != "cpu":
        return "_device_wait()"
    has_interface = hasattr(thing, "__array_interface__")
    return "{x}.__array_interface__" if has_interface else "{x}.__dlpack__()"


def _is_dense(axes: Any) -> bool:
    expected = 1
    for length, stride in axes:
        if stride != expected:
            return False
        expected *= length
    return True


def _c_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides: list[int] = []
    expected = 1
    for length in reversed(shape):
        strides.insert(0, expected)
        expected *= length
    return tuple(strides)


def _capsule(thing: Any) -> Any:
    method = getattr(thing, "__dlpack__", None)
    if method is None or isinstance(thing, type):
        return None
    try:
        return method()
    except Exception:  # noqa: BLE001 - any framework, any error: it then says nothing
        return None


def _of_interface(interface: Mapping[str, Any], device: str) -> Metadata:
    kind, digits = interface["typestr"][1], interface["typestr"][2:]
    size = int(digits) if digits.isdigit() else 0  # objects have none, times a unit besides
    dtype = _KINDS.get(kind, "") + ("" if kind == "b" else str(8 * size))
    data, strides = interface.get("data"), interface.get("strides")
    return Metadata(
        int(data[0]) or None if isinstance(data, tuple) else None,
        tuple(interface["shape"]),
        dtype if dtype in DTYPES else UNKNOWN,
        device,
        # A stride that is no whole number of elements is none of a dense array.
        strides and tuple(stride // size if _fits(stride, size) else -1 for stride in strides),
        not data[1] if isinstance(data, tuple) else None,
    )


def _fits(stride: int, size: int) -> bool:
    return size > 0 and stride % size == 0


class Foreign(Probe):
    """Any object, as far as it tells of itself."""

    devices = ANY_DEVICE
    setup = "from dlprof.worker.foreign import device_wait as _device_wait"
    wait_text: ClassVar[str] = ""
    """What :func:`wait_text` said of the object."""

    def pointer(self, array: Any) -> int | None:
        return metadata(array).address

    def shape(self, array: Any) -> tuple[int, ...]:
        return metadata(array).shape

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
        """Raise :class:`Unsupported` where nothing says whether a result is complete."""
        kind = type(result)
        if kind.__module__ != "builtins":
            name = f"{kind.__module__}.{kind.__qualname__}"
            raise Unsupported(f"nothing says when a {name} is ready; the host's time is all")


def device_wait() -> None:
    """Wait for all that the CUDA device has to do: whose stream it is cannot be asked."""
    from dlprof.device.cuda import open_gpu

    open_gpu().synchronize_device()
