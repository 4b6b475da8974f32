"""The elements of source and result on the host, and which of them differ."""

from __future__ import annotations

from typing import Any

from dlprof.probes.base import ArraySpec, Probe, Unsupported
from dlprof.worker.subject import Subject


def host_copy(subject: Subject, array: Any, probe: Probe) -> Any:
    """Copy all elements of a source or a result to the host."""
    import numpy

    values = numpy.array(read_elements(probe, array, subject.spec))
    if values.size != subject.spec.elements:
        raise Unsupported(f"{values.size} values of the result were read back")
    return values


def count_different(before: Any, after: Any) -> dict[str, int]:
    """Count the elements that differ; empty if none does."""
    if before.dtype != after.dtype:
        raise Unsupported(f"{before.dtype} cannot be compared with {after.dtype}")
    differ = unequal(before, after)
    count = int(differ.sum())
    if not count:
        return {}
    return {"different": count, "of": int(before.size), "first_index": int(differ.argmax())}


def read_elements(
    probe: Probe, array: Any, spec: ArraySpec, rows: tuple[int, int] | None = None
) -> Any:
    """Return the elements, or those of some rows, one-dimensional; may be a view of the array."""
    import numpy

    if probe.dtype(array) is not None:
        part = array if rows is None else array[slice(*rows)]
        return numpy.ascontiguousarray(probe.to_numpy(part)).reshape(-1)
    raw = probe.to_numpy(array)  # plain memory
    if rows is not None:
        row_bytes = spec.size_bytes // spec.shape[0]
        raw = raw[rows[0] * row_bytes : rows[1] * row_bytes]
    return raw.view(spec.dtype)


def unequal(before: Any, after: Any, dtypes: tuple[str, str] | None = None) -> Any:
    """Return which elements differ: by their bits, or as numbers if there are two ``dtypes``."""
    import numpy

    elements = before.size
    if dtypes is None:
        before, after = bits(before), bits(after)
    elif not all(map(_are_numbers, (before, after), dtypes)):
        return numpy.zeros(1, dtype=bool)
    differ = before != after
    if dtypes is not None:  # a NaN is still one
        differ &= ~((before != before) & (after != after))  # noqa: PLR0124
    words = max(1, differ.size // max(elements, 1))  # a complex number is two
    return differ if words == 1 else differ.reshape(-1, words).any(axis=1)


def bits(array: Any) -> Any:
    """Return bit patterns in the machine's byte order: NaN equals NaN, -0.0 differs from 0.0."""
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    return array.view(f"uint{8 * min(array.dtype.itemsize, 8)}")


def lost_byte_order(before: Any, after: Any) -> bool:
    """Whether ``before`` has the other byte order, and ``after`` is its bytes in the machine's."""
    if before.dtype.isnative:
        return False
    return bool((bits(before.byteswap()) == bits(after)).all())


def _are_numbers(values: Any, dtype: str) -> bool:
    # For a dtype that NumPy lacks these are its bits, which are no numbers of another dtype.
    return values.dtype.kind in "biufc" and values.dtype.name == dtype
