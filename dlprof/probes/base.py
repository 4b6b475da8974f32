"""The probe contract: how one framework makes arrays, gives them away and takes them in.

Exports and imports are source text. So one expression is timed, printed and put into a
reproducer, and the timed loop holds no wrapper call.

Probes run inside the interpreter under test. At module level they import the standard library
alone. Frameworks are imported by ``setup`` text or inside methods.
"""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

CPU = ("cpu",)
CUDA = ("cuda",)
ANY_DEVICE = ("cpu", "cuda")

HOST_MEMORY = ("bytes", "bytearray", "array", "mmap", "pyarrow-buffer")
"""The probes of ``dlprof.probes.host``."""
LIST = ("list",)
"""The probe of ``dlprof.probes.list``."""


class Protocol(str, enum.Enum):
    """Ways to hand over an array. The values stand in the session file."""

    DLPACK = "dlpack"
    """An object with ``__dlpack__`` and ``__dlpack_device__``."""
    DLPACK_CAPSULE = "dlpack-capsule"
    """A bare ``PyCapsule`` named ``dltensor`` or ``dltensor_versioned``."""
    CUDA_ARRAY_INTERFACE = "cuda-array-interface"
    """An object with ``__cuda_array_interface__``."""
    ARRAY_INTERFACE = "array-interface"
    """An object with ``__array_interface__``, ``__array__`` or the buffer protocol."""
    BUFFER = "buffer"
    """Plain host memory with the buffer protocol. The import says its shape and dtype."""
    NUMPY = "numpy"
    """A host ``numpy.ndarray`` in between."""
    NATIVE = "native"
    """A framework's own array. The import names the framework whose arrays it takes."""
    PROGRAM = "program"
    """A conversion inside of a user's program, see ``dlprof.worker.program``."""
    STEP = "step"
    """No hand-over: a model runs on the array, see ``dlprof.inference``."""


# Short names, so that a table of exports and imports has one entry per line.
DLPACK = Protocol.DLPACK
CAPSULE = Protocol.DLPACK_CAPSULE
CUDA_ARRAY = Protocol.CUDA_ARRAY_INTERFACE
ARRAY = Protocol.ARRAY_INTERFACE
BUFFER = Protocol.BUFFER
NUMPY = Protocol.NUMPY
NATIVE = Protocol.NATIVE


class Unsupported(Exception):
    """A framework cannot make or convert this. The user sees the message as the reason."""


