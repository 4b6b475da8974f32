"""Peak memory: how many arrays does one conversion need at its peak, beyond its source?

The kernel's high-water mark tells: a view adds no array, a copy one, a copy of a copy two if both
exist at once. The array has a size of its own: larger than what glibc's malloc keeps when it is
freed (``M_MMAP_THRESHOLD`` grows to 32 MiB), and large enough among a process's other pages.

Verdicts: ``ok``, ``unknown`` (for small arrays, with a device, and if the mark cannot be reset).

The mark is ``VmHWM``: the largest resident set since ``/proc/self/clear_refs`` was written, see
``proc_pid_clear_refs(5)``. It does not see memory that a framework kept from an earlier call and
uses again, so freed memory is returned to the kernel before. ``Referenced`` pages would show it,
but they rose by half an array with nothing running.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dlprof.protocol.messages import unknown
from dlprof.worker import memory, timer
from dlprof.worker.memory import resident_bytes
from dlprof.worker.subject import Subject

LOOK_S = 0.01
QUIET_LOOKS, MOST_LOOKS = 3, 100


def begin_mark() -> int:
    """Forget the peak so far; the resident bytes now. Raises OSError if that is not allowed."""
    gc.collect()
    memory.trim()  # a copy into memory that is still resident would hide
    resident = settled_bytes()
    reset_mark()
    return resident


def settled_bytes() -> int:
    """The resident set once it no longer falls: frameworks free memory in threads of their own."""
    least, quiet = resident_bytes(), 0
    for _ in range(MOST_LOOKS):
        if quiet == QUIET_LOOKS:
            break
        time.sleep(LOOK_S)
        now = resident_bytes()
        quiet = quiet + 1 if now >= least else 0
        least = min(least, now)
    return least


def risen_bytes(before: int) -> int:
    """The most memory that was new to the process at once since :func:`begin_mark`."""
    return max(high_water_bytes() - before, 0)


def reset_mark() -> None:
    """Forget the peak. Raises OSError."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def high_water_bytes() -> int:
    """The resident set's peak. Raises OSError."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise OSError(0, "no VmHWM")


SIZE_BYTES = 40 << 20
LEAST_BYTES = 4 << 20
"""Other pages of the process would hide a smaller array of a user's own."""
PLAIN_ARRAYS = 0.05
"""This near to one array a single look is enough. No array may be a copy that was hidden."""
NOTABLE_ARRAYS = 1.5
"""From here on it is more than a copy, and the evidence says how the array was made."""
LARGE_BYTES = 128 << 20
"""From here on a first conversion shows its peak: what a framework needs once is less."""


def measure(subject: Subject) -> dict[str, Any]:
    if {subject.spec.device, subject.result_device} != {"cpu"}:
        return unknown("only host memory is watched")
    other = subject.of_bytes(SIZE_BYTES)
    size = other.spec.size_bytes
    if size < LEAST_BYTES:
        return unknown("the array is too small to be seen")
    memory.check_room(other.spec)
    try:
        arrays = converting_arrays(other)
    except OSError as error:
        return unknown(f"the high-water mark cannot be read or reset: {error.strerror}")
    evidence: dict[str, Any] = {"arrays": arrays, "size_bytes": size}
    if arrays >= NOTABLE_ARRAYS:
        evidence |= other.made()
    return {"verdict": "ok", "evidence": evidence}


def watch(subject: Subject) -> int | None:
    """The mark before a conversion, whose peak is then :func:`risen_bytes`.

    None if it cannot be seen: on a device, for a small array, or by this kernel.
    """
    on_host = subject.spec.device == subject.result_device == "cpu"
    if not on_host or subject.spec.size_bytes < LARGE_BYTES:
        return None
    try:
        return begin_mark()
    except OSError:
        return None


def converting_arrays(subject: Subject) -> float:
    """Peak of one conversion beyond its source, in arrays of its size. Raises OSError.

    The mean of two conversions, unless the first is plainly a copy.
    """
    size = subject.spec.size_bytes
    convert = subject.converting(subject.make_another())
    arrays = _peak_bytes(subject, convert) / size
    if abs(arrays - 1) <= PLAIN_ARRAYS:
        return arrays
    return (arrays + _peak_bytes(subject, convert) / size) / 2


def _peak_bytes(subject: Subject, convert: Callable[[], Any]) -> int:
    # What is kept from the first conversion on is not counted. Its result stays: freed memory
    # would hide the memory that is taken.
    first = convert()
    subject.wait_for(first)
    before = begin_mark()
    with timer.collector_off():  # it would touch the whole heap
        result = convert()
        subject.wait_for(result)
        peak = risen_bytes(before)
    del first, result
    return peak
