"""Numba: NumPy arrays on memory of Numba's own runtime; device arrays of numba.cuda.

On the host a compiled function takes and gives plain NumPy arrays. So the measurement there covers
the way through an argument and back. On CUDA the arrays are ``DeviceNDArray``; they speak the
CUDA Array Interface and no DLPack.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from typing import Any

from dlprof.probes.base import (
    ANY_DEVICE,
    ARRAY,
    BITS,
    CPU,
    CUDA,
    CUDA_ARRAY,
    DLPACK,
    NUMPY,
    PINNED,
    ArraySpec,
    Export,
    Import,
    Probe,
    Unsupported,
    Use,
    one_row,
    wide_shape,
)
from dlprof.probes.numpy import NumPy, placed, shaped, values

_SETUP = """\
import numba
import numpy
@numba.njit
def own(x): return x.copy()
@numba.njit
def plus_one(x): return x + 1
"""

_TAKE = """\
@numba.njit
def take(x): return x
"""

# numba.cuda imports without a GPU, and jit compiles at the first launch only.
_CUDA_SETUP = """\
import numba.cuda
@numba.cuda.jit
def kernel(x): pass
"""
_cuda = functools.partial(Import, setup=_CUDA_SETUP)
_INCREASE = """\
@numba.cuda.jit
def increase(x, work):
    for _ in range(work): numba.cuda.nanosleep(500_000)
    for i in range(numba.cuda.grid(1), x.size, numba.cuda.gridsize(1)): x[i] += 1
"""

# A stencil of image processing: each pixel becomes the weighted sum of its neighbors.
_STENCIL = """\
@numba.njit
def stencil(image, weights, output):
    for row in range(1, image.shape[0] - 1):
        for column in range(1, image.shape[1] - 1):
            total = image[row, column] * 0
            for i in range(3):
                for j in range(3):
                    total += weights[i, j] * image[row + i - 1, column + j - 1]
            output[row, column] = total
"""

# The first of numba.cuda.grid's indices runs fastest, as a row's columns do in memory.
_CUDA_STENCIL = """\
from numba import cuda
@cuda.jit
def stencil(image, weights, output):
    column, row = cuda.grid(2)
    if 0 < row < image.shape[0] - 1 and 0 < column < image.shape[1] - 1:
        total = image[row, column] * 0
        for i in range(3):
            for j in range(3):
                total += weights[i, j] * image[row + i - 1, column + j - 1]
        output[row, column] = total
