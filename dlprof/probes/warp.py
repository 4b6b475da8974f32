"""NVIDIA Warp: writable arrays of up to four axes, on the host.

Its CUDA arrays are left out, since they were never measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dlprof.probes.base import (
    ARRAY,
    BITS,
    CAPSULE,
    CPU,
    DLPACK,
    LAYOUTS,
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
from dlprof.probes.numpy import NumPy, bfloat16_bits, values

_DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64"),
)
_MOST_AXES = 4
# Warp reads the source of a kernel, which text in exec() lacks. The kernel reads nothing: the
# launch alone is the hand-over. Warp compiles it once, and keeps it on disk.
_KERNEL = """\
kernel_source = '''def touch(x: warp.array2d(dtype=warp.float32)):
    i = warp.tid()
'''
exec(kernel_source)
touch = warp.Kernel(touch, source=kernel_source)
"""


class Warp(Probe):
    name = "warp"
    aliases = ("wp",)
    module = "warp"
    distributions = ("warp-lang",)
    setup = "import numpy\nimport warp\nwarp.config.log_level = 40\nwarp.init()"
    devices = CPU
    array_type = "warp.array"
    exports = (
        Export("dlpack", DLPACK, "{x}", CPU),
        Export("to_dlpack", CAPSULE, "warp.to_dlpack({x})", CPU, "view"),
        Export("array", ARRAY, "{x}", CPU),
        Export("numpy", NUMPY, "{x}.numpy()", CPU, "view"),
        Export("itself", NATIVE, "{x}", CPU),
    )
    imports = (
        views("from_dlpack", (DLPACK, CAPSULE), "warp.from_dlpack({x})", CPU),
        views("from_torch", (NATIVE,), "warp.from_torch({x})", CPU, producers=("torch",)),
        views(
            "from_torch_ctype",
            (NATIVE,),
            "warp.from_torch({x}, return_ctype=True)",
            CPU,
            producers=("torch",),
            returns_array=False,
        ),
        views("from_jax", (NATIVE,), "warp.from_jax({x})", CPU, producers=("jax",)),
        # Without a dtype, the last axes become vectors or matrices.
        Import(
            "from_numpy",
            (NUMPY,),
            "warp.from_numpy({x}, dtype=warp.{dtype}, device='cpu')",
            CPU,
            layouts=tuple(LAYOUTS),
        ),
        copies("array", (ARRAY, NUMPY), "warp.array({x}, device='cpu')", CPU),
        views("array_nocopy", (ARRAY, NUMPY), "warp.array({x}, copy=False, device='cpu')", CPU),
        Import(
            "launch",
            (ARRAY, NUMPY),
            "warp.launch(touch, dim=1, inputs=[{x}], device='cpu')",
            CPU,
            setup=_KERNEL,
            returns_array=False,
        ),
    )

    def create(self, spec: ArraySpec) -> str:
        if spec.dtype not in _DTYPES:
            raise Unsupported(f"Warp has no dtype {spec.dtype}")
        if not 0 < len(spec.shape) <= _MOST_AXES:
            raise Unsupported(f"Warp has arrays of 1 to {_MOST_AXES} axes")
        check_layout(spec, {"readonly": "Warp has no read-only arrays"})
        if spec.dtype in BITS:
            if spec.layout != "C":
                raise Unsupported(f"NumPy, whose memory has layout {spec.layout}, has no bfloat16")
            text = f"{bfloat16_bits(spec)}.reshape({spec.shape})"
            return f"x = warp.array({text}, dtype=warp.bfloat16, device='cpu')"
        if spec.layout == "C":
            text = f"{values(spec.elements, spec)}.reshape({spec.shape})"
            return f"x = warp.array({text}, device='cpu')"
        # Warp slices forwards only, so its arrays of all other layouts are on memory of NumPy.
        return f"{NumPy().create(spec)}\nx = warp.array(x, copy=False, device='cpu')"

    def pointer(self, array: Any) -> int | None:
        return array.ptr or None

    def to_numpy(self, array: Any) -> Any:
        host = array.numpy().copy()
        bits = BITS.get(self.dtype(array))
        return host if bits is None else host.view(bits)

    def dtype(self, array: Any) -> str:
        return str(array.dtype.__name__)

    def writable(self, array: Any) -> bool | None:
        return True

    def write(self, array: Any, value: int) -> Any:
        array.fill_(value)

    def use(self, device: str) -> str:
        return "warp.clone({x})"

    def idioms(self, device: str, dtype: str) -> Mapping[str, str]:
        return {
            "values": "{x}.numpy().copy()",
            "address": "{x}.ptr",
            "shape": "{x}.shape",
            "dtype": "{x}.dtype.__name__",
            "write": "{x}.fill_(1)",
        }
