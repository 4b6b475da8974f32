"""Apache Arrow: an array for one axis, which is immutable, and a tensor for any other number."""

from __future__ import annotations

from typing import Any

from dlprof.probes.base import (
    ARRAY,
    DLPACK,
    NATIVE,
    NUMPY,
    ArraySpec,
    Export,
    Import,
    Unsupported,
    copies,
    views,
    without_strides,
)
from dlprof.probes.numpy import HostArrays, NumPy

_DTYPES = {
    **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "bool": "bool",
    "halffloat": "float16",
    "float": "float32",
    "double": "float64",
}
"""NumPy's names by Arrow's."""
_NO_ARRAY = without_strides(
    "an Arrow array has no strides", readonly="an Arrow array is never writable; use layout C"
)
_NO_TENSOR = {"reversed": "an Arrow tensor has no negative strides"}


class PyArrow(HostArrays):
    name = "pyarrow"
    aliases = ("arrow",)
    module = "pyarrow"
    distributions = ("pyarrow",)
    setup = "import numpy\nimport pyarrow"
    host_text = "numpy.asarray({x})"  # of arrays and tensors alike
    exports = (
        Export("dlpack", DLPACK, "{x}"),
        Export("array", ARRAY, "{x}"),
        Export("to_numpy", NUMPY, "{x}.to_numpy()", promise="view"),
        Export("to_numpy_any", NUMPY, "{x}.to_numpy(zero_copy_only=False)"),
        Export("itself", NATIVE, "{x}"),
    )
    imports = (
        Import("tensor_from_dlpack", (DLPACK,), "pyarrow.Tensor.from_dlpack({x})"),
        copies("tensor_copy", (DLPACK,), "pyarrow.Tensor.from_dlpack({x}, copy=True)"),
        views("tensor_nocopy", (DLPACK,), "pyarrow.Tensor.from_dlpack({x}, copy=False)"),
        Import("array_from_dlpack", (DLPACK,), "pyarrow.Array.from_dlpack({x})"),
        views("tensor_from_numpy", (NUMPY,), "pyarrow.Tensor.from_numpy({x})"),
        Import("array", (NUMPY, ARRAY), "pyarrow.array({x})"),
        Import("to_arrow", (NATIVE,), "{x}.to_arrow()", producers=("polars",)),
    )

    def create(self, spec: ArraySpec) -> str:
        is_array = len(spec.shape) == 1
        if spec.dtype not in _DTYPES.values() or (spec.dtype == "bool" and not is_array):
            kind = "arrays" if is_array else "tensors"
            raise Unsupported(f"pyarrow makes no {kind} of dtype {spec.dtype} of a NumPy array")
        missing = _NO_ARRAY if is_array else _NO_TENSOR
        if spec.layout in missing:
            raise Unsupported(missing[spec.layout])
        made = "pyarrow.array(x)" if is_array else "pyarrow.Tensor.from_numpy(x)"
        return f"{NumPy().create(spec)}\nx = {made}"

    def host_array(self, array: Any) -> Any:
        return array.to_numpy() if _is_tensor(array) else array.to_numpy(zero_copy_only=False)

    def pointer(self, array: Any) -> int | None:
        if _is_tensor(array):
            return super().pointer(array)
        data = array.buffers()[1]
        return (data.address + array.offset * array.type.bit_width // 8) or None

    def shape(self, array: Any) -> tuple[int, ...]:
        return tuple(array.shape) if _is_tensor(array) else (len(array),)

    def dtype(self, array: Any) -> str:
        return _DTYPES.get(str(array.type), str(array.type))

    def writable(self, array: Any) -> bool | None:
        return _is_tensor(array) and bool(array.is_mutable)


def _is_tensor(array: Any) -> bool:
    return hasattr(array, "is_mutable")
