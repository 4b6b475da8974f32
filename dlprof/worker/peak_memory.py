"""Peak memory: how many arrays does one conversion need at its peak, beyond its source?

The kernel's high-water mark of the resident set is reset, an array is converted, and the mark is
read: a view adds none, a copy one, a copy of a copy two. It is measured at a size of its own, large
enough to be seen among a process's other pages. It knows host memory only, and says ``unknown``
where the kernel does not let the mark be reset.
"""

from __future__ import annotations

import ctypes
import gc
import statistics
from pathlib import Path
from typing import Any

from dlprof.probes.base import DTYPES
from dlprof.worker import room
from dlprof.worker.host_memory import resident_bytes
from dlprof.worker.subject import Subject, compile_call

SIZE_BYTES = 16 << 20
LEAST_BYTES = 4 << 20
"""An array of a user's own may be smaller; other pages of the process would hide it."""
REPEATS = 2
NOTABLE_ARRAYS = 1.5
"""From here on it is more than a copy, and the evidence says how the array was made."""


def measure(subject: Subject) -> dict[str, Any]:
    """Verdict ``ok`` with ``arrays``, the peak as a multiple of the source, or ``unknown``."""
    if subject.spec.device != "cpu" or subject.result_device != "cpu":
        return _unknown("only host memory has a high-water mark")
    other = subject.of_elements(SIZE_BYTES // DTYPES.get(subject.spec.dtype, 1))
    size = other.spec.size_bytes
    if size < LEAST_BYTES:
        return _unknown(f"the array is too small to be seen: {size:,} of {LEAST_BYTES:,} bytes")
    try:
        room.check(other.spec)
        peaks = [_peak_bytes(other) for _ in range(REPEATS)]
    except room.TooLarge as reason:
        return _unknown(str(reason))
    except OSError as error:
        return _unknown(f"the high-water mark cannot be read or reset: {error.strerror}")
    arrays = statistics.median(peaks) / size
    evidence: dict[str, Any] = {"arrays": arrays, "size_bytes": size}
    if arrays >= NOTABLE_ARRAYS:
        evidence["create"] = other.producer.create(other.spec)
    return {"verdict": "ok", "evidence": evidence}


def _peak_bytes(subject: Subject) -> int:
    source = subject.make_another()
    convert = compile_call(subject.code, {**subject.namespace, "x": source})
    subject.wait_for(convert())  # what is kept for good is not the conversion's
    _give_back()
    before = resident_bytes()
    _reset_high_water()
    result = convert()
    subject.wait_for(result)
    peak = _high_water_bytes()
    del result
    return max(peak - before, 0)


def _give_back() -> None:
    """Return freed memory to the kernel: a copy into memory that is still resident hides."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _reset_high_water() -> None:
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _high_water_bytes() -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise OSError(0, "no VmHWM")


def _unknown(reason: str) -> dict[str, Any]:
    return {"verdict": "unknown", "evidence": {"reason": reason}}
