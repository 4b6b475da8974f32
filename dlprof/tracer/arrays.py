"""Of which framework an object is, and where its memory is. Nothing here reads or writes memory
of an array, but for the header of a ``numpy.ndarray``.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from operator import attrgetter
from typing import Any

from dlprof.probes import ALL, capsule
from dlprof.probes.base import DTYPES, HOST_MEMORY, ROOTS, Probe
from dlprof.tracer.targets import array_type_name

PROTOCOLS = ("__dlpack__", "__cuda_array_interface__", "__array_interface__")
BUFFERS = {
    "bytes": ("bytes",),
    "bytearray": ("bytearray",),
    "array": ("array",),
    "mmap": ("mmap",),
    "pyarrow": ("Buffer",),
}
"""The classes of plain memory, by the probe that knows them."""
CONTAINERS = (list, tuple, dict)
CAPSULE = "capsule"
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
    """How arrays of one type are looked at.

    ``address`` is that of the first element, None if it is not known. ``key`` is a pair of dtype
    and shape, each of which can be hashed. ``device`` has a number where it is known: ``cuda:0``,
    ``cuda``; ``?`` if nothing is known. ``is_busy`` says whether work that the array depends on
    is still queued; None where the framework does not say.
    """

    framework: str
    address: Callable[[Any], int | None]
    key: Callable[[Any], Any]
    nbytes: Callable[[Any], int]
    device: Callable[[Any], str]
    is_busy: Callable[[Any], bool | None] | None = None
    is_buffer: bool = False
    is_special: bool = False
    """Whether it stands for what is no array itself: a container, a capsule, a view."""
    owns: Callable[[Any], bool] | None = None
    """Whether its memory is its own for sure."""
    in_head: bool = False
    """Whether ``HEADS`` has its address."""
    dtype: Callable[[Any], Any] = lambda _: "?"
    may_keep: bool = False
    """Whether it may give out an array that it keeps. One that owns its memory is no copy then."""
    kept: Callable[[Any], Any] | None = None
    """The copy on the host that an array keeps, and gives out again; None if it keeps none."""

    def __post_init__(self) -> None:
        self.is_plain = self.key is KEY
        """Whether ``dtype`` and ``shape`` are what the attributes of these names have."""
        self.is_host = self.device is _host
        if self.is_plain:
            self.dtype = attrgetter("dtype")


class Kinds(dict[type, "Kind | None"]):
    """The kind of each type that was met; None for what is no array."""

    def __init__(self) -> None:
        super().__init__()
        self.probes = {kind.name: kind() for kind in ALL}
        self._of_framework: dict[str, Kind] = {}

    def __missing__(self, kind: type) -> Kind | None:
        found = self[kind] = self._found(kind)
        return found

    def _found(self, kind: type) -> Kind | None:
        if kind is memoryview:
            return VIEW
        if kind.__name__ == "PyCapsule" and kind.__module__ == "builtins":
            return LOOSE
        if str(kind.__module__).startswith("torch._subclasses"):
            return None  # tensors without memory, of torch's compiler
        is_known = False
        for base in kind.__mro__:
            root = str(base.__module__).partition(".")[0]
            for probe in self.probes.values():
                if probe.module != ROOTS.get(root, root):
                    continue
                if probe.name in HOST_MEMORY:
                    if base.__name__ in BUFFERS.get(probe.name, ()):
                        return _buffer(probe)
                    continue
                is_known = True
                array_type = resolved(array_type_name(type(probe)))
                if isinstance(array_type, type) and issubclass(kind, array_type):
                    return self._of(probe)
        has_protocol = any(hasattr(kind, name) for name in PROTOCOLS)
        return _foreign(kind) if has_protocol and not is_known else None

    def _of(self, probe: Probe) -> Kind:
        if probe.name not in self._of_framework:
            self._of_framework[probe.name] = _kind(probe)
        return self._of_framework[probe.name]


def resolved(dotted: str) -> Any:
    """What a dotted name stands for, without an import; None if it is not there."""
    names = dotted.split(".")
    for count in range(len(names), 0, -1):
        thing: Any = sys.modules.get(".".join(names[:count]))
        if thing is None:
            continue
        for name in names[count:]:
            thing = getattr(thing, name, None)
        return thing
    return None


def _kind(probe: Probe) -> Kind:
    if probe.name == "numpy":
        address = _head if _is_in_head() else _interface
        in_head = address is _head
        return Kind("numpy", address, KEY, _nbytes, _host, owns=_owns, in_head=in_head)
    if probe.name == "torch":
        address = sys.modules["torch"].Tensor.data_ptr
        return Kind("torch", address, KEY, _nbytes, _torch_device, _torch_busy())
    if probe.name == "jax":
        address = partial(_jax_address, probe)
        busy, kept = (lambda x: not x.is_ready()), (lambda x: getattr(x, "_npy_value", None))
        return Kind("jax", address, KEY, _nbytes, _jax_device, busy, kept=kept)
    if probe.name == "tensorflow":
        size = partial(_counted, probe)
        dtype = attrgetter("dtype")
        return Kind("tensorflow", _tf_address, _tf_key, size, probe.device, dtype=dtype)
    return Kind(
        probe.name,
        probe.pointer,
        lambda x: (probe.dtype(x), probe.shape(x)),
        partial(_counted, probe),
        _cupy_device if probe.name == "cupy" else probe.device,
        partial(_is_stream_busy, probe) if "cuda" in probe.devices else None,
        dtype=probe.dtype,
    )


KEY, _nbytes = attrgetter("dtype", "shape"), attrgetter("nbytes")


def _counted(probe: Probe, array: Any) -> int:
    count = DTYPES.get(probe.dtype(array) or "", 0)
    for length in probe.shape(array) or ():
        count *= length
    return count


def _host(_: Any) -> str:
    return "cpu"


def _owns(array: Any) -> bool:
    return bool(array.flags.owndata)


def _interface(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def _head(array: Any) -> int | None:
    """As ``_interface``, which takes 2 µs."""
    found: int | None = HEADS[id(array) >> 3]
    return found


def _is_in_head() -> bool:
    sample = sys.modules["numpy"].zeros(3)[1:]
    return HEADS is not None and _head(sample) == _interface(sample)


def _torch_device(array: Any) -> str:
    return "cpu" if array.is_cpu else str(array.device)


def _cupy_device(array: Any) -> str:
    return f"cuda:{array.device.id}"


def _jax_address(probe: Probe, array: Any) -> int | None:
    try:
        return probe.pointer(array)
    except ValueError:  # it has several shards
        return None


def _jax_device(array: Any) -> str:
    device = next(iter(array.devices()))
    return f"cuda:{device.id}" if device.platform == "gpu" else str(device.platform)


def are_apart(one: str, other: str) -> bool:
    """Whether these are two devices. One of them may have no number, or be unknown."""
    if "?" in {one, other}:
        return False
    (kind, _, number), (other_kind, _, other_number) = one.partition(":"), other.partition(":")
    return kind != other_kind or ("" not in {number, other_number} and number != other_number)


def _torch_busy() -> Callable[[Any], bool | None] | None:
    """None for a torch that knows no CUDA: its operations have run when they return."""
    return _torch_is_busy if resolved("torch.version.cuda") else None


def _torch_is_busy(array: Any) -> bool | None:
    return _torch_stream_is_busy(array.device) if array.is_cuda else None


def _torch_stream_is_busy(device: Any = None) -> bool | None:
    cuda = sys.modules["torch"].cuda
    if not cuda.is_initialized() or cuda.is_current_stream_capturing():
        return None
    return not cuda.current_stream(device).query()


def _tf_address(array: Any) -> int | None:
    if "CPU" not in array.backing_device:  # a view of it would be a copy to the host
        return None
    numpy = sys.modules["numpy"]
    try:
        return int(numpy.frombuffer.__wrapped__(memoryview(array), "u1").ctypes.data)
    except (AttributeError, BufferError, ValueError, TypeError):
        return None


def _tf_key(array: Any) -> Any:
    return array.dtype, array._shape_tuple()  # noqa: SLF001 - shape is made anew: 1 µs


def _is_stream_busy(probe: Probe, array: Any) -> bool | None:
    return False if probe.device(array) != "cuda" else _is_current_busy(probe)


def _is_current_busy(probe: Probe) -> bool | None:
    handle = probe.current_stream("cuda")
    return None if handle is None else _is_queue_busy(handle)


@cache
def _driver() -> Any:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None


def _is_queue_busy(stream: int) -> bool | None:
    """Whether work is queued on a CUDA stream, or None if the driver does not say.

    A query would end the capture of a stream.
    """
    driver, capturing = _driver(), ctypes.c_int()
    if driver is None:
        return None
    handle = ctypes.c_void_p(stream)
    if driver.cuStreamIsCapturing(handle, ctypes.byref(capturing)) or capturing.value:
        return None
    return {0: False, NOT_READY: True}.get(driver.cuStreamQuery(handle))


def busy_at_upload(probe: Probe) -> Callable[[], bool | None] | None:
    """Whether a copy to the framework's current device would be behind queued work.

    None where the framework does not say.
    """
    if probe.name == "torch":
        return None if _torch_busy() is None else _torch_stream_is_busy
    if type(probe).current_stream is Probe.current_stream:
        return None
    return partial(_is_current_busy, probe)


def _buffer(probe: Probe) -> Kind:
    return Kind(
        probe.name,
        probe.pointer,
        lambda x: ("bytes", (memoryview(x).nbytes,)),
        lambda x: memoryview(x).nbytes,
        _host,
        is_buffer=True,
    )


def _foreign(kind: type) -> Kind:
    """Arrays of a library that no probe knows: nothing is asked of them, so nothing is copied."""
    root, may_keep = str(kind.__module__).partition(".")[0], hasattr(kind, "__array__")
    key, none = ("?", ()), (lambda _: None)
    return Kind(root, none, lambda _: key, lambda _: 0, lambda _: "?", may_keep=may_keep)


def _capsule_address(thing: Any) -> int | None:
    held = capsule.read(thing)
    return held.address if held else None


VIEW = Kind(
    "memoryview", lambda _: None, lambda _: ("?", ()), lambda x: x.nbytes, _host, is_special=True
)
"""A memoryview: the object that it looks at is the source."""
LOOSE = Kind(
    CAPSULE, _capsule_address, lambda _: ("?", ()), lambda _: 0, lambda _: "?", is_special=True
)
"""A capsule that no traced call gave."""


def first_of(things: Any) -> Any:
    """The first leaf of a container, at most three levels down; None if there is none."""
    for _ in range(3):
        if type(things) not in CONTAINERS or not things:
            break
        things = next(iter(things.values() if type(things) is dict else things))
    return None if type(things) in CONTAINERS else things


def leaves(things: Any) -> Iterable[Any]:
    """The leaves of a container, two levels down: what ``first_of`` found, and its like."""
    found = [things]
    for _ in range(3):
        found = [
            leaf
            for one in found
            for leaf in (
                one.values() if type(one) is dict else one if type(one) in CONTAINERS else (one,)
            )
        ]
    return found
