"""The probe contract: how one framework makes arrays, gives them away and takes them in.

Ways out and in are *source text*, so what is timed, what is printed and what stands in a
reproducer are the same expression, and the timed loop holds no wrapper call.

This module and all probes run inside the interpreter under test. They import nothing but the
standard library at module level; frameworks are imported by ``setup`` text or inside methods.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

CPU = ("cpu",)
CUDA = ("cuda",)
ANY_DEVICE = ("cpu", "cuda")

HOST_MEMORY = ("bytes", "bytearray", "array", "mmap", "pyarrow", "pinned")
"""The probes of ``dlprof.probes.host``."""


class Protocol(str, enum.Enum):
    """How an array is handed over; the words of the session file."""

    DLPACK = "dlpack"
    """An object with ``__dlpack__`` and ``__dlpack_device__``."""
    DLPACK_CAPSULE = "dlpack-capsule"
    """A bare ``PyCapsule`` named ``dltensor`` or ``dltensor_versioned``."""
    CUDA_ARRAY_INTERFACE = "cuda-array-interface"
    """An object with ``__cuda_array_interface__``."""
    ARRAY_INTERFACE = "array-interface"
    """An object with ``__array_interface__``, ``__array__`` or the buffer protocol."""
    BUFFER = "buffer"
    """Plain host memory with the buffer protocol: bytes whose shape and dtype the way in says."""
    NUMPY = "numpy"
    """A host ``numpy.ndarray`` in between."""
    NATIVE = "native"
    """A framework's own door: the import names the framework whose arrays it takes."""
    STEP = "step"
    """No hand-over: a model runs on the array, see ``dlprof.inference``."""


class Unsupported(Exception):
    """A framework cannot make or convert this; the message is shown to the user as the reason."""


@dataclass(frozen=True)
class ArraySpec:
    """The array to be made.

    ``shape`` in elements (``()`` is a scalar), ``dtype`` an array-API name or one such as
    ``bfloat16``, ``layout`` one of :data:`LAYOUTS`, ``device`` ``cpu`` or ``cuda``.
    """

    shape: tuple[int, ...]
    dtype: str
    layout: str = "C"
    device: str = "cpu"

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def size_bytes(self) -> int:
        """Bytes of all elements; 0 for a dtype that is not known."""
        return self.elements * DTYPES.get(self.dtype, 0)


LAYOUTS: Mapping[str, str] = {
    "C": "contiguous, as the framework's own allocator gives it",
    "aligned": "contiguous, first element at a multiple of 64 bytes",
    "F": "contiguous in column-major order",
    "strided": "every second element of the last axis of a larger array",
    "sliced": "contiguous, one element into a larger array, so not 64-byte aligned",
    "reversed": "first axis backwards, a negative stride",
    "broadcast": "one row repeated along the first axis, a stride of zero",
    "readonly": "contiguous, not writable",
}

CONTIGUOUS = ("C", "aligned", "sliced")
"""Layouts that differ in their alignment only."""


def shape_of(elements: int, layout: str) -> tuple[int, ...]:
    """A shape of about so many elements in which ``layout`` is what it is of larger arrays: column-
    major order needs two axes, else it is row-major as well. One axis for all others.
    """
    rows = math.isqrt(elements)
    return (rows, elements // rows) if layout == "F" and rows > 1 else (elements,)


WHOLE_LAYOUTS = ("C", "aligned", "F", "sliced", "readonly")
"""Layouts whose memory is as many bytes as the array has, beginning at its first element."""

DTYPES: Mapping[str, int] = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "uint8": 1,
    "uint16": 2,
    "uint32": 4,
    "uint64": 8,
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
    "complex64": 8,
    "complex128": 16,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
}
"""Item sizes in bytes of the dtypes dlprof knows."""


@dataclass(frozen=True)
class Pattern:
    """Values ``index % modulus + offset``: the modulus is odd (but for bool), so that strides that
    are powers of two show, and the offset sets bits that a narrower dtype cannot hold.
    ``offset`` is an int for the dtypes of whole numbers. ``times`` is source text that makes these
    values complex ones whose imaginary part shows when it is lost, swapped or negated.
    """

    modulus: int
    offset: float
    times: str = ""


PATTERNS: Mapping[str, Pattern] = {
    "bool": Pattern(2, 0),
    "int8": Pattern(127, 0),
    "uint8": Pattern(251, 0),
    "int16": Pattern(32719, 0),
    "uint16": Pattern(65521, 0),
    "int32": Pattern(65521, 2**30),
    "uint32": Pattern(65521, 2**31),
    "int64": Pattern(65521, 2**40),
    "uint64": Pattern(65521, 2**40),
    "float16": Pattern(251, 0),
    "bfloat16": Pattern(251, 0),
    "float32": Pattern(251, 2.0**-10),
    "float64": Pattern(251, 2.0**-30),
    "complex64": Pattern(251, 2.0**-10, " * (1 + 2j)"),
    "complex128": Pattern(251, 2.0**-30, " * (1 + 2j)"),
    "float8_e4m3fn": Pattern(13, 0),
    "float8_e5m2": Pattern(7, 0),
}


