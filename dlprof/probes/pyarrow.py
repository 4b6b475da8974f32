"""Apache Arrow: an array for one axis, which is immutable, and a tensor for any other number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dlprof.probes.base import (
    ARRAY,
    CPU,
    DLPACK,
    NATIVE,
    NUMPY,
    ArraySpec,
    Export,
    Import,
    Probe,
    Unsupported,
    check_layout,
    copies,
    views,
)
from dlprof.probes.numpy import NumPy

_DTYPES = {
    **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "bool": "bool",
    "halffloat": "float16",
    "float": "float32",
    "double": "float64",
}
"""NumPy's names by Arrow's."""
_NO_ARRAY = {
    **dict.fromkeys(("F", "strided", "reversed", "broadcast"), "an Arrow array has no strides"),
    "readonly": "an Arrow array is never writable; use layout C",
}
_NO_TENSOR = {"reversed": "an Arrow tensor has no negative strides"}


class PyArrow(Probe):
    name = "pyarrow"
    aliases = ("arrow",)
    module = "pyarrow"
    distributions = ("pyarrow",)
    setup = "import numpy\nimport pyarrow"
    devices = CPU
    exports = (
        Export("dlpack", DLPACK, "{x}", CPU),
        Export("array", ARRAY, "{x}", CPU),
        Export("to_numpy", NUMPY, "{x}.to_numpy()", CPU, "view"),
        Export("to_numpy_any", NUMPY, "{x}.to_numpy(zero_copy_only=False)", CPU),
        Export("itself", NATIVE, "{x}", CPU),
    )
    imports = (
        Import("tensor_from_dlpack", (DLPACK,), "pyarrow.Tensor.from_dlpack({x})", CPU),
        copies("tensor_copy", (DLPACK,), "pyarrow.Tensor.from_dlpack({x}, copy=True)", CPU),
        views("tensor_nocopy", (DLPACK,), "pyarrow.Tensor.from_dlpack({x}, copy=False)", CPU),
        Import("array_from_dlpack", (DLPACK,), "pyarrow.Array.from_dlpack({x})", CPU),
        views("tensor_from_numpy", (NUMPY,), "pyarrow.Tensor.from_numpy({x})", CPU),
        Import("array", (NUMPY, ARRAY), "pyarrow.array({x})", CPU),
        Import("to_arrow", (NATIVE,), "{x}.to_arrow()", CPU, producers=("polars",)),
    )

    def create(self, spec: ArraySpec) -> str:
        is_array = len(spec.shape) == 1
        if spec.dtype not in _DTYPES.values() or (spec.dtype == "bool" and not is_array):
            kind = "arrays" if is_array else "tensors"
            raise Unsupported(f"pyarrow makes no {kind} of dtype {spec.dtype} of a NumPy array")
        check_layout(spec, _NO_ARRAY if is_array else _NO_TENSOR)
        made = "pyarrow.array(x)" if is_array else "pyarrow.Tensor.from_numpy(x)"
        return f"{NumPy().create(spec)}\nx = {made}"

    def pointer(self, array: Any) -> int | None:
        import numpy as np

        if _is_tensor(array):
            return int(np.asarray(array).ctypes.data) or None
        data = array.buffers()[1]
        return (data.address + array.offset * array.type.bit_width // 8) or None

    def to_numpy(self, array: Any) -> Any:
        host = array.to_numpy() if _is_tensor(array) else array.to_numpy(zero_copy_only=False)
        return host.copy()

    def shape(self, array: Any) -> tuple[int, ...]:
        return tuple(array.shape) if _is_tensor(array) else (len(array),)

    def dtype(self, array: Any) -> str:
        return _DTYPES.get(str(array.type), str(array.type))

    def writable(self, array: Any) -> bool | None:
        return bool(array.is_mutable) if _is_tensor(array) else False

    def write(self, array: Any, value: int) -> Any:
        if not self.writable(array):
            return NotImplemented
        array.to_numpy()[...] = value
        return None

    def use(self, device: str) -> str:
        raise Unsupported("an Arrow tensor has no operations on numbers")

    def idioms(self, device: str, dtype: str) -> Mapping[str, str]:
        # Of arrays and tensors alike: a tensor has the buffer protocol.
        return {
            "values": "numpy.array({x})",
            "address": "numpy.asarray({x}).ctypes.data",
            "shape": "{x}.shape if hasattr({x}, 'strides') else (len({x}),)",
            "dtype": "numpy.asarray({x}).dtype.name",
            "writable": "numpy.asarray({x}).flags.writeable",
            "write": "{x}.to_numpy()[...] = 1",
        }


def _is_tensor(array: Any) -> bool:
    return hasattr(array, "is_mutable")
