"""The elements of source and result on the host, and which of them differ."""

from __future__ import annotations

import time
from typing import Any

from dlprof.probes.base import ArraySpec, Probe, Unsupported
from dlprof.worker.refusal import Refusal, attempt
from dlprof.worker.subject import Subject

STEADY_S = 0.25
"""A camera or another device writes a buffer many times a second."""


def changes_alone(subject: Subject) -> bool:
    """Whether a user's own array changes that is not converted.

    It may be a buffer that a thread or a device writes. Arrays of probes are not.
    """
    if not subject.is_one_array:
        return False
    made = attempt(subject.make_another)
    array = subject.source if isinstance(made, Refusal) else made
    before = host_copy(subject, array, subject.producer)
    time.sleep(STEADY_S)
    return bool(count_different(before, host_copy(subject, array, subject.producer)))


def host_copy(subject: Subject, array: Any, probe: Probe) -> Any:
    """A host copy of all elements of a source or a result."""
    import numpy

    values = numpy.array(read_elements(probe, array, subject.spec))
    if values.size != subject.spec.elements:
        raise Unsupported(f"{values.size} values of the result were read back")
    return values


def count_different(before: Any, after: Any) -> dict[str, int]:
    """How many elements differ; empty if none does."""
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
    """The elements, or those of some rows, one-dimensional; may be a view of the array."""
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
    """Which elements differ: by their bits, or by their numbers if there are two ``dtypes``."""
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
    """Bit patterns in the machine's byte order: NaN equals NaN, and -0.0 differs from 0.0."""
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
