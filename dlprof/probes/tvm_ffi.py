"""TVM FFI: tensors on the memory of others, and functions that take any tensor by DLPack's C API.

It allocates nothing by itself, so its arrays are NumPy's memory.
"""

from __future__ import annotations

from typing import Any

from dlprof.probes.base import CAPSULE, DLPACK, DTYPES, ArraySpec, Export, Import, views
from dlprof.probes.numpy import HostArrays, NumPy, memory_at


class TvmFfi(HostArrays):
    name = "tvm-ffi"
    aliases = ("tvm_ffi",)
    module = "tvm_ffi"
    distributions = ("apache-tvm-ffi",)
    setup = "import numpy\nimport tvm_ffi"
    host_text = "numpy.from_dlpack({x})"
    facts = {"address": "{x}.data_ptr()", "shape": "tuple({x}.shape)", "dtype": "str({x}.dtype)"}
    dtypes = [name for name in DTYPES if not name.startswith("complex")]
    # NumPy's broadcast arrays are read-only as well.
    missing = dict.fromkeys(("readonly", "broadcast"), "tvm-ffi takes no read-only arrays of NumPy")
    exports = (
        Export("dlpack", DLPACK, "{x}"),
        Export("dlpack_capsule", CAPSULE, "{x}.__dlpack__()"),
    )
    imports = (
        views("from_dlpack", (DLPACK, CAPSULE), "tvm_ffi.from_dlpack({x})"),
        Import("convert", (DLPACK,), "tvm_ffi.convert({x})"),
        Import(
            "call",
            (DLPACK,),
            "take({x})",
            setup="take = tvm_ffi.convert_func(lambda x: None)",
            returns_array=False,
        ),
    )

    def create(self, spec: ArraySpec) -> str:
        self.check_spec(spec)
        return f"{NumPy().create(spec)}\nx = tvm_ffi.from_dlpack(x)"

    def host_array(self, array: Any) -> Any:
        return memory_at(array.data_ptr(), tuple(array.shape), array.strides, str(array.dtype))
