"""Polars: series of one axis, or of arrays of one shape. They are immutable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dlprof.probes.base import (
    ARRAY,
    CPU,
    NATIVE,
    NUMPY,
    ArraySpec,
    Export,
    Import,
    Probe,
    Unsupported,
    check_layout,
    without_strides,
)
from dlprof.probes.numpy import NumPy

_DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64"),
)
_MISSING = without_strides(
    "Polars has no strided series", readonly="series are never writable; use layout C"
)


class Polars(Probe):
    name = "polars"
    aliases = ("pl",)
    module = "polars"
    distributions = ("polars",)
    setup = "import numpy\nimport polars"
    devices = CPU
    immutable = True
    array_type = "polars.Series"
    exports = (
        Export("array", ARRAY, "{x}", CPU),
        Export("to_numpy", NUMPY, "{x}.to_numpy()", CPU),
        Export("to_numpy_nocopy", NUMPY, "{x}.to_numpy(allow_copy=False)", CPU, "view"),
        Export("to_numpy_writable", NUMPY, "{x}.to_numpy(writable=True)", CPU, "copy"),
        Export("itself", NATIVE, "{x}", CPU),
    )
    imports = (
        Import("series", (NUMPY, ARRAY), "polars.Series({x})", CPU),
        Import("from_arrow", (NATIVE,), "polars.from_arrow({x})", CPU, producers=("pyarrow",)),
    )

    def create(self, spec: ArraySpec) -> str:
        if spec.dtype not in _DTYPES:
            raise Unsupported(f"Polars has no dtype {spec.dtype}")
        if not spec.shape:
            raise Unsupported("a series has one axis or more")
        check_layout(spec, _MISSING)
        return f"{NumPy().create(spec)}\nx = polars.Series(x)"

    def pointer(self, array: Any) -> int | None:
        # A series of booleans has one bit for each, which NumPy cannot view.
        if self.dtype(array) == "bool":
            return None
        return int(array.to_numpy(allow_copy=False).ctypes.data) or None

    def to_numpy(self, array: Any) -> Any:
        return array.to_numpy(writable=True).copy()

    def shape(self, array: Any) -> tuple[int, ...]:
        return (len(array), *getattr(array.dtype, "shape", ()))

    def dtype(self, array: Any) -> str:
        found = array.dtype
        while hasattr(found, "inner"):
            found = found.inner
        name = str(found).lower()
        return "bool" if name == "boolean" else name

    def use(self, device: str) -> str:
        raise Unsupported("a series of several axes has no operations on numbers")

    def idioms(self, device: str, dtype: str) -> Mapping[str, str]:
        return {
            "values": "{x}.to_numpy(writable=True)",
            "address": "{x}.to_numpy().ctypes.data",
            "shape": "{x}.to_numpy().shape",
            "dtype": "{x}.to_numpy().dtype.name",
        }
