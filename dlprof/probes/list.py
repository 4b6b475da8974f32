"""Lists and tuples of arrays, and of numbers: what a program collects before it makes one array.

The first axis of such an array is the length of the list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from dlprof.probes.base import (
    CONTIGUOUS,
    CPU,
    DTYPES,
    FLOATS,
    NATIVE,
    NUMPY,
    ROOTS,
    ArraySpec,
    Export,
    Probe,
    Unsupported,
)
from dlprof.probes.generic import UNKNOWN
from dlprof.probes.numpy import NumPy

NUMBERS = (bool, int, float, complex)
NESTED = "nested"
"""The layout of Python's numbers in lists. They have no dtype: the consumer chooses one."""
MOST_ITEMS = 10_000
"""``jnp.stack`` of 100,000 items takes minutes."""
HOLDS = " of "
"""Stands in a layout before the library of a list's arrays, if that is not NumPy."""
WAYS = {
    "numpy": "{x}",
    "torch": "torch.from_numpy({x})",
    "jax": "jnp.asarray({x})",
    "tensorflow": "tf.constant({x})",
}
"""Ways into a framework by one NumPy array, which a list becomes first."""


class List(Probe):
    """A list of NumPy arrays; of numbers of NumPy if there is one axis."""

    name = "list"
    aliases = ("tuple",)
    module = "builtins"
    distributions = ("numpy",)
    setup = "import numpy"
    devices = CPU
    exports = (
        Export("list", NATIVE, "{x}", CPU),
        Export("stack", NUMPY, "numpy.stack({x})", CPU, "copy"),
    )

    def create(self, spec: ArraySpec) -> str:
        if not spec.shape or not spec.elements:
            raise Unsupported("a list without elements, or of no axis, has no arrays")
        if spec.shape[0] > MOST_ITEMS:
            raise Unsupported(f"lists have at most {MOST_ITEMS:,} items here")
        text = NumPy().create(spec)
        if spec.corners and spec.dtype in FLOATS and spec.layout in CONTIGUOUS:
            # Item by item, a NaN is a number of Python, without a payload.
            text += "\nx[numpy.isnan(x)] = numpy.nan"
        if spec.layout == "C":  # each with memory of its own, as in a program
            return f"{text}\nx = [item.copy() for item in x]"
        return f"{text}\nx = list(x)"

    def resized(self, spec: ArraySpec, size_bytes: int) -> ArraySpec:
        """Return a spec of about this size with as many axes: one axis would be numbers."""
        resized = spec.of_bytes(size_bytes)
        if len(spec.shape) == 1:
            return replace(resized, shape=(min(resized.elements, MOST_ITEMS),))
        rows = max(1, min(spec.shape[0], resized.elements))
        return replace(resized, shape=(rows, max(1, resized.elements // rows)))

    def pointer(self, array: Any) -> int | None:
        item = first(array)
        if hasattr(item, "data_ptr"):
            return int(item.data_ptr()) or None
        return int(item.ctypes.data) if hasattr(item, "ctypes") else None

    def to_numpy(self, array: Any) -> Any:
        import numpy as np

        if type(first(array)) in NUMBERS:
            return np.array(array)
        items = (item.detach().cpu() if hasattr(item, "detach") else item for item in leaves(array))
        return np.stack([np.asarray(item) for item in items]).reshape(self.shape(array))

    def shape(self, array: Any) -> tuple[int, ...] | None:
        """Return the lengths of lists, then those of an array in them; None for no list."""
        lengths: list[int] = []
        while type(array) in (list, tuple):
            if not array:
                return None
            lengths.append(len(array))
            array = array[0]
        if not lengths or not (type(array) in NUMBERS or hasattr(array, "dtype")):
            return None
        return (*lengths, *(int(length) for length in getattr(array, "shape", ())))

    def dtype(self, array: Any) -> str | None:
        dtype = getattr(first(array), "dtype", None)
        name = dtype and str(getattr(dtype, "name", dtype)).removeprefix("torch.")
        return name if name is None or name in DTYPES else UNKNOWN

    def device(self, array: Any) -> str:
        name = str(getattr(first(array), "device", "cpu")).lower()
        return "cuda" if "cuda" in name or "gpu" in name else "cpu"

    def layout(self, array: Any) -> str:
        """Return ``nested``, ``list``, or ``tuple of torch``."""
        item, kind = first(array), type(array).__name__
        library = type(item).__module__.partition(".")[0]
        library = ROOTS.get(library, library)
        if type(item) in NUMBERS:
            return NESTED
        return kind if library == "numpy" else f"{kind}{HOLDS}{library}"

    def write(self, array: Any, value: int) -> Any:
        import numpy

        for place, item in enumerate(array):
            if type(item) in (list, tuple):
                self.write(item, value)
            elif hasattr(item, "data_ptr") or (hasattr(item, "flags") and item.flags.writeable):
                item[...] = value
            elif type(array) is list and not getattr(item, "shape", ()):
                kind = getattr(item, "dtype", None)  # a time of NumPy has a unit
                array[place] = numpy.int64(value).astype(kind) if kind else type(item)(value)
            else:
                return NotImplemented
        return None

    def idioms(self, device: str, dtype: str) -> Mapping[str, str]:
        return {
            "values": "numpy.array({x})",
            "address": "{x}[0].ctypes.data",
            "shape": "numpy.shape({x})",
            "dtype": "{x}[0].dtype.name",
            "write": "for item in {x}: item[...] = 1",
        }


def faster(layout: str, consumer: str) -> str:
    """Return the code that usually takes a list of this layout in fastest; empty if unknown."""
    stacked = "numpy.array({x})" if layout == NESTED else "numpy.stack({x})"
    if layout.endswith(f"{HOLDS}torch"):
        if consumer == "torch":
            return "torch.stack({x})"
        stacked = "torch.stack({x}).numpy()"
    return WAYS.get(consumer, "").format(x=stacked)


def first(array: Any) -> Any:
    """Return the first array or number in lists."""
    return next(leaves(array), None)


def leaves(array: Any) -> Iterator[Any]:
    for item in array:
        if type(item) in (list, tuple):
            yield from leaves(item)
        else:
            yield item
