"""Peak memory: how many arrays does one conversion need at its peak, beyond its source?

An array is converted between two looks at the kernel's high-water mark: a view adds none, a copy
one, a copy of a copy two if both are there at once. It is measured at a size of its own: large
enough to be seen among a process's other pages, and larger than what glibc's malloc ever keeps when
it is freed (``M_MMAP_THRESHOLD`` grows to 32 MiB). What takes more than a copy is tried again of
aligned memory (``aligned_arrays``). It knows host memory only, and says ``unknown`` where the
kernel does not let the mark be reset.

The mark is ``VmHWM``: the largest resident set since ``/proc/self/clear_refs`` was written, what
was given back meanwhile included; see ``proc_pid_clear_refs(5)``. It is blind to memory that a
framework kept from an earlier call and uses again, so freed memory is given back before. The pages
that were touched (``Referenced``) would see kept memory, and were tried: they rose by half an array
more with nothing running.
"""

from __future__ import annotations

import ctypes
import gc
import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from dlprof.probes.base import DTYPES, ArraySpec
from dlprof.protocol.messages import unknown
from dlprof.worker import memory, timer
from dlprof.worker.memory import resident_bytes
from dlprof.worker.subject import Subject

HIGH_WATER = "5"
"""What ``clear_refs`` forgets."""
LOOK_S = 0.01
QUIET_LOOKS, MOST_LOOKS = 3, 100


def begin_mark() -> int:
    """Forget the peak so far; the resident bytes now. Raises OSError where that is not allowed."""
    give_back()
    resident = settled_bytes()
    reset_mark()
    return resident


def settled_bytes() -> int:
    """The resident set when it falls no more: frameworks free memory in threads of their own."""
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
    """The most memory that was new to the process at once since :func:`begin_mark`.

    Raises OSError.
    """
    return max(high_water_bytes() - before, 0)


def give_back() -> None:
    """Return freed memory to the kernel: a copy into memory that is still resident hides."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def reset_mark() -> None:
    """Forget the peak. Raises OSError."""
    Path("/proc/self/clear_refs").write_text(HIGH_WATER, encoding="ascii")


def high_water_bytes() -> int:
    """The resident set's peak. Raises OSError."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise OSError(0, "no VmHWM")


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
        return unknown("only host memory has a high-water mark")
    other = _of_size(subject)
    size = other.spec.size_bytes
    if size < LEAST_BYTES:
        return unknown(f"the array is too small to be seen: {size:,} of {LEAST_BYTES:,} bytes")
    try:
        memory.check_room(other.spec)
        arrays = converting_arrays(other)
    except memory.TooLarge as reason:
        return unknown(str(reason))
    except OSError as error:
        return unknown(f"the high-water mark cannot be read or reset: {error.strerror}")
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
    few.wait_for(few.converting(few.make_another())())
    other = _of_size(subject)
    convert = other.converting(other.make_another())
    before = begin_mark()
    for _ in range(2):
        other.wait_for(convert())
    return risen_bytes(before) / other.spec.size_bytes


def making_arrays(subject: Subject) -> float:
    """Peak of making a source, in arrays of its size. Raises OSError where the mark is no use."""
    other = _of_size(subject)
    other.make_another()
    before = begin_mark()
    made = other.make_another()
    risen = risen_bytes(before)
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
    convert = subject.converting(subject.make_another())
    # What is kept for good is not the conversion's. The first result stays: what is freed meanwhile
    # would hide what is taken.
    first = convert()
    subject.wait_for(first)
    before = begin_mark()
    with timer.collector_off():  # it would touch all of the heap
        result = convert()
        subject.wait_for(result)
        peak = risen_bytes(before)
    del first, result
    return peak


def watch(subject: Subject) -> int | None:
    """The mark before a conversion whose peak is then :func:`risen_bytes`.

    None where that cannot be seen: on a device, in an array too small, or by this kernel.
    """
    if subject.spec.device != "cpu" or subject.result_device != "cpu":
        return None
    if subject.spec.size_bytes < LARGE_BYTES:
        return None
    try:
        return begin_mark()
    except OSError:
        return None


STEP = 0.25
"""Peaks are rounded up to such a part of an array, beyond :data:`NOISE_ARRAYS`."""
NOISE_ARRAYS = 0.1
"""Some megabytes of an array of :data:`peak_memory.SIZE_BYTES`; of a large one they are nothing."""


def check_forecast(small: Subject, spec: ArraySpec) -> None:
    """Raises :class:`memory.TooLarge` where the arrays that ``spec`` needs do not fit.

    The usual guess is several arrays alive at once. Where memory is too short for it, the path says
    itself what it needs: making and converting a ``small`` array are watched by the kernel's mark.
    """
    try:
        made, converted = making_arrays(small), whole_arrays(small)
    except OSError:
        memory.check_room(spec)
        return
    arrays = max(_rounded(made), 1 + _rounded(converted))
    memory.check_room(spec, arrays, f", as seen at {SIZE_BYTES >> 20} MiB")


def _rounded(arrays: float) -> float:
    return math.ceil(max(arrays - NOISE_ARRAYS, 0.0) / STEP) * STEP
