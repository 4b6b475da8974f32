"""MLX: lazy arrays on the host, which are computed when they are read or evaluated.

On Linux, ``pip install 'mlx[cpu]'``. Its arrays on Metal and on CUDA are left out: they were never
measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dlprof.probes import capsule
from dlprof.probes.base import (
    ARRAY,
    BITS,
    CAPSULE,
    DLPACK,
    DTYPES,
    INTEGERS,
    NUMPY,
    ArraySpec,
    Export,
    Import,
    copies,
    laid_out,
    one_row,
    views,
)
from dlprof.probes.numpy import HostArrays, bfloat16_bits, values


class MLX(HostArrays):
    name = "mlx"
    module = "mlx"
    distributions = ("mlx",)
    also = ("mlx-cpu",)
    requirement = "mlx[cpu]"
    setup = "import numpy\nimport mlx.core as mx\nmx.set_default_device(mx.cpu)"
    dtypes = ("bool", *INTEGERS, "float16", "bfloat16", "float32", "float64", "complex64")
    missing = {"readonly": "MLX has no read-only arrays"}
    array_type = "mlx.core.array"
    host_text = "numpy.array({x}, copy=False)"
    facts = {"shape": "{x}.shape", "dtype": "str({x}.dtype).rpartition('.')[2]"}
    settings = {"default device": "str(mx.default_device())"}
    narrows = {"float64": "float32", "complex128": "complex64"}
    narrows_why = "MLX makes float32 of float64; mx.array(x, dtype=mx.float64) keeps it on the CPU."
    exports = (
        Export("dlpack", DLPACK, "{x}"),
        Export("dlpack_capsule", CAPSULE, "{x}.__dlpack__()"),
        Export("array", ARRAY, "{x}"),
        Export("numpy", NUMPY, "numpy.array({x})", promise="copy"),
        Export("numpy_nocopy", NUMPY, "numpy.array({x}, copy=False)", promise="view"),
    )
    imports = (
        Import("from_dlpack", (DLPACK,), "mx.from_dlpack({x})"),
        copies("from_dlpack_copy", (DLPACK,), "mx.from_dlpack({x}, copy=True)"),
        views("from_dlpack_nocopy", (DLPACK,), "mx.from_dlpack({x}, copy=False)"),
        copies("array", (ARRAY, DLPACK), "mx.array({x})"),
        Import("asarray", (ARRAY, DLPACK), "mx.asarray({x})"),
    )

    def create(self, spec: ArraySpec) -> str:
        self.check_spec(spec)
        if spec.layout in ("aligned", "sliced"):
            text = _placed(spec)
        elif spec.layout == "broadcast":
            text = f"x = mx.broadcast_to({one_row(spec, _values)}, {spec.shape})"
        else:
            text = laid_out(spec, _values)
        text += "\nx = mx.contiguous(x.transpose()).transpose()" if spec.layout == "F" else ""
        return f"{text}\nmx.eval(x)"

    def pointer(self, array: Any) -> int | None:
        try:
            found = capsule.read(array.__dlpack__())
        except TypeError:  # MLX 0.30 gives out no bfloat16
            return None
        return found.address or None if found and array.size else None

    def to_numpy(self, array: Any) -> Any:
        import mlx.core as mx
        import numpy as np

        bits = BITS.get(str(self.dtype(array)))
        return np.array(array if bits is None else mx.contiguous(array).view(getattr(mx, bits)))

    def host_array(self, array: Any) -> Any:
        import numpy as np

        return np.array(array, copy=False)  # an assignment to the array itself takes other memory

    def writable(self, array: Any) -> bool | None:
        return True

    def wait(self, device: str) -> str:
        return "mx.eval({x})"

    def use(self, device: str) -> str:
        return "mx.add({x}, 1)"

    def idioms(self, device: str, dtype: str) -> Mapping[str, str]:
        if dtype in BITS:  # NumPy takes the buffer of no other dtype
            return {**self.facts, "values": "numpy.array({x}.astype(mx.float32))"}
        return super().idioms(device, dtype)

    def enqueue(self, spec: ArraySpec) -> str | None:
        return _ENQUEUE


def _values(elements: int, spec: ArraySpec) -> str:
    if spec.dtype == "bfloat16":
        bits = bfloat16_bits(replace(spec, shape=(elements,)))
        return f"mx.array({bits}).view(mx.bfloat16)"
    return f"mx.array({values(elements, spec)}, dtype={_dtype(spec.dtype)})"


def _dtype(name: str) -> str:
    return "mx.bool_" if name == "bool" else f"mx.{name}"


def _placed(spec: ArraySpec) -> str:
    """Return source text for the layouts ``aligned`` and ``sliced``: MLX promises 8 bytes only."""
    item, first = DTYPES[spec.dtype], int(spec.layout == "sliced")
    word = BITS.get(spec.dtype, spec.dtype)
    wide = replace(spec, shape=(spec.elements + first,))
    content = bfloat16_bits(wide) if spec.dtype in BITS else values(wide.elements, wide)
    return (
        f"memory = mx.zeros({spec.elements + 192 // item}, dtype={_dtype(word)})\n"
        "mx.eval(memory)\n"
        "host = numpy.array(memory, copy=False)\n"
        f"begin = (64 - host.ctypes.data) % 128 // {item} + {first}\n"
        f"host[begin:begin + {spec.elements}] = {content}[{first}:]\n"
        f"x = memory[begin:begin + {spec.elements}].view({_dtype(spec.dtype)})\n"
        f"x = x.reshape({spec.shape})"
    )


# The load stays within 1, which MLX does not know, so y has to wait for it. MLX computes it in a
# thread of its own.
_ENQUEUE = """\
mlx_load = mx.arange(131072.0)
for _ in range(work):
    mlx_load = mx.cos(mlx_load)
y = mx.where(mlx_load[0] > 4, mx.zeros_like(x), x)
mx.async_eval(y)
"""