@dataclass(frozen=True)
class ArraySpec:
    """The array to make: ``shape`` in elements (``()`` is a scalar), ``dtype`` one of
    :data:`DTYPES`, ``layout`` one of :data:`LAYOUTS` or :data:`FLAGS`, ``device`` ``cpu`` or
    ``cuda``. With ``corners`` its values come from :func:`corners`, otherwise from
    :func:`numbers`.
    """

    shape: tuple[int, ...]
    dtype: str
    layout: str = "C"
    device: str = "cpu"
    corners: bool = False
    shifted: bool = False
    """Made in the same way with other values."""

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def size_bytes(self) -> int:
        """Bytes of all elements; 0 for an unknown dtype."""
        return self.elements * DTYPES.get(self.dtype, 0)

    def of_bytes(self, size_bytes: int) -> ArraySpec:
        """Return the same spec with about this size."""
        shape = shape_with(max(1, size_bytes // DTYPES.get(self.dtype, 1)), self.layout)
        return replace(self, shape=shape)

    @property
    def is_integer(self) -> bool:
        return self.dtype.startswith(("int", "uint"))


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

FLAGS: Mapping[str, str] = {
    "swapped": "contiguous, the bytes of each element in the other order",
    "masked": "contiguous, every third element masked",
    "unaligned": "contiguous, one byte off a multiple of its item size",
    "structured": "contiguous, elements of one named field",
    "datetime": "contiguous, points in time by the millisecond",
    "pinned": "contiguous, page-locked host memory, from which a GPU copies by itself",
    "number": "a scalar object such as numpy.float32(1), and no array; its shape is scalar",
    "requires-grad": "contiguous, recorded for gradients",
    "conjugated": "a conjugate that is not computed yet; complex",
    "negated": "a negative that is not computed yet, such as x.conj().imag of torch",
}
"""Properties of arrays that only some frameworks know; a probe names its own in ``flags``."""

PINNED = "pinned"
"""The flag of page-locked memory. It belongs to the host and needs a CUDA device."""

FLAGGED_DTYPES: Mapping[str, str] = {"conjugated": "complex64", "datetime": "int64"}
"""The dtype of a flag that not every dtype has."""

RETYPED = ("structured", "datetime")
"""Flags that make another dtype out of the one that was asked for."""

ROOTS = {"jaxlib": "jax", "numba_cuda": "numba", "cupyx": "cupy"}
"""Modules whose types belong to another framework."""

CONTIGUOUS = ("C", "aligned", "sliced")
"""Layouts that differ in their alignment only."""

NEEDS_AXIS = {"strided": "stride over", "reversed": "reverse", "broadcast": "broadcast along"}
"""Layouts that a scalar lacks, and the verb that says so."""

WHOLE_LAYOUTS = ("C", "aligned", "F", "sliced", "readonly")
"""Layouts whose memory has the array's bytes and no others, from the first element on."""


def shape_with(elements: int, layout: str) -> tuple[int, ...]:
    """Return a shape of about ``elements`` elements in which ``layout`` keeps its meaning.

    Column-major order needs two axes. All other layouts get one.
    """
    rows = math.isqrt(elements)
    return (rows, elements // rows) if layout == "F" and rows > 1 else (elements,)


@dataclass(frozen=True)
class Pattern:
    """The values of a source: ``(index % modulus + offset)``, followed by the text ``times``.

    The modulus is odd, so that a wrong stride of a power of two shows, except for ``bool`` and
    ``float8_e8m0fnu``. The offset sets bits that a narrower dtype cannot hold; it is an int for
    integer dtypes. ``times`` makes values complex, so that a lost or negated imaginary part shows.
    """

    modulus: int
    offset: float
    times: str = ""

    def text(self, index: str, elements: int) -> str:
        """Return source text of the values of ``elements`` indices, without needless operations."""
        text = index if elements <= self.modulus else f"{index} % {self.modulus}"
        if self.offset:
            text = f"{text} + {self.offset!r}"
        return f"({text}){self.times}" if self.times else text


@dataclass(frozen=True)
class Dtype:
    """The item size in bytes, the values of a source, and the bits of exponent and mantissa.

    A complex dtype has the bits of its parts. ``float8_e8m0fnu`` has no sign and no
    mantissa.
    """

    size_bytes: int
    pattern: Pattern
    exponent: int = 0
    mantissa: int = 0


_DTYPES = {
    "bool": Dtype(1, Pattern(2, 0)),
    "int8": Dtype(1, Pattern(127, 0)),
    "int16": Dtype(2, Pattern(32719, 0)),
    "int32": Dtype(4, Pattern(65521, 2**30)),
    "int64": Dtype(8, Pattern(65521, 2**40)),
    "uint8": Dtype(1, Pattern(251, 0)),
    "uint16": Dtype(2, Pattern(65521, 0)),
    "uint32": Dtype(4, Pattern(65521, 2**31)),
    "uint64": Dtype(8, Pattern(65521, 2**40)),
    "float16": Dtype(2, Pattern(251, 0), 5, 10),
    "bfloat16": Dtype(2, Pattern(251, 0), 8, 7),
    "float32": Dtype(4, Pattern(251, 2.0**-10), 8, 23),
    "float64": Dtype(8, Pattern(251, 2.0**-30), 11, 52),
    "complex64": Dtype(8, Pattern(251, 2.0**-10, " * (1 + 2j)"), 8, 23),
    "complex128": Dtype(16, Pattern(251, 2.0**-30, " * (1 + 2j)"), 11, 52),
    "float8_e4m3fn": Dtype(1, Pattern(13, 0), 4, 3),
    "float8_e5m2": Dtype(1, Pattern(7, 0), 5, 2),
    "float8_e4m3fnuz": Dtype(1, Pattern(13, 0), 4, 3),
    "float8_e5m2fnuz": Dtype(1, Pattern(7, 0), 5, 2),
    "float8_e8m0fnu": Dtype(1, Pattern(2, 1)),  # it holds powers of two alone
    "float8_e3m4": Dtype(1, Pattern(13, 0), 3, 4),
    "float8_e4m3": Dtype(1, Pattern(13, 0), 4, 3),
    "float8_e4m3b11fnuz": Dtype(1, Pattern(13, 0), 4, 3),
}
"""The dtypes that dlprof knows."""
DTYPES: Mapping[str, int] = {name: kind.size_bytes for name, kind in _DTYPES.items()}
"""Their item sizes in bytes."""
INTEGERS = tuple(name for name in DTYPES if "int" in name)
PATTERNS: Mapping[str, Pattern] = {name: kind.pattern for name, kind in _DTYPES.items()}
FLOATS = {name: (kind.exponent, kind.mantissa) for name, kind in _DTYPES.items() if kind.exponent}
"""Bits of exponent and of mantissa."""

FLOAT8 = tuple(dtype for dtype in DTYPES if dtype.startswith("float8_"))
"""The kinds of DLPack 1.3 and of ml_dtypes; no framework has all of them."""

BITS: Mapping[str, str] = {"bfloat16": "uint16", **dict.fromkeys(FLOAT8, "uint8")}
"""Dtypes that NumPy lacks (``ml_dtypes`` adds them), with the unsigned integers of their bits."""


def tiled(period: str, length: int, count: int) -> str:
    """Return source text of ``count`` values of NumPy: a ``period`` of ``length`` values, repeated.

    ``numpy.resize`` takes up to forty times as long: it makes a list of the periods first.
    """
    if count <= length:
        return f"{period}[:{count}]"
    return f"numpy.tile({period}, {-(-count // length)})[:{count}]"


@dataclass(frozen=True)
class Corners:
    """Values as unsigned integers of ``word`` bits; an element has ``words`` of them.

    Their number is odd, so that a wrong stride of a power of two shows.
    """

    bits: tuple[int, ...]
    word: int
    words: int = 1

    def text(self, elements: int) -> str:
        """Return source text of the words of ``elements`` elements, as a NumPy array."""
        words = f"numpy.array({list(self.bits)}, dtype='uint{self.word}')"
        return tiled(words, len(self.bits), elements * self.words)


def corners(dtype: str) -> Corners:
    """Return the values of a dtype at which conversions go wrong.

    Floats (IEEE 754): both zeros, extremes, infinities, a negative NaN with a payload, denormals.
    Integers: extremes, the top bit, numbers beyond 2**53. The first value is not zero: an array of
    one element has no other.
    """
    if dtype == "bool":
        return Corners((1, 0, 1), 8)
    if dtype not in FLOATS:
        width = 8 * DTYPES[dtype]
        top, every = 1 << (width - 1), (1 << width) - 1
        beyond = (1 << 53) + 1 if width > 53 else 3  # noqa: PLR2004 - the mantissa of float64
        return Corners((beyond, 0, 1, top - 1, top, every, every // 3), width)
    exponent, mantissa = FLOATS[dtype]
    width = 1 + exponent + mantissa
    sign, one = 1 << (width - 1), ((1 << (exponent - 1)) - 1) << mantissa
    infinity, quiet = ((1 << exponent) - 1) << mantissa, 1 << (mantissa - 1)
    denormal, largest = (1 << mantissa) - 1, infinity - 1
    finite = (one + 1, 0, sign, one, sign | one | 1, largest, sign | largest, 1 << mantissa)
    special = (infinity, sign | infinity, sign | infinity | quiet | 1, 1, sign | denormal)
    return Corners((*finite, *special), width, 2 if dtype.startswith("complex") else 1)


@dataclass(frozen=True)
class Export:
    """One way out of a framework.

    ``code`` holds ``{x}`` for the array. It may hold ``{dtype}`` (``float32``) and ``{shape}``
    (``(3, 4)``). ``devices`` are the devices of the source array; empty: those of the framework.
    ``promise`` is "copy" or "view" if the framework's documentation says so.
    """

    name: str
    protocol: Protocol
    code: str
    devices: tuple[str, ...] = ()
    promise: str | None = None


@dataclass(frozen=True)
class Import:
    """One way into a framework.

    ``code``, ``devices`` and ``promise`` are as in :class:`Export`; ``{x}`` is the exported
    object. ``devices`` are the source array's: a host round trip into CuPy has ``cuda``.
    """

    name: str
    protocols: tuple[Protocol, ...]
    code: str
    devices: tuple[str, ...] = ()
    promise: str | None = None
    producers: tuple[str, ...] = ()
    """Names of the probes whose arrays it takes. Empty: all."""
    setup: str = ""
    """Source text that only this import needs."""
    result_device: str = ""
    """Device of the result, if the call moves it although the framework could stay."""
    returns_array: bool = True
    """False if the call leaves no array behind, as for a kernel's argument."""
    arrays: int = 1
    """How many arrays one call takes."""
    layouts: tuple[str, ...] = ()
    """The layouts that it can read correctly, as for a bare address. Empty: all."""


copies = functools.partial(Import, promise="copy")
"""An import that promises a copy."""
views = functools.partial(Import, promise="view")
"""An import that promises a view."""


@dataclass(frozen=True)
class Use:
    """An operation on several arrays, for a loop that converts all of them.

    ``code`` holds ``{x}`` and the name of each other array in braces. ``shapes`` maps these names
    to shapes. The producer makes these arrays with the dtype of ``x``, and the path converts
    them. ``setup`` is source text that only this operation needs.
    """

    code: str
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    setup: str = ""


class Probe:
    """The probe of one framework: fill in the attributes and the methods.

    Methods that return source text are called before anything is timed. Methods that take an
    array run in the worker after ``setup``. Any method may raise; the message becomes the case's
    reason.
    """

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    module: ClassVar[str]
    """Must be installed; imported in workers only."""
    distributions: ClassVar[tuple[str, ...]]
    """Distributions that may provide the module. The first installed gives the version."""
    also: ClassVar[tuple[str, ...]] = ()
    """Further distributions that do the framework's work; their versions are reported too."""
    requirement: ClassVar[str] = ""
    """Argument of ``pip install``; the first distribution if empty."""
    setup: ClassVar[str] = ""
    """Source text that makes the framework's names known, such as ``import torch``."""
    variables: ClassVar[Mapping[str, str]] = {}
    """Environment variables to set before the import, unless the user has set them."""
    devices: ClassVar[tuple[str, ...]] = CPU
    """Devices on which the framework can own an array."""
    exports: ClassVar[tuple[Export, ...]] = ()
    imports: ClassVar[tuple[Import, ...]] = ()
    flags: ClassVar[tuple[str, ...]] = ()
    """Members of :data:`FLAGS` that ``create`` makes as a layout."""
    dtypes: ClassVar[Collection[str]] = DTYPES
    """The dtypes that the framework has."""
    missing: ClassVar[Mapping[str, str]] = {}
    """Reasons by layout that the framework lacks."""
    immutable: ClassVar[bool] = False
    """Whether the framework declares that no array of it can ever be written."""
    settings: ClassVar[Mapping[str, str]] = {}
    """Expressions by name, such as ``default dtype``, that read what no call may change."""
    narrows: ClassVar[Mapping[str, str]] = {}
    """Documented dtype of a result by dtype of the source, if it differs."""
    narrows_why: ClassVar[str] = ""
    """Reason, and the way to keep the dtype, in one sentence."""
    array_type: ClassVar[str] = ""
    """Dotted name of the array type, whose methods the tracer replaces."""

    def check_spec(self, spec: ArraySpec) -> None:
        """Raise :class:`Unsupported` for a dtype or a layout that the framework lacks."""
        if spec.dtype not in self.dtypes:
            raise Unsupported(f"{self.name} has no dtype {spec.dtype}")
        if spec.layout in self.missing:
            raise Unsupported(self.missing[spec.layout])
        if not spec.shape and spec.layout in NEEDS_AXIS:
            raise Unsupported(f"a scalar has no axis to {NEEDS_AXIS[spec.layout]}")

    def create(self, spec: ArraySpec) -> str:
        """Return source text that assigns the array of ``spec`` to ``x``, after ``setup``.

        Raises :class:`Unsupported` for an array that the framework cannot make.
        """
        raise NotImplementedError

    def resized(self, spec: ArraySpec, size_bytes: int) -> ArraySpec:
        """Return a spec of about this size, in which all else is the same."""
        return spec.of_bytes(size_bytes)

    def layout(self, array: Any) -> str | None:
        """Return the layout if the memory does not tell it."""
        return None

    def ready(self, device: str) -> None:
        """Raise in the framework's own words if it cannot use ``device`` here."""

    def pointer(self, array: Any) -> int | None:
        """Return the address of the first element; None if the framework does not say."""
        raise NotImplementedError

    def to_numpy(self, array: Any) -> Any:
        """Return the values as a ``numpy.ndarray`` on the host; it may be a view of the array.

        For a dtype that NumPy lacks: its bits as unsigned integers (:data:`BITS`).
        """
        raise NotImplementedError

    def shape(self, array: Any) -> tuple[int, ...] | None:
        """Return the lengths in elements; None for memory without a shape."""
        return tuple(int(n) for n in array.shape)

    def dtype(self, array: Any) -> str | None:
        """Return the dtype's name in :data:`DTYPES`; None for memory without a dtype.

        :meth:`to_numpy` then gives its bytes.
        """
        dtype = array.dtype
        # The name of NumPy's lacks the byte order; torch.float32 has its module before it.
        return str(getattr(dtype, "name", dtype)).rpartition(".")[2]

    def device(self, array: Any) -> str:
        """Return the device of the array's memory, ``cpu`` or ``cuda``."""
        return "cpu"

    def writable(self, array: Any) -> bool | None:
        """Whether the framework lets the array be written; None if it does not say."""
        if "readonly" in self.missing:
            return not self.immutable
        return False if self.immutable else None

    def wait(self, device: str) -> str:
        """Return source text that waits for the values of ``{x}``.

        Empty if the framework is synchronous on ``device``.
        """
        return ""

    def properties(self, array: Any) -> tuple[str, ...]:
        """Return the names of the array's properties other than values, such as ``mask``."""
        return ()

    def write(self, array: Any, value: int) -> Any:
        """Overwrite the whole array in place and wait; ``NotImplemented`` if it is immutable."""
        return NotImplemented

    def use(self, device: str) -> str:
        """Return source text of one small operation on ``{x}``, to use it in a loop.

        A call with ``{x}`` as its argument: the operator in ``{x} + 1`` would be the producer's.
        """
        raise Unsupported(f"{self.name} has no operations on numbers")

    def use_many(self, spec: ArraySpec) -> Use | None:
        """Return an operation on several arrays, closer to a real loop than :meth:`use`."""
        return None

    def releases(self, dtype: str) -> Mapping[str, str]:
        """Return ways of the framework's own to release an array ``y``: words, and source text."""
        return {}

    def idioms(self, device: str, dtype: str) -> Mapping[str, str]:
        """Return source text for a script without dlprof that inspects an array ``{x}``.

        ``values`` is a host copy as a ``numpy.ndarray``, ``address``, ``shape`` (a tuple),
        ``dtype`` (a name of :data:`DTYPES`) and ``writable`` are expressions. ``write`` is a
        statement that overwrites all elements with ones and waits. ``own_stream`` is a context
        in which the framework works on a non-blocking stream. ``memory`` is the number of bytes
        that its allocator has handed out on the device. ``copy`` queues a copy on the current
        stream. ``masked`` is whether a mask belongs to
        the array; by default whether it has an attribute ``mask``. Leave out what it does not say.
        """
        return {"shape": "tuple({x}.shape)"}

    def queue_setup(self, spec: ArraySpec) -> str:
        """Return source text that runs once, after ``x`` is made and before ``enqueue``."""
        return ""

    def enqueue(self, spec: ArraySpec) -> str | None:
        """Return source text that queues ``work`` units (an int) of work on ``x``.

        It leaves the array that depends on the work in the name ``y``. The time is linear in
        ``work``. None if the framework runs everything at once.
        """
        return None

    def current_stream(self, device: str) -> int | None:
        """Return the handle of the stream that the framework uses now; None if it does not say."""
        return None

    def on_device(self, ordinal: int) -> AbstractContextManager[Any]:
        """Return a context in which this CUDA device is the framework's current one."""
        return nullcontext()

    def on_stream(self, handle: int) -> AbstractContextManager[Any] | None:
        """Return a context in which the framework works on this CUDA stream, or None.

        The stream outlives the context.
        """
        return None

    def repeat_warnings(self) -> AbstractContextManager[Any]:
        """Return a context in which a warning that comes once in a process comes each time."""
        return nullcontext()

    def give_back(self, device: str) -> None:
        """Free memory whose release the framework has put off."""


def numbers(spec: ArraySpec) -> Pattern:
    """Return the pattern of the values of an array."""
    pattern = PATTERNS[spec.dtype]
    return replace(pattern, offset=pattern.offset + 1) if spec.shifted else pattern


def without_strides(reason: str, readonly: str) -> Mapping[str, str]:
    """Return :attr:`Probe.missing` of a framework with contiguous arrays alone."""
    layouts = ("F", "strided", "reversed", "broadcast")
    return {**dict.fromkeys(layouts, reason), "readonly": readonly}


def wide_shape(spec: ArraySpec) -> tuple[int, ...]:
    """Return the shape from which the layout ``strided`` takes every second element."""
    return (*spec.shape[:-1], 2 * spec.shape[-1])


def flat(spec: ArraySpec, values: Callable[[int, ArraySpec], str]) -> str:
    """Return source text of the values in one dimension; of ``sliced``, behind one other value."""
    if spec.layout == "sliced":
        return f"{values(spec.elements + 1, spec)}[1:]"
    return values(spec.elements, spec)


def laid_out(spec: ArraySpec, values: Callable[[int, ArraySpec], str]) -> str:
    """Return source text that makes ``x`` by slicing and reshaping, as NumPy does.

    The layouts are ``C``, ``strided``, ``sliced`` and ``reversed``. ``values`` gives source text
    of a number of values in one dimension.
    """
    if spec.layout == "strided":
        return f"x = {values(2 * spec.elements, spec)}.reshape({wide_shape(spec)})[..., ::2]"
    whole = f"x = {flat(spec, values)}.reshape({spec.shape})"
    return f"{whole}[::-1]" if spec.layout == "reversed" else whole


def one_row(spec: ArraySpec, values: Callable[[int, ArraySpec], str]) -> str:
    return f"{values(math.prod(spec.shape[1:]), spec)}.reshape({spec.shape[1:]})"


def written(code: str, x: str, dtype: str = "{dtype}", shape: object = "{shape}") -> str:
    """Fill ``x`` into the ``code`` of an export or import, and dtype and shape if given."""
    return code.format(x=x, dtype=dtype, shape=shape)
