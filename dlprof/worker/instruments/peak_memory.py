"""Peak memory: how many arrays does one conversion need at its peak, beyond its source?

An array is converted between two looks at the kernel's mark (:mod:`dlprof.worker.water_mark`): a
view adds none, a copy one, a copy of a copy two if both are there at once. It is measured at a size
of its own: large enough to be seen among a process's other pages, and larger than what glibc's
malloc ever keeps when it is freed (``M_MMAP_THRESHOLD`` grows to 32 MiB). What takes more than a
copy is tried again of aligned memory (``aligned_arrays``). It knows host memory
only, and says ``unknown`` where the kernel does not let the mark be reset.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dlprof.probes.base import DTYPES
from dlprof.worker import room, timer, water_mark
from dlprof.worker.subject import Subject, compile_call
from dlprof.worker.water_mark import Mark

SIZE_BYTES = 40 << 20
LEAST_BYTES = 4 << 20
"""An array of a user's own may be smaller; other pages of the process would hide it."""
PLAIN_ARRAYS = 0.05
"""So near to one array a single look is enough: the new pages of a copy are what a look takes. None
may be a copy that was hidden, or that is made of other memory only.
"""
NOTABLE_ARRAYS = 1.5
"""From here on it is more than a copy, and the evidence says how the array was made."""
FEW = 16
LARGE_BYTES = 128 << 20
"""From here on a first conversion shows its peak; what a framework needs once for all is less."""


def measure(subject: Subject) -> dict[str, Any]:
    """Verdict ``ok`` with ``arrays``, the peak as a multiple of the source, or ``unknown``."""
    if subject.spec.device != "cpu" or subject.result_device != "cpu":
        return _unknown("only host memory has a high-water mark")
    other = _of_size(subject)
    size = other.spec.size_bytes
    if size < LEAST_BYTES:
        return _unknown(f"the array is too small to be seen: {size:,} of {LEAST_BYTES:,} bytes")
    try:
        room.check(other.spec)
        arrays = converting_arrays(other)
    except room.TooLarge as reason:
        return _unknown(str(reason))
    except OSError as error:
        return _unknown(f"the high-water mark cannot be read or reset: {error.strerror}")
    evidence: dict[str, Any] = {"arrays": arrays, "size_bytes": size}
    if arrays >= NOTABLE_ARRAYS:
        evidence |= other.made() | _of_aligned(other)
    return {"verdict": "ok", "evidence": evidence}


def _of_aligned(subject: Subject) -> dict[str, float]:
    """The same of memory that is aligned, which frameworks may take as it is; nothing where that
    is a question of its own.
    """
    if subject.is_one_array or subject.spec.layout != "C":
        return {}
    aligned = replace(subject, spec=replace(subject.spec, layout="aligned"))
    try:
        return {"aligned_arrays": converting_arrays(aligned)}
    except Exception:  # noqa: BLE001 - any framework, any error: it makes or takes no such memory
        return {}


def _of_size(subject: Subject) -> Subject:
    return subject.of_elements(SIZE_BYTES // DTYPES.get(subject.spec.dtype, 1))


def whole_arrays(subject: Subject) -> float:
    """As :func:`converting_arrays`, with what the framework keeps of the first of two conversions.

    A few elements are converted before, so that what it needs once for all is no part of it. The
    process is to have converted nothing large before: only memory that is new to it is seen.
    """
    few = subject.of_elements(FEW)
    few.wait_for(compile_call(few.code, {**few.namespace, "x": few.make_another()})())
    other = _of_size(subject)
    convert = compile_call(other.code, {**other.namespace, "x": other.make_another()})
    before = water_mark.begin()
    for _ in range(2):
        other.wait_for(convert())
    return water_mark.risen_bytes(before) / other.spec.size_bytes


def making_arrays(subject: Subject) -> float:
    """Peak of making a source, in arrays of its size. Raises OSError where the mark is no use."""
    other = _of_size(subject)
    other.make_another()
    before = water_mark.begin()
    made = other.make_another()
    risen = water_mark.risen_bytes(before)
    del made
    return risen / other.spec.size_bytes


def converting_arrays(subject: Subject) -> float:
    """Peak of one conversion beyond its source, in arrays of its size. Raises OSError.

    Of two conversions, unless the first is plainly a copy.
    """
    size = subject.spec.size_bytes
    arrays = _peak_bytes(subject) / size
    if abs(arrays - 1) <= PLAIN_ARRAYS:
        return arrays
    return (arrays + _peak_bytes(subject) / size) / 2


def _peak_bytes(subject: Subject) -> int:
    source = subject.make_another()
    convert = compile_call(subject.code, {**subject.namespace, "x": source})
    # What is kept for good is not the conversion's. The first result stays: what is freed meanwhile
    # would hide what is taken.
    first = convert()
    subject.wait_for(first)
    before = water_mark.begin()
    with timer.collector_off():  # it would touch all of the heap
        result = convert()
        subject.wait_for(result)
        peak = water_mark.risen_bytes(before)
    del first, result
    return peak


def watch(subject: Subject) -> Mark | None:
    """The marks before a conversion whose peak is then :func:`watched`.

    None where that cannot be seen: on a device, in an array too small, or by this kernel.
    """
    if subject.spec.device != "cpu" or subject.result_device != "cpu":
        return None
    if subject.spec.size_bytes < LARGE_BYTES:
        return None
    try:
        return water_mark.begin()
    except OSError:
        return None


def watched(before: Mark) -> int:
    """Bytes that were needed at once since :func:`watch`; the result is still alive."""
    return water_mark.risen_bytes(before)


def _unknown(reason: str) -> dict[str, Any]:
    return {"verdict": "unknown", "evidence": {"reason": reason}}
