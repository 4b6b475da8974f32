"""cuda.core: a view of any array's memory, as CUDA libraries take it. On the host here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dlprof.probes.base import (
    ARRAY,
    CPU,
    DLPACK,
    ArraySpec,
    Export,
    Probe,
    Unsupported,
    check_layout,
    views,
)
from dlprof.probes.numpy import NumPy, memory_at


class CudaCore(Probe):
    name = "cuda-core"
    aliases = ("cuda.core",)
    module = "cuda.core"
    distributions = ("cuda-core",)
    also = ("cuda-bindings",)
    requirement = "cuda-core cuda-bindings"
    setup = "import numpy\nfrom cuda.core.utils import StridedMemoryView"
    devices = CPU
    exports = (Export("dlpack", DLPACK, "{x}", CPU),)
    imports = (
        views("from_dlpack", (DLPACK,), "StridedMemoryView.from_dlpack({x}, stream_ptr=-1)", CPU),
        views(
            "from_any_interface",
            (DLPACK,),
            "StridedMemoryView.from_any_interface({x}, stream_ptr=-1)",
            CPU,
        ),
        # Asks the driver of CUDA.
        views("from_array_interface", (ARRAY,), "StridedMemoryView.from_array_interface({x})", CPU),
    )

    def create(self, spec: ArraySpec) -> str:
        check_layout(spec)
        wrapped = "StridedMemoryView.from_dlpack(x, stream_ptr=-1)"
        return f"{NumPy().create(spec)}\nx = {wrapped}"

    def pointer(self, array: Any) -> int | None:
        return array.ptr or None

    def to_numpy(self, array: Any) -> Any:
        return self._memory(array).copy()

    def _memory(self, array: Any) -> Any:
        return memory_at(array.ptr, tuple(array.shape), array.strides, array.dtype.name)

    def writable(self, array: Any) -> bool | None:
        return not array.readonly

    def write(self, array: Any, value: int) -> Any:
        if array.readonly:
            return NotImplemented
        self._memory(array)[...] = value
        return None

    def use(self, device: str) -> str:
        raise Unsupported("cuda.core has no operations on numbers")

    def idioms(self, device: str, dtype: str) -> Mapping[str, str]:
        return {
            "values": "numpy.from_dlpack({x}).copy()",
            "address": "{x}.ptr",
            "shape": "{x}.shape",
            "dtype": "{x}.dtype.name",
            "writable": "not {x}.readonly",
            "write": "numpy.from_dlpack({x})[...] = 1",
        }
