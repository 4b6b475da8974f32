"""NumPy: host arrays; every layout there is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dlprof.probes.base import (
    ANY_DEVICE,
    CPU,
    HOST_MEMORY,
    ArraySpec,
    Export,
    Import,
    Probe,
    Protocol,
    Unsupported,
    check_layout,
    laid_out,
    numbers,
    row_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


HOST_ARRAY: Mapping[str, str] = {
    "values": "{x}.copy()",
    "address": "{x}.ctypes.data",
    "shape": "{x}.shape",
    "dtype": "{x}.dtype.name",
    "writable": "{x}.flags.writeable",
    "write": "{x}[...] = 1",
}


MANY = 1 << 24
PERIODS = 1 << 12
"""Of an array of more than :data:`MANY` elements, so many periods are repeated as one."""


EXTENDED = {"bfloat16": "uint16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}
"""Dtypes that NumPy lacks and ml_dtypes adds: the unsigned integers of their bits."""


class NumPy(Probe):
    name = "numpy"
    aliases = ("np",)
    module = "numpy"
    distributions = ("numpy",)
    setup = "import numpy"
    devices = CPU
    c_exchange_type = "numpy.ndarray"
    c_exchange_files = ("numpy/*core/_multiarray_umath.*.so",)
    exports = (
        Export("dlpack", Protocol.DLPACK, "{x}", CPU),
        Export("array", Protocol.ARRAY_INTERFACE, "{x}", CPU),
        Export("ndarray", Protocol.NUMPY, "{x}", CPU),
        Export("buffer", Protocol.BUFFER, "{x}", CPU),
    )
    imports = (
        Import("from_dlpack", (Protocol.DLPACK,), "numpy.from_dlpack({x})", CPU),
        Import(
            "from_dlpack_copy",
            (Protocol.DLPACK,),
            "numpy.from_dlpack({x}, copy=True)",
            promise="copy",
        ),
        Import(
            "from_dlpack_nocopy",
            (Protocol.DLPACK,),
            "numpy.from_dlpack({x}, copy=False)",
            CPU,
            promise="view",
        ),
        Import(
            "from_dlpack_to_cpu",
            (Protocol.DLPACK,),
            "numpy.from_dlpack({x}, device='cpu')",
            note="asks the producer to bring the array to the host",
        ),
        Import("asarray", (Protocol.ARRAY_INTERFACE,), "numpy.asarray({x})", CPU),
        Import(
            "asarray_nocopy",
            (Protocol.ARRAY_INTERFACE,),
            "numpy.asarray({x}, copy=False)",
            CPU,
            promise="view",
        ),
        Import(
            "asarray_copy",
            (Protocol.ARRAY_INTERFACE,),
            "numpy.asarray({x}, copy=True)",
            CPU,
            promise="copy",
        ),
        Import("array", (Protocol.ARRAY_INTERFACE,), "numpy.array({x})", CPU, promise="copy"),
        Import(
            "array_nocopy",
            (Protocol.ARRAY_INTERFACE,),
            "numpy.array({x}, copy=False)",
            CPU,
            note="from NumPy 2 on never a copy; before, a copy where one is needed",
        ),
        Import("ndarray", (Protocol.NUMPY,), "{x}", ANY_DEVICE),
        Import(
            "ndarray_buffer",
            (Protocol.BUFFER,),
            "numpy.ndarray({shape}, dtype='{dtype}', buffer={x})",
            CPU,
            promise="view",
            producers=HOST_MEMORY,
        ),
    )

    def create(self, spec: ArraySpec) -> str:
        if spec.dtype in EXTENDED:
            raise Unsupported(f"NumPy has no dtype {spec.dtype} (ml_dtypes adds it)")
        check_layout(spec)
        return _CREATE.get(spec.layout, _plain)(spec)

    def pointer(self, array: Any) -> int | None:
        if not hasattr(array, "ctypes"):  # a scalar: its memory is made when it is asked for
            return None
        return int(array.__array_interface__["data"][0])

    def to_numpy(self, array: Any) -> Any:
        copy = array.copy()
        bits = EXTENDED.get(copy.dtype.name)  # of ml_dtypes
        return copy if bits is None else copy.view(bits)

    def dtype(self, array: Any) -> str:
        return str(array.dtype.name)

    def writable(self, array: Any) -> bool | None:
        return bool(array.flags.writeable)

    def write(self, array: Any, value: int) -> Any:
        if not array.flags.writeable:
            return NotImplemented
        array[...] = value
        return None

    def idioms(self, device: str, dtype: str) -> Mapping[str, str]:
        return HOST_ARRAY

    def use(self, device: str) -> str:
        return "numpy.add({x}, 1)"


def values(elements: int, spec: ArraySpec) -> str:
    """Source text of ``elements`` values of the pattern, one-dimensional."""
    pattern = numbers(spec)
    # One period, repeated: a large array costs little more than its memory. Of very many periods
    # NumPy makes a list first.
    period = (
        f"((numpy.arange({pattern.modulus}) + {pattern.offset!r}){pattern.times})"
        f".astype('{spec.dtype}')"
    )
    if elements > MANY:
        period = f"numpy.resize({period}, {pattern.modulus * PERIODS})"
    return f"numpy.resize({period}, {elements})"


def _plain(spec: ArraySpec) -> str:
    return laid_out(spec, values)


def _aligned(spec: ArraySpec) -> str:
    # NumPy's own allocator promises 16 bytes only. At no multiple of 128: what is seen of such an
    # array is then known to need 64 bytes and no more.
    return (
        f"memory = numpy.empty({spec.size_bytes} + 128, dtype='uint8')\n"
        f"x = memory[(64 - memory.ctypes.data) % 128:][:{spec.size_bytes}]"
        f".view('{spec.dtype}').reshape({spec.shape})\n"
        f"x[...] = {values(spec.elements, spec)}.reshape({spec.shape})"
    )


def _fortran(spec: ArraySpec) -> str:
    return f"{_plain(spec)}\nx = numpy.asfortranarray(x).reshape({spec.shape}, order='F')"


def _sliced(spec: ArraySpec) -> str:
    # The memory is aligned first, so that one element in is always off a 64-byte boundary.
    size = spec.size_bytes
    item = max(size // max(spec.elements, 1), 1)
    return (
        f"memory = numpy.empty({size} + 128, dtype='uint8')\n"
        f"x = memory[-memory.ctypes.data % 64 + {item}:][:{size}]"
        f".view('{spec.dtype}').reshape({spec.shape})\n"
        f"x[...] = {values(spec.elements + 1, spec)}[1:].reshape({spec.shape})"
    )


def _broadcast(spec: ArraySpec) -> str:
    return f"x = numpy.broadcast_to({row_of(spec, values)}, {spec.shape})"


def _readonly(spec: ArraySpec) -> str:
    return f"{_plain(spec)}\nx.flags.writeable = False"


_CREATE = {
    "aligned": _aligned,
    "F": _fortran,
    "sliced": _sliced,
    "broadcast": _broadcast,
    "readonly": _readonly,
}
