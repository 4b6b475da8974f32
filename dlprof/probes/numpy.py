"""NumPy: host arrays in every layout."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from dlprof.probes.base import (
    ANY_DEVICE,
    ARRAY,
    BITS,
    BUFFER,
    CUDA,
    DLPACK,
    DTYPES,
    HOST_MEMORY,
    LIST,
    NATIVE,
    NUMPY,
    ArraySpec,
    Export,
    Import,
    Probe,
    Unsupported,
    copies,
    corners,
    laid_out,
    numbers,
    one_row,
    tiled,
    views,
)


class HostArrays(Probe):
    """Arrays on the host whose memory NumPy can view."""

    host_text: ClassVar[str] = "{x}"
    """Source text of the view, for a script without dlprof."""
    facts: ClassVar[Mapping[str, str]] = {}
    """Idioms that need no view."""

    def host_array(self, array: Any) -> Any:
        """Return a NumPy array on the memory of ``array``."""
        return array

    def pointer(self, array: Any) -> int | None:
        return int(self.host_array(array).ctypes.data) or None

    def to_numpy(self, array: Any) -> Any:
        copy = self.host_array(array).copy()
        bits = BITS.get(copy.dtype.name)  # of ml_dtypes
        return copy if bits is None else copy.view(bits)

    def writable(self, array: Any) -> bool | None:
        return not self.immutable and bool(self.host_array(array).flags.writeable)

    def write(self, array: Any, value: int) -> Any:
        if not self.writable(array):
            return NotImplemented
        self.host_array(array)[...] = value
        return None

    def idioms(self, device: str, dtype: str) -> Mapping[str, str]:
        host = self.host_text.replace("{dtype}", dtype)
        found = {
            "values": f"{host}.copy()",
            "address": f"{host}.ctypes.data",
            "shape": f"{host}.shape",
            "dtype": f"{host}.dtype.name",
            "writable": "False" if self.immutable else f"{host}.flags.writeable",
            **self.facts,
        }
        return found if self.immutable else {**found, "write": f"{host}[...] = 1"}


class NumPy(HostArrays):
    name = "numpy"
    aliases: ClassVar[tuple[str, ...]] = ("np",)
    module = "numpy"
    distributions = ("numpy",)
    setup = "import numpy"
    flags: ClassVar[tuple[str, ...]] = (
        *("swapped", "masked", "unaligned", "structured", "datetime", "number"),
    )
    array_type = "numpy.ndarray"
    settings = {
        "handling of float errors": "numpy.geterr()",
        "size of buffers": "numpy.getbufsize()",
        "print options": "numpy.get_printoptions()",
        "global random state": "[hash(one.tobytes()) if hasattr(one, 'tobytes') else one"
        " for one in numpy.random.get_state()]",
    }
    exports: ClassVar[tuple[Export, ...]] = (
        Export("dlpack", DLPACK, "{x}"),
        Export("array", ARRAY, "{x}"),
        Export("ndarray", NUMPY, "{x}"),
        Export("buffer", BUFFER, "{x}"),
    )
    imports: ClassVar[tuple[Import, ...]] = (
        Import("from_dlpack", (DLPACK,), "numpy.from_dlpack({x})"),
        copies("from_dlpack_copy", (DLPACK,), "numpy.from_dlpack({x}, copy=True)", ANY_DEVICE),
        views("from_dlpack_nocopy", (DLPACK,), "numpy.from_dlpack({x}, copy=False)"),
        Import("from_dlpack_to_cpu", (DLPACK,), "numpy.from_dlpack({x}, device='cpu')", ANY_DEVICE),
        Import("asarray", (ARRAY,), "numpy.asarray({x})"),
        views("asarray_nocopy", (ARRAY,), "numpy.asarray({x}, copy=False)"),
        copies("asarray_copy", (ARRAY,), "numpy.asarray({x}, copy=True)"),
        copies("array", (ARRAY,), "numpy.array({x})"),
        # From NumPy 2 on never a copy; before, a copy where one is needed.
        Import("array_nocopy", (ARRAY,), "numpy.array({x}, copy=False)"),
        copies("array_list", (NATIVE,), "numpy.array({x})", producers=LIST),
        copies("asarray_list", (NATIVE,), "numpy.asarray({x})", producers=LIST),
        Import("ndarray", (NUMPY,), "{x}", ANY_DEVICE),
        views(
            "ndarray_buffer",
            (BUFFER,),
            "numpy.ndarray({shape}, dtype='{dtype}', buffer={x})",
            producers=HOST_MEMORY,
        ),
        copies(
            "get_pinned",
            (NATIVE,),
            "{x}.get(out=cupyx.empty_pinned({shape}, '{dtype}'))",
            CUDA,
            producers=("cupy",),
            setup="import cupyx",
        ),
    )

    def create(self, spec: ArraySpec) -> str:
        if spec.dtype in BITS:
            raise Unsupported(f"NumPy has no dtype {spec.dtype} (ml_dtypes adds it)")
        self.check_spec(spec)
        if spec.layout == "number" and spec.shape:
            raise Unsupported("a scalar object has no axes: it needs --shape scalar")
        if spec.layout in ("aligned", "sliced"):
            return placed(spec)
        if spec.corners or spec.layout in self.flags:
            return on_aligned_memory(spec)
        if spec.layout == "F":
            fortran = f"numpy.asfortranarray(x).reshape({spec.shape}, order='F')"
            return f"{laid_out(spec, values)}\nx = {fortran}"
        return shaped(spec, values)

    def pointer(self, array: Any) -> int | None:
        if not hasattr(array, "ctypes"):  # a scalar: its memory is made when it is asked for
            return None
        return int(array.__array_interface__["data"][0])

    def properties(self, array: Any) -> tuple[str, ...]:
        import numpy as np

        return ("mask",) if np.ma.getmask(array) is not np.ma.nomask else ()

    def use(self, device: str) -> str:
        return "numpy.add({x}, 1)"


def shaped(spec: ArraySpec, part: Callable[[int, ArraySpec], str]) -> str:
    """Do as :func:`laid_out`, also for the layouts ``broadcast`` and ``readonly``."""
    if spec.layout == "broadcast":
        return f"x = numpy.broadcast_to({one_row(spec, part)}, {spec.shape})"
    locked = "\nx.flags.writeable = False" if spec.layout == "readonly" else ""
    return laid_out(spec, part) + locked


def on_aligned_memory(spec: ArraySpec) -> str:
    """Return source text of an array on memory that begins at an odd multiple of 64 bytes.

    NumPy's own small arrays begin anywhere, and the address can decide between view and copy.
    """
    flat = replace(spec, shape=(2 * spec.elements + 1,), layout="aligned")
    text = f"{placed(flat)}\nflat = x\n"

    def part(elements: int, _: ArraySpec) -> str:
        return f"flat[:{elements}]"

    if spec.layout == "F":
        return f"{text}x = flat[:{spec.elements}].reshape({spec.shape}, order='F')"
    text += shaped(spec, part)
    flagged = FLAGGED.get(spec.layout, "")
    return text + flagged.format(dtype=spec.dtype, elements=spec.elements, shape=spec.shape)


FLAGGED = {
    "swapped": "\nx = x.byteswap(inplace=True).view(x.dtype.newbyteorder())",
    "masked": "\nx = numpy.ma.array(x, mask=numpy.arange({elements}).reshape({shape}) % 3 == 0,"
    " copy=False)",
    "unaligned": "\nmemory = numpy.empty(x.nbytes + 1, 'uint8')"
    "\nmemory[1:] = x.reshape(-1).view('uint8')"
    "\nx = memory[1:].view('{dtype}').reshape({shape})",
    "structured": "\nx = x.view([('value', '{dtype}')])",
    "datetime": "\nx = x.view('datetime64[ms]')",
    "number": "\nx = x[()]",
}


def values(elements: int, spec: ArraySpec) -> str:
    """Return source text of ``elements`` values, one-dimensional."""
    if spec.corners:
        return f"{corners(spec.dtype).text(elements)}.view('{spec.dtype}')"
    pattern = numbers(spec)
    length = min(elements, pattern.modulus)
    period = f"({pattern.text(f'numpy.arange({length})', length)}).astype('{spec.dtype}')"
    return period if length == elements else tiled(period, length, elements)


def memory_at(address: int, shape: tuple[int, ...], strides: Any, dtype: str) -> Any:
    """Return a writable array on the memory at ``address``; ``strides`` in elements, None for C.

    For a dtype that NumPy lacks: its bits as unsigned integers.
    """
    import numpy as np

    word = np.dtype(BITS.get(dtype, dtype))
    if 0 in shape:
        return np.empty(shape, word)
    interface = {
        "version": 3,
        "shape": shape,
        "typestr": word.str,
        "data": (address, False),
        "strides": None if strides is None else tuple(word.itemsize * step for step in strides),
    }
    return np.asarray(type("Memory", (), {"__array_interface__": interface})())


def bfloat16_bits(spec: ArraySpec) -> str:
    """Return source text of the values of a bfloat16 array, as unsigned integers of 16 bits."""
    if spec.corners:
        return corners(spec.dtype).text(spec.elements)
    pattern = numbers(spec)
    floats = f"({pattern.text(f'numpy.arange({pattern.modulus})', 0)}).astype('float32')"
    period = f"({floats}.view('uint32') >> 16).astype('uint16')"
    return tiled(period, pattern.modulus, spec.elements)


def placed(spec: ArraySpec, allocate: str = "numpy.empty({size}, dtype='uint8')") -> str:
    """Return source text for the layouts ``aligned`` and ``sliced``.

    The array begins at an odd multiple of 64 bytes, or one element further. NumPy's allocator
    promises 16 bytes only. A view of an odd multiple needs 64 bytes and no more.
    """
    size = spec.size_bytes
    further, content = "", values(spec.elements, spec)
    if spec.layout == "sliced":
        further, content = f" + {DTYPES[spec.dtype]}", f"{values(spec.elements + 1, spec)}[1:]"
    return (
        f"memory = {allocate.format(size=size + 192)}\n"
        f"x = memory[(64 - memory.ctypes.data) % 128{further}:][:{size}]"
        f".view('{spec.dtype}').reshape({spec.shape})\n"
        f"x[...] = {content}.reshape({spec.shape})"
    )
