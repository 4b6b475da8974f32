"""MXNet: arrays on the host whose operations run later, in an engine of its own.

MXNet 1.9.1, the last release, needs NumPy older than 1.24, so it needs an environment of its own.
Its CUDA arrays are left out, since they were never measured.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

from dlprof.probes.base import (
    ARRAY,
    CAPSULE,
    DLPACK,
    NUMPY,
    ArraySpec,
    Export,
    Import,
    Probe,
    Unsupported,
    copies,
    laid_out,
    views,
    without_strides,
)
from dlprof.probes.numpy import values


class MXNet(Probe):
    name = "mxnet"
    aliases = ("mx",)
    module = "mxnet"
    distributions = ("mxnet", "mxnet-mkl", "mxnet-native")
    requirement = "mxnet==1.9.1 'numpy<1.24'"
    setup = "import numpy\nimport mxnet"
    dtypes = ("bool", "int8", "int32", "int64", "uint8", "float16", "float32", "float64")
    missing = without_strides(
        "MXNet has no strided arrays", readonly="MXNet makes no read-only arrays"
    )
    array_type = "mxnet.nd.NDArray"
    exports = (
        Export("to_dlpack_for_read", CAPSULE, "{x}.to_dlpack_for_read()", promise="view"),
        Export("to_dlpack_for_write", CAPSULE, "{x}.to_dlpack_for_write()", promise="view"),
        Export("asnumpy", NUMPY, "{x}.asnumpy()", promise="copy"),
    )
    imports = (
        views("from_dlpack", (CAPSULE,), "mxnet.nd.from_dlpack({x})"),
        views("from_dlpack_object", (DLPACK,), "mxnet.nd.from_dlpack({x}.__dlpack__())"),
        views("from_numpy", (NUMPY,), "mxnet.nd.from_numpy({x})"),
        copies("from_numpy_copy", (NUMPY,), "mxnet.nd.from_numpy({x}, zero_copy=False)"),
        Import("array", (ARRAY, NUMPY), "mxnet.nd.array({x})"),
    )

    def create(self, spec: ArraySpec) -> str:
        self.check_spec(spec)  # MXNet allocates at multiples of 64 bytes
        if not spec.shape or not spec.elements:
            # mxnet.util.set_np_shape would change the meaning of shapes in the whole process.
            raise Unsupported("to MXNet a scalar or an axis of length zero is an unknown shape")
        return laid_out(
            spec, lambda count, spec: f"mxnet.nd.array({values(count, spec)}, dtype='{spec.dtype}')"
        )

    def pointer(self, array: Any) -> int | None:
        from mxnet.base import _LIB, check_call

        # Not by a capsule: a capsule without a consumer leaks under Python 3.11.
        address = ctypes.c_void_p()
        check_call(_LIB.MXNDArrayGetData(array.handle, ctypes.byref(address)))
        return address.value

    def to_numpy(self, array: Any) -> Any:
        return array.asnumpy()

    def dtype(self, array: Any) -> str:
        import numpy as np

        return str(np.dtype(array.dtype).name)

    def writable(self, array: Any) -> bool | None:
        return bool(array.writable)

    def write(self, array: Any, value: int) -> Any:
        array[:] = value
        array.wait_to_read()

    def wait(self, device: str) -> str:
        return "{x}.wait_to_read()"

    def use(self, device: str) -> str:
        return "mxnet.nd.add({x}, 1)"

    def idioms(self, device: str, dtype: str) -> Mapping[str, str]:
        return {
            "values": "{x}.asnumpy()",
            "shape": "{x}.shape",
            "dtype": "{x}.dtype.__name__",
            "writable": "{x}.writable",
            "write": "{x}[:] = 1\n{x}.wait_to_read()",
        }

    def enqueue(self, spec: ArraySpec) -> str | None:
        return _ENQUEUE.format(wide=".astype('int8')" if spec.dtype == "bool" else "")


# Each unit is an operation for the engine, of a size that takes it longer than the call takes the
# caller. The load is nowhere near infinite, so that zero times it is zero; y has to wait for it.
# MXNet adds no booleans.
_ENQUEUE = """\
mxnet_load = mxnet.nd.arange(131072)
for _ in range(work):
    mxnet_load = mxnet.nd.cos(mxnet_load)
mxnet_wide = x{wide}
mxnet_zero = (mxnet_load[:1] * 0).astype(mxnet_wide.dtype).reshape((1,) * x.ndim)
y = mxnet.nd.broadcast_add(mxnet_wide, mxnet_zero).astype(x.dtype)
"""