@dataclass(frozen=True)
class Export:
    """One way out of a framework.

    ``code`` holds ``{x}`` for the array, and may hold ``{dtype}`` (``float32``) and ``{shape}``
    (``(3, 4)``) of it. ``devices`` are the devices of the *source array* for
    which this way exists. ``promise`` is "copy" or "view" where the documentation says so.
    """

    name: str
    protocol: Protocol
    code: str
    devices: tuple[str, ...] = ANY_DEVICE
    promise: str | None = None
    note: str = ""


@dataclass(frozen=True)
class Import:
    """One way into a framework.

    ``code`` holds ``{x}`` for what the export gave, and may hold ``{dtype}`` and ``{shape}``.
    ``devices`` are the devices of the *source
    array* for which this way exists (a host round trip into CuPy has ``cuda`` here although it
    takes a host array in). ``producers`` limits a ``native`` door to the frameworks it knows.
    ``setup`` is extra source text this way needs. ``result_device`` says where the result is, if
    that is not the source's device although the framework can own arrays there.
    ``returns_array`` is false where nothing remains after the call that could be looked at, as
    with a kernel's argument. ``layouts`` are those of :data:`LAYOUTS` that it is made for:
    of others it would make something wrong without a word. Empty means all.
    """

    name: str
    protocols: tuple[Protocol, ...]
    code: str
    devices: tuple[str, ...] = ANY_DEVICE
    promise: str | None = None
    note: str = ""
    producers: tuple[str, ...] = ()
    setup: str = ""
    result_device: str = ""
    returns_array: bool = True
    layouts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Use:
    """An operation of several arrays, for the cost of a loop that converts all of them.

    ``code`` holds ``{x}`` and the name of each other array in braces; ``others`` are the shapes
    of those, whose dtype is that of ``x`` and which the producer makes and the path converts as it
    does ``x``. ``setup`` is source text that only this operation needs.
    """

    code: str
    others: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    setup: str = ""


class Probe:
    """How one framework is probed. Subclass, fill in the attributes, answer the methods.

    Methods that return source text are called before anything is timed; methods that take an
    array run in the worker with the framework imported. Any of them may raise: the answer is
    recorded as the case's reason.
    """

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    module: ClassVar[str]
    """Found with ``importlib.util.find_spec``, imported only in a worker."""
    distributions: ClassVar[tuple[str, ...]]
    """Distributions that may provide the module; the first one installed gives the version."""
    also: ClassVar[tuple[str, ...]] = ()
    """Further distributions that do its work, such as a library it calls: told with their versions
    where they are installed."""
    requirement: ClassVar[str] = ""
    """What to ``pip install``; the first distribution if empty."""
    setup: ClassVar[str] = ""
    variables: ClassVar[Mapping[str, str]] = {}
    """Environment variables to set before the import, unless the user has set them."""
    devices: ClassVar[tuple[str, ...]] = CPU
    """Devices on which this framework can own an array."""
    exports: ClassVar[tuple[Export, ...]] = ()
    imports: ClassVar[tuple[Import, ...]] = ()
    c_exchange_type: ClassVar[str] = ""
    """Expression for the array type, to ask for ``__dlpack_c_exchange_api__`` (DLPack 1.3)."""
    c_exchange_files: ClassVar[tuple[str, ...]] = ()
    """Files where the array type gets ``__dlpack__``, as globs from the folder that the framework
    is installed in: where that attribute would be found without an import."""

    def create(self, spec: ArraySpec) -> str:
        """Source text that makes the array of ``spec`` into the name ``x``.

        The text runs after ``setup``. Raise :class:`Unsupported` for what cannot be asked for.
        """
        raise NotImplementedError

    def ready(self, device: str) -> None:
        """Raise with the framework's own words if it cannot use ``device`` on this machine."""

    def pointer(self, array: Any) -> int | None:
        """Address of the first element, or None where the framework does not say."""
        raise NotImplementedError

    def to_numpy(self, array: Any) -> Any:
        """The values on the host as a ``numpy.ndarray``; for a dtype that NumPy lacks, its bits
        as unsigned integers of the same width. May be a view of the array.
        """
        raise NotImplementedError

    def shape(self, array: Any) -> tuple[int, ...] | None:
        """Lengths in elements; None for memory that has no shape."""
        return tuple(int(n) for n in array.shape)

    def dtype(self, array: Any) -> str | None:
        """The dtype's name in the words of :data:`DTYPES`; None for memory that has none.

        :meth:`to_numpy` then gives its bytes.
        """
        return str(array.dtype)

    def device(self, array: Any) -> str:
        """``cpu`` or ``cuda``: where the array's memory is."""
        return "cpu"

    def writable(self, array: Any) -> bool | None:
        """Whether the framework lets the array be written; None where it does not say."""
        return None

    def wait(self, device: str) -> str:
        """Source text that returns when the values of ``{x}`` are really there.

        Empty where the framework is synchronous on ``device``: then nothing is left to wait for.
        """
        return ""

    def write(self, array: Any, value: int) -> Any:
        """Overwrite the whole array in place and wait for it, or return ``NotImplemented`` where
        arrays are immutable.
        """
        return NotImplemented

    def use(self, device: str) -> str:
        """Source text of one small operation on ``{x}``, for the cost of using it in a loop.

        A call that gets ``{x}`` as its argument says also what the framework makes of a foreign
        array; an operator (``{x} + 1``) would be that array's own.
        """
        raise NotImplementedError

    def use_many(self, spec: ArraySpec) -> Use | None:
        """An operation on several arrays, ``{x}`` of ``spec`` among them, that says more of real
        loops than :meth:`use`. None (default) where there is none.
        """
        return None

    def idioms(self, device: str, dtype: str) -> Mapping[str, str]:
        """Source text by which a script without dlprof looks at an array ``{x}``.

        By what it answers: ``values`` (a host copy as a ``numpy.ndarray``), ``address``, ``shape``
        (a tuple), ``dtype`` (a name of :data:`DTYPES`), ``writable``; ``write`` is a statement that
        overwrites all elements with ones and waits for it, ``own_stream`` a context in which the
        framework works on a non-blocking stream, ``memory`` the bytes that its own allocator has
        handed out on the device. What a framework does not say is left out.
        """
        return {"shape": "tuple({x}.shape)"}

    def queue_setup(self, spec: ArraySpec) -> str:
        """Source text that runs once, after ``x`` is there, before the text of ``enqueue``."""
        return ""

    def enqueue(self, spec: ArraySpec) -> str | None:
        """Source text that queues ``work`` units (a name of the namespace, an int) of device or
        asynchronous work on ``x`` and leaves the array that depends on it in the name ``y``.

        The time is linear in ``work``. None where the framework runs everything at once, so that
        nothing can be queued.
        """
        return None

    def enqueue_unrelated(self, spec: ArraySpec) -> str | None:
        """Source text that queues work of ``duration_ns`` (a name of the namespace) which no array
        depends on, and leaves in the name ``z`` something with a ``wait()``. None where there is
        no other queue, or where a stream of the device does.
        """
        return None

    def current_stream(self, device: str) -> int | None:
        """Handle of the stream that the framework would use now; None where it cannot be had."""
        return None

    def on_stream(self, handle: int) -> AbstractContextManager[Any] | None:
        """A context in which the framework queues its work on the CUDA stream with this handle;
        None where it cannot be told to. The stream outlives the context.
        """
        return None

    def give_back(self, device: str) -> None:
        """Free what the framework was told to free and has put off, so that others may have it."""

    def memory_in_use(self, device: str) -> int | None:
        """Bytes that the framework's own allocator has handed out; None where it does not say."""
        return None