"""
_BLOCK = 16
"""Threads of a block along each axis."""
_IMAGE_AXES = 2
_NOT_ADDED = ("bool", "float16")

# Numba warns of low occupancy for any grid of fewer than 128 blocks.
_LAUNCH = "kernel[128, 32]({x})"


class Numba(Probe):
    name = "numba"
    module = "numba"
    distributions = ("numba",)
    also = ("numba-cuda",)
    setup = _SETUP
    devices = ANY_DEVICE
    flags = (PINNED,)
    array_type = "numba.cuda.cudadrv.devicearray.DeviceNDArray"
    exports = (
        Export("dlpack", DLPACK, "{x}", CPU),
        Export("array", ARRAY, "{x}", CPU),
        Export("ndarray", NUMPY, "{x}", CPU),
        Export("cuda_array", CUDA_ARRAY, "{x}", CUDA),
        Export("copy_to_host", NUMPY, "{x}.copy_to_host()", CUDA, "copy"),
    )
    imports = (
        Import("argument", (NUMPY, ARRAY), "take({x})", CPU, setup=_TAKE),
        _cuda("as_cuda_array", (CUDA_ARRAY,), "numba.cuda.as_cuda_array({x})", CUDA, "view"),
        _cuda(
            "as_cuda_array_nosync",
            (CUDA_ARRAY,),
            "numba.cuda.as_cuda_array({x}, sync=False)",
            CUDA,
            "view",
        ),
        _cuda(
            "to_device", (NUMPY,), "numba.cuda.to_device({x})", promise="copy", result_device="cuda"
        ),
        # An empty kernel: only its argument and the launch take time.
        _cuda("kernel", (CUDA_ARRAY, DLPACK), _LAUNCH, CUDA, returns_array=False),
        _cuda("kernel_numpy", (NUMPY,), _LAUNCH, result_device="cuda", returns_array=False),
    )

    def create(self, spec: ArraySpec) -> str:
        if spec.dtype in BITS:
            raise Unsupported(f"Numba's arrays are described by NumPy, which has no {spec.dtype}")
        self.check_spec(spec)
        if spec.device == "cuda":
            return "import numba.cuda\n" + _on_device(spec)
        if spec.dtype == "float16":
            raise Unsupported("Numba compiles no float16 for the CPU")
        return _on_host(spec)

    def ready(self, device: str) -> None:
        if device == "cuda":
            import numba.cuda

            numba.cuda.current_context()

    def pointer(self, array: Any) -> int | None:
        return int(_interface(array)["data"][0]) or None

    def to_numpy(self, array: Any) -> Any:
        if self.device(array) == "cpu":
            return array.copy()
        import numba.cuda

        host = array.copy_to_host()
        numba.cuda.synchronize()  # an array bound to a stream is copied asynchronously
        return host

    def device(self, array: Any) -> str:
        return "cuda" if hasattr(array, "__cuda_array_interface__") else "cpu"

    def writable(self, array: Any) -> bool | None:
        return not _interface(array)["data"][1]

    def wait(self, device: str) -> str:
        return "numba.cuda.default_stream().synchronize()" if device == "cuda" else ""

    def write(self, array: Any, value: int) -> Any:
        if not self.writable(array):
            return NotImplemented
        array[()] = value  # device arrays take no Ellipsis
        if self.device(array) == "cuda":
            import numba.cuda

            numba.cuda.synchronize()
        return None

    def use(self, device: str) -> str:
        return _LAUNCH if device == "cuda" else "plus_one({x})"

    def idioms(self, device: str, dtype: str) -> Mapping[str, str]:
        if device == "cpu":
            return NumPy().idioms(device, dtype)
        return {
            "values": "{x}.copy_to_host()",
            "address": "{x}.__cuda_array_interface__['data'][0]",
            "shape": "{x}.shape",
            "dtype": "{x}.dtype.name",
            "write": "{x}[()] = 1\nnumba.cuda.synchronize()",
        }

    def use_many(self, spec: ArraySpec) -> Use | None:
        if len(spec.shape) != _IMAGE_AXES or spec.dtype in _NOT_ADDED:
            return None
        shapes = {"weights": (3, 3), "output": spec.shape}
        if spec.device == "cpu":
            return Use("stencil({x}, {weights}, {output})", shapes, _STENCIL)
        rows, columns = (max(1, -(-length // _BLOCK)) for length in spec.shape)
        launch = f"stencil[({columns}, {rows}), ({_BLOCK}, {_BLOCK})]"
        return Use(f"{launch}({{x}}, {{weights}}, {{output}})", shapes, _CUDA_STENCIL)

    def queue_setup(self, spec: ArraySpec) -> str:
        # Numba asks the driver for memory each time, and the driver may wait for queued work.
        allocation = "increased = numba.cuda.device_array_like(x)\n"
        return _INCREASE + allocation if spec.device == "cuda" else ""

    def enqueue(self, spec: ArraySpec) -> str | None:
        if spec.device != "cuda":
            return None  # compiled functions have run when they return
        return "y = increased\ny.copy_to_device(x)\nincrease[1024, 256](y.ravel(order='A'), work)"

    def give_back(self, device: str) -> None:
        if device == "cuda":
            import numba.cuda

            # Those of the context are streams, events and modules.
            numba.cuda.current_context().memory_manager.deallocations.clear()

    def on_device(self, ordinal: int) -> Any:
        import numba.cuda

        return numba.cuda.gpus[ordinal]

    def current_stream(self, device: str) -> int | None:
        if device != "cuda":
            return None
        import numba.cuda

        # These turn Numba's handle 0 into the per-thread default stream, which is 2: the first in
        # numba.cuda, the second where numba-cuda is built on CUDA's own bindings.
        for name in ("NUMBA", "CUDA_PYTHON"):
            if os.environ.get(f"{name}_CUDA_PER_THREAD_DEFAULT_STREAM") not in (None, "", "0"):
                return 2
        handle = numba.cuda.default_stream().handle
        # numba.cuda has a c_void_p, numba-cuda on CUDA's own bindings a number.
        return int(getattr(handle, "value", handle) or 0)


def _interface(array: Any) -> Any:
    if hasattr(array, "__cuda_array_interface__"):
        return array.__cuda_array_interface__
    return array.__array_interface__


def _on_host(spec: ArraySpec) -> str:
    if spec.layout == PINNED:
        return (
            "import numba.cuda\n"
            f"x = numba.cuda.pinned_array({spec.shape}, dtype='{spec.dtype}')\n"
            f"x[...] = {values(spec.elements, spec)}.reshape({spec.shape})"
        )
    if spec.layout in ("aligned", "sliced"):  # Numba's runtime promises 32 bytes only
        return placed(spec, "own(numpy.empty({size}, dtype='uint8'))")
    if spec.layout == "F":
        in_memory = f"{values(spec.elements, spec)}.reshape({spec.shape}).ravel(order='F')"
        return f"x = {_own(in_memory, spec)}.reshape({spec.shape}, order='F')"
    return shaped(spec, lambda elements, spec: _own(values(elements, spec), spec))


def _own(array: str, spec: ArraySpec) -> str:
    """Return a copy in memory of Numba's runtime.

    It is copied as bytes: compiling ``own`` for each dtype takes longer than a survey of it.
    """
    return f"own({array}.view('uint8')).view('{spec.dtype}')"


def _on_device(spec: ArraySpec) -> str:
    if spec.layout == "readonly":
        raise Unsupported("Numba has no read-only device arrays")
    whole, index = f"{values(spec.elements, spec)}.reshape({spec.shape})", ""
    match spec.layout:
        case "F":
            whole = f"numpy.asfortranarray({whole}).reshape({spec.shape}, order='F')"
        case "strided":
            whole = f"{values(2 * spec.elements, spec)}.reshape({wide_shape(spec)})"
            index = f"[{', '.join([':'] * (len(spec.shape) - 1) + ['::2'])}]"
        case "sliced":
            whole, index = values(spec.elements + 1, spec), f"[1:].reshape({spec.shape})"
        case "reversed":
            index = "[::-1]"
        case "broadcast":
            whole = f"numpy.broadcast_to({one_row(spec, values)}, {spec.shape})"
    # The driver allocates at multiples of 256 bytes: every other layout is aligned.
    return f"x = numba.cuda.to_device({whole}){index}"
