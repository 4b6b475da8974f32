"""TVM FFI: tensors on the memory of others, and functions that take any tensor by DLPack's C API.

It allocates nothing by itself, so its arrays are NumPy's memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dlprof.probes.base import (
    CAPSULE,
    CPU,
    DLPACK,
    ArraySpec,
    Export,
    Import,
    Probe,
    Unsupported,
    check_layout,
    views,
)
from dlprof.probes.numpy import NumPy, memory_at


class TvmFfi(Probe):
    name = "tvm-ffi"
    aliases = ("tvm_ffi",)
    module = "tvm_ffi"
    distributions = ("apache-tvm-ffi",)
    setup = "import numpy\nimport tvm_ffi"
    devices = CPU
    exports = (
        Export("dlpack", DLPACK, "{x}", CPU),
        Export("dlpack_capsule", CAPSULE, "{x}.__dlpack__()", CPU),
    )
    imports = (
        views("from_dlpack", (DLPACK, CAPSULE), "tvm_ffi.from_dlpack({x})", CPU),
        Import("convert", (DLPACK,), "tvm_ffi.convert({x})", CPU),
        Import(
            "call",
            (DLPACK,),
            "take({x})",
            CPU,
            setup="take = tvm_ffi.convert_func(lambda x: None)",
            returns_array=False,
        ),
    )

    def create(self, spec: ArraySpec) -> str:
        if spec.dtype.startswith("complex"):
            raise Unsupported(f"tvm-ffi has no dtype {spec.dtype}")
        # NumPy's broadcast arrays are read-only as well.
        refused = "tvm-ffi takes no read-only arrays of NumPy"
        check_layout(spec, {"readonly": refused, "broadcast": refused})
        return f"{NumPy().create(spec)}\nx = tvm_ffi.from_dlpack(x)"

    def pointer(self, array: Any) -> int | None:
        return array.data_ptr() or None

    def to_numpy(self, array: Any) -> Any:
        return self._memory(array).copy()

    def _memory(self, array: Any) -> Any:
        return memory_at(array.data_ptr(), tuple(array.shape), array.strides, str(array.dtype))

    def dtype(self, array: Any) -> str:
        return str(array.dtype)

    def writable(self, array: Any) -> bool | None:
        return True

    def write(self, array: Any, value: int) -> Any:
        self._memory(array)[...] = value

    def use(self, device: str) -> str:
        raise Unsupported("tvm-ffi has no operations on numbers")

    def idioms(self, device: str, dtype: str) -> Mapping[str, str]:
        return {
            "values": "numpy.from_dlpack({x}).copy()",
            "address": "{x}.data_ptr()",
            "shape": "tuple({x}.shape)",
            "dtype": "str({x}.dtype)",
            "write": "numpy.from_dlpack({x})[...] = 1",
        }
