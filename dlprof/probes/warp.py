"""NVIDIA Warp: writable arrays of up to four axes, on the host.

Its CUDA arrays are left out, since they were never measured.
"""

from __future__ import annotations

from typing import Any

from dlprof.probes.base import (
    ARRAY,
    BITS,
    CAPSULE,
    DLPACK,
    INTEGERS,
    LAYOUTS,
    NATIVE,
    NUMPY,
    ArraySpec,
    Export,
    Import,
    Unsupported,
    copies,
    views,
)
from dlprof.probes.numpy import HostArrays, NumPy, bfloat16_bits, values

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


class Warp(HostArrays):
    name = "warp"
    aliases = ("wp",)
    module = "warp"
    distributions = ("warp-lang",)
    setup = "import numpy\nimport warp\nwarp.config.log_level = 40\nwarp.init()"
    dtypes = ("bool", *INTEGERS, "float16", "bfloat16", "float32", "float64")
    missing = {"readonly": "Warp has no read-only arrays"}
    array_type = "warp.array"
    host_text = "{x}.numpy()"
    facts = {"address": "{x}.ptr", "shape": "{x}.shape", "dtype": "{x}.dtype.__name__"}
    exports = (
        Export("dlpack", DLPACK, "{x}"),
        Export("to_dlpack", CAPSULE, "warp.to_dlpack({x})", promise="view"),
        Export("array", ARRAY, "{x}"),
        Export("numpy", NUMPY, "{x}.numpy()", promise="view"),
        Export("itself", NATIVE, "{x}"),
    )
    imports = (
        views("from_dlpack", (DLPACK, CAPSULE), "warp.from_dlpack({x})"),
        views("from_torch", (NATIVE,), "warp.from_torch({x})", producers=("torch",)),
        views(
            "from_torch_ctype",
            (NATIVE,),
            "warp.from_torch({x}, return_ctype=True)",
            producers=("torch",),
            returns_array=False,
        ),
        views("from_jax", (NATIVE,), "warp.from_jax({x})", producers=("jax",)),
        # Without a dtype, the last axes become vectors or matrices.
        Import(
            "from_numpy",
            (NUMPY,),
            "warp.from_numpy({x}, dtype=warp.{dtype}, device='cpu')",
            layouts=tuple(LAYOUTS),
        ),
        copies("array", (ARRAY, NUMPY), "warp.array({x}, device='cpu')"),
        views("array_nocopy", (ARRAY, NUMPY), "warp.array({x}, copy=False, device='cpu')"),
        Import(
            "launch",
            (ARRAY, NUMPY),
            "warp.launch(touch, dim=1, inputs=[{x}], device='cpu')",
            setup=_KERNEL,
            returns_array=False,
        ),
    )

    def create(self, spec: ArraySpec) -> str:
        self.check_spec(spec)
        if not 0 < len(spec.shape) <= _MOST_AXES:
            raise Unsupported(f"Warp has arrays of 1 to {_MOST_AXES} axes")
        if spec.dtype in BITS:
            if spec.layout != "C":
                raise Unsupported(f"NumPy, whose memory has layout {spec.layout}, has no bfloat16")
            text = f"{bfloat16_bits(spec)}.reshape({spec.shape})"
            return f"x = warp.array({text}, dtype=warp.bfloat16, device='cpu')"
        if spec.layout == "C" or not spec.elements:
            text = f"{values(spec.elements, spec)}.reshape({spec.shape})"
            return f"x = warp.array({text}, device='cpu')"
        # Warp slices forwards only, so its arrays of all other layouts are on memory of NumPy.
        return f"{NumPy().create(spec)}\nx = warp.array(x, copy=False, device='cpu')"

    def host_array(self, array: Any) -> Any:
        return array.numpy()

    def pointer(self, array: Any) -> int | None:
        return array.ptr or None

    def dtype(self, array: Any) -> str:
        return str(array.dtype.__name__)

    def use(self, device: str) -> str:
        return "warp.clone({x})"
