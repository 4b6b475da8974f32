"""Polars: series of one axis, or of arrays of one shape. They are immutable."""

from __future__ import annotations

from typing import Any

from dlprof.probes.base import (
    ARRAY,
    INTEGERS,
    NATIVE,
    NUMPY,
    ArraySpec,
    Export,
    Import,
    Unsupported,
    without_strides,
)
from dlprof.probes.numpy import HostArrays, NumPy


class Polars(HostArrays):
    name = "polars"
    aliases = ("pl",)
    module = "polars"
    distributions = ("polars",)
    setup = "import numpy\nimport polars"
    dtypes = ("bool", *INTEGERS, "float16", "float32", "float64")
    missing = without_strides(
        "Polars has no strided series", readonly="series are never writable; use layout C"
    )
    immutable = True
    array_type = "polars.Series"
    host_text = "{x}.to_numpy()"
    exports = (
        Export("array", ARRAY, "{x}"),
        Export("to_numpy", NUMPY, "{x}.to_numpy()"),
        Export("to_numpy_nocopy", NUMPY, "{x}.to_numpy(allow_copy=False)", promise="view"),
        Export("to_numpy_writable", NUMPY, "{x}.to_numpy(writable=True)", promise="copy"),
        Export("itself", NATIVE, "{x}"),
    )
    imports = (
        Import("series", (NUMPY, ARRAY), "polars.Series({x})"),
        Import("from_arrow", (NATIVE,), "polars.from_arrow({x})", producers=("pyarrow",)),
    )

    def create(self, spec: ArraySpec) -> str:
        self.check_spec(spec)
        if not spec.shape:
            raise Unsupported("a series has one axis or more")
        return f"{NumPy().create(spec)}\nx = polars.Series(x)"

    def pointer(self, array: Any) -> int | None:
        # NumPy cannot view booleans of one bit each, and a look at chunks would join them.
        is_plain = self.dtype(array) != "bool" and array.n_chunks() == 1
        return super().pointer(array) if is_plain else None

    def host_array(self, array: Any) -> Any:
        return array.to_numpy()

    def shape(self, array: Any) -> tuple[int, ...]:
        return (len(array), *getattr(array.dtype, "shape", ()))

    def dtype(self, array: Any) -> str:
        found = array.dtype
        while hasattr(found, "inner"):
            found = found.inner
        name = str(found).lower()
        return "bool" if name == "boolean" else name
