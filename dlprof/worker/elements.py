"""The elements of an array on the host, and which of them differ from another's."""

from __future__ import annotations

from typing import Any

from dlprof.probes.base import ArraySpec, Probe


def read(probe: Probe, array: Any, spec: ArraySpec, rows: tuple[int, int] | None = None) -> Any:
    """The elements, or those of some rows, one-dimensional; may be a view of the array."""
    import numpy

    if probe.dtype(array) is not None:
        part = array if rows is None else array[slice(*rows)]
        return numpy.ascontiguousarray(probe.to_numpy(part)).reshape(-1)
    memory = probe.to_numpy(array)
    if rows is not None:
        row_bytes = spec.size_bytes // spec.shape[0]
        memory = memory[rows[0] * row_bytes : rows[1] * row_bytes]
    return memory.view(spec.dtype)


def unequal(before: Any, after: Any, dtypes: tuple[str, str] | None = None) -> Any:
    """Which elements differ: of one dtype by their bits, of two by their numbers.

    ``dtypes`` are their names where there are two.
    """
    import numpy

    elements = before.size
    if dtypes is None:
        before, after = bits(before), bits(after)
    elif not all(map(_are_numbers, (before, after), dtypes)):
        return numpy.zeros(1, dtype=bool)
    differ = before != after
    words = max(1, differ.size // max(elements, 1))  # a complex number is two
    return differ if words == 1 else differ.reshape(-1, words).any(axis=1)


def bits(array: Any) -> Any:
    """Bit patterns, so that NaN equals NaN and -0.0 differs from 0.0; of the machine's byte order,
    since the order is no part of a value.
    """
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    return array.view(f"uint{8 * min(array.dtype.itemsize, 8)}")


def _are_numbers(values: Any, dtype: str) -> bool:
    # Of a dtype that NumPy lacks these are the bits, and those no numbers of another dtype.
    return values.dtype.kind in "biufc" and values.dtype.name == dtype