def numbers(spec: ArraySpec) -> Pattern:
    """The pattern of the dtype of ``spec``; used by every probe's ``create``."""
    return PATTERNS[spec.dtype]


NEEDS_AXIS = {"strided": "stride over", "reversed": "reverse", "broadcast": "broadcast along"}


def check_layout(spec: ArraySpec, missing: Mapping[str, str] = {}) -> None:
    """Raise :class:`Unsupported` for a layout that ``missing`` has, with the reason there.

    And for one that needs an axis where there is none.
    """
    if spec.layout in missing:
        raise Unsupported(missing[spec.layout])
    if not spec.shape and spec.layout in NEEDS_AXIS:
        raise Unsupported(f"a scalar has no axis to {NEEDS_AXIS[spec.layout]}")


def laid_out(spec: ArraySpec, values: Callable[[int, ArraySpec], str]) -> str:
    """Source text that makes ``x`` by slicing and reshaping, as NumPy and others do it.

    ``values`` gives source text of so many values, one-dimensional. For the layouts ``C``,
    ``strided``, ``sliced`` and ``reversed``.
    """
    if spec.layout == "strided":
        wide = (*spec.shape[:-1], 2 * spec.shape[-1])
        return f"x = {values(2 * spec.elements, spec)}.reshape({wide})[..., ::2]"
    if spec.layout == "sliced":
        return f"x = {values(spec.elements + 1, spec)}[1:].reshape({spec.shape})"
    whole = f"x = {values(spec.elements, spec)}.reshape({spec.shape})"
    return f"{whole}[::-1]" if spec.layout == "reversed" else whole


def row_of(spec: ArraySpec, values: Callable[[int, ArraySpec], str]) -> str:
    """Source text of one row of the layout ``broadcast``."""
    return f"{values(math.prod(spec.shape[1:]), spec)}.reshape({spec.shape[1:]})"


def written(code: str, x: str, dtype: str = "{dtype}", shape: object = "{shape}") -> str:
    """A way's ``code`` with ``x`` in its place, and dtype and shape where they are known."""
    return code.format(x=x, dtype=dtype, shape=shape)
