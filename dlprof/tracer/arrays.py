"""An object's framework, device and address. No memory of an array is read or written."""

from __future__ import annotations

import ctypes
import math
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial, reduce
from operator import attrgetter
from typing import Any
from weakref import ref

from dlprof.device.cuda import SIMULATED_DEVICES
from dlprof.probes import capsule
from dlprof.probes.base import DTYPES, HOST_MEMORY, LIST, ROOTS, Probe
from dlprof.probes.builtin import ALL
from dlprof.probes.generic import PROTOCOLS
from dlprof.tracer.targets import array_type_name

BUFFERS = ("bytes", "bytearray", "array", "mmap", "Buffer")
"""The classes of plain memory."""
CONTAINERS = (list, tuple, dict)
ADDRESSES = 1 << 44
"""Words in the memory of a process: no address of a program is higher."""
DATA = 16
"""Bytes from a ``numpy.ndarray`` to its ``char *data``, behind the head of every object."""
HEADS: Any = (
    (ctypes.c_void_p * ADDRESSES).from_address(DATA)
    if sys.implementation.name == "cpython" and sys.maxsize > ADDRESSES
    else None
)
"""By ``id(array) >> 3``, the address that is in the head of a ``numpy.ndarray``."""
NOT_READY = 600
"""``CUDA_ERROR_NOT_READY``."""


@dataclass(eq=False)
class Kind:
    """Looks at arrays of one type."""

    framework: str
    address: Callable[[Any], int | None]
    """The address of the first element; None if it is not known."""
    key: Callable[[Any], Any]
    """A pair of dtype and shape, which can be hashed."""
    nbytes: Callable[[Any], int]
    device: Callable[[Any], str]
    """``cpu``, ``cuda:0``; ``cuda`` without a known number, and ``?`` if nothing is known."""
    is_busy: Callable[[Any], bool | None] | None = None
    """Whether work on the array is still queued; None if the framework does not say."""
    is_buffer: bool = False
    owns: Callable[[Any], bool] | None = None
    """Whether the array owns its memory for sure."""
    may_keep: bool = False
    """Whether it may give out the same array again, so that a result that owns its memory is no
    proof of a copy."""
    is_wrapper: bool = False
    """Whether it is a class without a probe that converts in its own ``__array__``."""
    host_copy: Callable[[Any], Any] | None = None
    """The copy on the host that an array keeps, and gives out again; None if it keeps none."""
    life: Callable[[Any], Callable[[], bool]] = lambda array: _lives(ref(array))
    """A function that says whether the array's memory lives. It keeps nothing alive."""


class Kinds(dict[type, "Kind | None"]):
    """The kind of each type; None for types that are no arrays."""

    def __init__(self) -> None:
        super().__init__()
        self.probes = {kind.name: kind() for kind in ALL}

    def __missing__(self, kind: type) -> Kind | None:
        found = self[kind] = self._look_up(kind)
        return found

    def _look_up(self, kind: type) -> Kind | None:
        if kind.__name__ == "PyCapsule" and kind.__module__ == "builtins":
            return CAPSULE
        if str(kind.__module__).startswith("torch._subclasses"):
            return None  # tensors without memory, of torch's compiler
        is_known = False
        for base in kind.__mro__:
            root = str(base.__module__).partition(".")[0]
            for probe in self.probes.values():
                if probe.module != ROOTS.get(root, root):
                    continue
                if probe.name in (*HOST_MEMORY, *LIST):
                    if base.__name__ in BUFFERS and base.__name__.lower() in probe.name:
                        return _buffer(probe)
                    continue
                name = array_type_name(type(probe))
                is_known |= bool(name)
                array_type = resolved(name)
                if isinstance(array_type, type) and issubclass(kind, array_type):
                    return _kind(probe)
        if is_known or not any(hasattr(kind, name) for name in PROTOCOLS):
            return None
        found = no_array(str(kind.__module__).partition(".")[0])
        by_method = hasattr(kind, "__array__")
        is_wrapper = by_method and not hasattr(kind, "__dlpack__")
        return replace(found, may_keep=by_method, is_wrapper=is_wrapper)


def resolved(dotted: str) -> Any:
    """Return the object of a dotted name, without an import; None if it is not there."""
    names = dotted.split(".")
    for count in range(len(names), 0, -1):
        module: Any = sys.modules.get(".".join(names[:count]))
        if module is not None:
            return reduce(lambda thing, name: getattr(thing, name, None), names[count:], module)
    return None


def _kind(probe: Probe) -> Kind:
    state = queue_state(probe)
    if probe.name == "numpy":
        address = _head if _is_in_head() else _interface
        return Kind("numpy", address, KEY, _nbytes, _host, owns=attrgetter("flags.owndata"))
    if probe.name == "torch":
        address = sys.modules["torch"].Tensor.data_ptr
        busy = (lambda x: _torch_state(x.device) if x.is_cuda else None) if state else None
        return Kind("torch", address, KEY, _nbytes, _torch_device, busy, life=_torch_life)
    if probe.name == "jax":
        address = partial(_jax_address, probe)
        busy, kept = (lambda x: not x.is_ready()), (lambda x: getattr(x, "_npy_value", None))
        kind = Kind("jax", address, KEY, _nbytes, _jax_device, busy, host_copy=kept)
        return replace(kind, life=_jax_life)
    return Kind(
        probe.name,
        _tf_address if probe.name == "tensorflow" else probe.pointer,
        lambda x: (probe.dtype(x), probe.shape(x)),
        partial(_counted, probe),
        (lambda x: f"cuda:{x.device.id}") if probe.name == "cupy" else probe.device,
        (lambda x: state() if probe.device(x) == "cuda" else None) if state else None,
    )


