"""cuda.core: a view of any array's memory, as CUDA libraries take it. On the host here."""

from __future__ import annotations

from typing import Any

from dlprof.probes.base import ARRAY, DLPACK, ArraySpec, Export, views
from dlprof.probes.numpy import HostArrays, NumPy, memory_at


class CudaCore(HostArrays):
    name = "cuda-core"
    aliases = ("cuda.core",)
    module = "cuda.core"
    distributions = ("cuda-core",)
    also = ("cuda-bindings",)
    requirement = "cuda-core cuda-bindings"
    setup = "import numpy\nfrom cuda.core.utils import StridedMemoryView"
    host_text = "numpy.from_dlpack({x})"
    facts = {"address": "{x}.ptr", "shape": "{x}.shape", "dtype": "{x}.dtype.name"}
    exports = (Export("dlpack", DLPACK, "{x}"),)
    imports = (
        views("from_dlpack", (DLPACK,), "StridedMemoryView.from_dlpack({x}, stream_ptr=-1)"),
        views(
            "from_any_interface",
            (DLPACK,),
            "StridedMemoryView.from_any_interface({x}, stream_ptr=-1)",
        ),
        # Asks the driver of CUDA.
        views("from_array_interface", (ARRAY,), "StridedMemoryView.from_array_interface({x})"),
    )

    def create(self, spec: ArraySpec) -> str:
        return f"{NumPy().create(spec)}\nx = StridedMemoryView.from_dlpack(x, stream_ptr=-1)"

    def host_array(self, array: Any) -> Any:
        return memory_at(array.ptr, tuple(array.shape), array.strides, array.dtype.name)

    def writable(self, array: Any) -> bool | None:
        return not array.readonly
