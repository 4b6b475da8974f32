"""Peak memory: how many arrays does one conversion need at its peak, beyond its source?

The kernel's high-water mark tells: ``VmHWM`` is the largest resident set since
``/proc/self/clear_refs`` was written (proc_pid_clear_refs(5)). Memory that a framework kept from an
earlier call does not show, so freed memory is returned to the kernel before.

Verdicts: ``ok``, ``unknown`` (for small arrays, with a device, and if the mark cannot be reset).
"""

from __future__ import annotations

import gc
import statistics
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
SIZE_BYTES = 40 << 20
LEAST_BYTES = 4 << 20
"""Other pages of the process would hide a smaller array of a user's own."""
LOOKS = 2
NOTABLE_ARRAYS = 1.5
"""From here on it is more than a copy, and the evidence says how the array was made."""


def measure(subject: Subject) -> dict[str, Any]:
    if {subject.spec.device, subject.result_device} != {"cpu"}:
        return unknown("only host memory is watched")
    trial = subject.of_bytes(SIZE_BYTES)
    size = trial.spec.size_bytes
    if size < LEAST_BYTES:
        return unknown("the array is too small to be seen")
    memory.check_room(trial.spec)
    convert = trial.converter(trial.make_another())
    try:
        # No array may be a copy that was hidden.
        arrays = statistics.fmean(_peak_bytes(trial, convert) for _ in range(LOOKS)) / size
    except OSError as error:
        return unknown(f"the high-water mark cannot be read or reset: {error.strerror}")
    evidence: dict[str, Any] = {"arrays": arrays, "size_bytes": size}
    if arrays >= NOTABLE_ARRAYS:
        evidence |= trial.array_evidence()
    return {"verdict": "ok", "evidence": evidence}


def _peak_bytes(subject: Subject, convert: Callable[[], Any]) -> int:
    """Return the peak of one conversion. Raises OSError."""
    # Memory kept since a first conversion does not count. Its result stays: freed memory would hide
    # new memory.
    first = convert()
    subject.wait_for(first)
    before = reset_mark()
    with timer.collector_off():  # it would touch the whole heap
        result = convert()
        subject.wait_for(result)
        peak = max(high_water_bytes() - before, 0)
    del first, result
    return peak


def reset_mark() -> int:
    """Forget the peak; return the resident bytes. Raises OSError if that is not allowed."""
    gc.collect()
    memory.trim()  # a copy into memory that is still resident would hide
    # Frameworks free memory in threads of their own: wait until the resident set stops falling.
    least, quiet = resident_bytes(), 0
    for _ in range(MOST_LOOKS):
        if quiet == QUIET_LOOKS:
            break
        time.sleep(LOOK_S)
        now = resident_bytes()
        quiet = quiet + 1 if now >= least else 0
        least = min(least, now)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return least


def high_water_bytes() -> int:
    """Return the resident set's peak. Raises OSError."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise OSError(0, "no VmHWM")