KEY, _nbytes = attrgetter("dtype", "shape"), attrgetter("nbytes")


def _counted(probe: Probe, array: Any) -> int:
    return DTYPES.get(probe.dtype(array) or "", 0) * math.prod(probe.shape(array) or ())


def _host(_: Any) -> str:
    return "cpu"


def _interface(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def _head(array: Any) -> int | None:
    """Return the address as ``_interface`` does, which takes 2 µs."""
    return HEADS[id(array) >> 3]  # type: ignore[no-any-return]


def _is_in_head() -> bool:
    sample = sys.modules["numpy"].zeros(3)[1:]
    return HEADS is not None and _head(sample) == _interface(sample)


def _lives(weak: Callable[[], Any]) -> Callable[[], bool]:
    return lambda: weak() is not None


def _jax_life(array: Any) -> Callable[[], bool]:
    weak = ref(array)  # a donated array is deleted, and stays as an object
    return lambda: (known := weak()) is not None and not known.is_deleted()


def _torch_life(tensor: Any) -> Callable[[], bool]:
    # torch.utils.swap_tensors refuses a tensor that has a weak reference.
    module = sys.modules["torch.multiprocessing.reductions"]
    storage = module.StorageWeakRef(tensor.untyped_storage())
    return lambda: not storage.expired()


def _torch_device(array: Any) -> str:
    return "cpu" if array.is_cpu else str(array.device)


def _jax_address(probe: Probe, array: Any) -> int | None:
    try:
        return probe.pointer(array)
    except ValueError:  # it has several shards
        return None


def _jax_device(array: Any) -> str:
    device = next(iter(array.devices()))
    return f"cuda:{device.id}" if device.platform == "gpu" else str(device.platform)


def are_apart(device: str, other: str) -> bool:
    """Whether these are two devices. One of them may have no number, or be unknown."""
    if "?" in {device, other}:
        return False
    (kind, _, number), (other_kind, _, other_number) = device.partition(":"), other.partition(":")
    return kind != other_kind or ("" not in {number, other_number} and number != other_number)


def _tf_address(array: Any) -> int | None:
    if "CPU" not in array.backing_device:  # a view of it would be a copy to the host
        return None
    numpy = sys.modules["numpy"]
    try:
        return int(numpy.frombuffer.__wrapped__(memoryview(array), "u1").ctypes.data)
    except (AttributeError, BufferError, ValueError, TypeError):
        return None


def queue_state(probe: Probe) -> Callable[[], bool | None] | None:
    """Return a function that says whether work is queued where the framework would queue more.

    None if the framework does not say. The function returns None before the device is in use.
    """
    if probe.name == "torch":  # without CUDA, operations have run when they return
        return _torch_state if resolved("torch.version.cuda") else None
    if type(probe).current_stream is Probe.current_stream:
        return None
    return lambda: _stream_state(probe.current_stream("cuda"))


def _torch_state(device: Any = None) -> bool | None:
    cuda = sys.modules["torch"].cuda
    if not cuda.is_initialized() or cuda.is_current_stream_capturing():
        return None
    return not cuda.current_stream(device).query()


def _stream_state(handle: int | None) -> bool | None:
    """Whether work is queued on a CUDA stream; None if the driver does not say.

    A query would end the capture of a stream.
    """
    driver, capturing = _driver(), ctypes.c_int()
    if driver is None or handle is None:
        return None
    stream = ctypes.c_void_p(handle)
    if driver.cuStreamIsCapturing(stream, ctypes.byref(capturing)) or capturing.value:
        return None
    return {0: False, NOT_READY: True}.get(driver.cuStreamQuery(stream))


def host_waits() -> Callable[[], int] | None:
    """Return a function that counts the waits of this thread; None without a simulated device."""
    if SIMULATED_DEVICES not in os.environ:
        return None
    waits = getattr(_driver(), "dlprofSimulatedWaits", None)
    if waits is not None:
        waits.restype = ctypes.c_uint64
    return waits


@cache
def _driver() -> Any:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None


def _buffer(probe: Probe) -> Kind:
    return Kind(
        probe.name,
        probe.pointer,
        lambda x: ("bytes", (memoryview(x).nbytes,)),
        lambda x: memoryview(x).nbytes,
        _host,
        is_buffer=True,
    )


def _capsule_address(thing: Any) -> int | None:
    contents = capsule.read(thing)
    return contents.address if contents else None


def no_array(name: str, address: Callable[[Any], int | None] = lambda _: None) -> Kind:
    """Return a kind for something other than an array, or for an array that says nothing."""
    return Kind(name, address, lambda _: ("?", ()), lambda _: 0, lambda _: "?")


CAPSULE = no_array("capsule", _capsule_address)


def leaves(things: Any, depth: int = 3) -> Iterator[Any]:
    """Yield what containers hold, at most three levels down."""
    if type(things) not in CONTAINERS:
        yield things
    elif depth:
        for thing in things.values() if type(things) is dict else things:
            yield from leaves(thing, depth - 1)
