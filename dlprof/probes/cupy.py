"""CuPy: arrays on CUDA devices, and NumPy arrays on page-locked memory (the layout ``pinned``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dlprof.probes.base import (
    ANY_DEVICE,
    ARRAY,
    CAPSULE,
    CPU,
    CUDA,
    CUDA_ARRAY,
    DLPACK,
    DTYPES,
    FLOAT8,
    NATIVE,
    NUMPY,
    PINNED,
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
    views,
)
from dlprof.probes.numpy import NumPy

_SLEEP = (
    "cupy_sleep = cupy.RawKernel("
    "'extern \"C\" __global__ void s(long n) {while (n--) __nanosleep(1000);}', 's')"
)
"""A kernel that takes about a microsecond for each of ``n``."""
_PINNED = "import cupyx\nmemory = cupyx.empty_pinned(x.shape, x.dtype)\nmemory[...] = x\nx = memory"


class CuPy(Probe):
    name = "cupy"
    aliases = ("cp",)
    module = "cupy"
    distributions = ("cupy", "cupy-cuda12x", "cupy-cuda13x", "cupy-cuda11x")
    requirement = "cupy-cuda12x"
    setup = "import cupy"
    devices = CUDA
    flags = (PINNED,)
    dtypes = frozenset(DTYPES) - frozenset(FLOAT8)
    missing = {"readonly": "CuPy has no read-only arrays"}
    array_type = "cupy.ndarray"
    exports = (
        Export("dlpack", DLPACK, "{x}", ANY_DEVICE),
        Export("array", ARRAY, "{x}", CPU),
        Export("ndarray", NUMPY, "{x}", CPU),
        Export("toDlpack", CAPSULE, "{x}.toDlpack()", promise="view"),
        Export("cuda_array", CUDA_ARRAY, "{x}"),
        Export("asnumpy", NUMPY, "cupy.asnumpy({x})"),
        Export("get", NUMPY, "{x}.get()", promise="copy"),
        Export("itself", NATIVE, "{x}"),
    )
    imports = (
        Import("from_dlpack", (DLPACK, CAPSULE), "cupy.from_dlpack({x})", ANY_DEVICE),
        copies("from_dlpack_copy", (DLPACK,), "cupy.from_dlpack({x}, copy=True)"),
        views("from_dlpack_nocopy", (DLPACK,), "cupy.from_dlpack({x}, copy=False)"),
        views("fromDlpack", (CAPSULE,), "cupy.fromDlpack({x})"),
        Import("asarray", (CUDA_ARRAY, ARRAY, NUMPY), "cupy.asarray({x})", ANY_DEVICE),
        Import("asarray_blocking", (ARRAY, NUMPY), "cupy.asarray({x}, blocking=True)", ANY_DEVICE),
        copies("asarray_copy", (CUDA_ARRAY,), "cupy.asarray({x}, copy=True)"),
        views("asarray_nocopy", (CUDA_ARRAY,), "cupy.asarray({x}, copy=False)"),
        copies("array", (CUDA_ARRAY, ARRAY, NUMPY), "cupy.array({x})", ANY_DEVICE),
        Import(
            "array_nocopy", (CUDA_ARRAY, ARRAY, NUMPY), "cupy.array({x}, copy=False)", ANY_DEVICE
        ),
    )

    def create(self, spec: ArraySpec) -> str:
        self.check_spec(spec)
        if spec.layout == PINNED:
            return f"import numpy\n{NumPy().create(replace(spec, layout='C'))}\n{_PINNED}"
        if spec.device != "cuda":
            raise Unsupported("CuPy's arrays on the host have the layout pinned only")
        # CuPy knows bfloat16 by the NumPy dtype that ml_dtypes registers.
        imports = "import ml_dtypes\n" if spec.dtype == "bfloat16" else ""
        if spec.layout == "broadcast":
            return f"{imports}x = cupy.broadcast_to({one_row(spec, values)}, {spec.shape})"
        plain = imports + laid_out(spec, values)  # CuPy's pool allocates at multiples of 512 bytes
        if spec.layout == "F":
            return f"{plain}\nx = cupy.asfortranarray(x).reshape({spec.shape}, order='F')"
        return plain

    def ready(self, device: str) -> None:
        import cupy

        cupy.cuda.Device().use()

    def pointer(self, array: Any) -> int | None:
        return int(array.data.ptr if _on_device(array) else array.ctypes.data) or None

    def to_numpy(self, array: Any) -> Any:
        if self.dtype(array) == "bfloat16":
            array = array.view("uint16")
        return array.get() if _on_device(array) else array

    def device(self, array: Any) -> str:
        return "cuda" if _on_device(array) else "cpu"

    def wait(self, device: str) -> str:
        return "cupy.cuda.get_current_stream().synchronize()" if device == "cuda" else ""

    def write(self, array: Any, value: int) -> Any:
        import cupy

        array[...] = value
        cupy.cuda.get_current_stream().synchronize()

    def use(self, device: str) -> str:
        return "cupy.add({x}, 1)" if device == "cuda" else NumPy().use(device)

    def idioms(self, device: str, dtype: str) -> Mapping[str, str]:
        if device == "cpu":
            return NumPy().idioms(device, dtype)
        return {
            # Numbers, as of other frameworks.
            "values": "{x}.astype('float32').get()" if dtype == "bfloat16" else "{x}.get()",
            "address": "{x}.data.ptr",
            "copy": "{x}.copy()",
            "shape": "{x}.shape",
            "dtype": "{x}.dtype.name",
            "write": "{x}.fill(1)\ncupy.cuda.get_current_stream().synchronize()",
            "own_stream": "cupy.cuda.Stream(non_blocking=True)",
            "memory": "cupy.get_default_memory_pool().used_bytes()",
        }

    def queue_setup(self, spec: ArraySpec) -> str:
        return _SLEEP if spec.device == "cuda" else ""

    def enqueue(self, spec: ArraySpec) -> str | None:
        if spec.device != "cuda":
            return None
        step = "~x" if spec.dtype == "bool" else "x + 1"  # x + 1 would be integers
        # One kernel: no more than about a thousand wait in a queue.
        return f"with x.device:\n    cupy_sleep((1,), (1,), (work * 500,))\n    y = {step}"

    def current_stream(self, device: str) -> int | None:
        import cupy

        return int(cupy.cuda.get_current_stream().ptr)

    def on_device(self, ordinal: int) -> Any:
        import cupy

        return cupy.cuda.Device(ordinal)

    def on_stream(self, handle: int) -> Any:
        import cupy

        if hasattr(cupy.cuda.Stream, "from_external"):
            return cupy.cuda.Stream.from_external(_Handle(handle))
        return cupy.cuda.ExternalStream(handle)  # deprecated since CuPy 14


def _on_device(array: Any) -> bool:
    return hasattr(array, "__cuda_array_interface__")


class _Handle:
    """A stream's handle in the words of the CUDA stream protocol."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._handle


def values(elements: int, spec: ArraySpec) -> str:
    """Return source text of ``elements`` values, one-dimensional, on the device."""
    if spec.corners:
        text = corners(spec.dtype).text(elements)
        return f"cupy.array({text.replace('numpy.', 'cupy.')}).view('{spec.dtype}')"
    pattern = numbers(spec)
    text = pattern.text(f"cupy.arange({elements})", elements)
    return f"({text}).astype('{spec.dtype}')"
