"""Will a large case fit? Its path says so itself, on a small array, before the large one is made.

The usual guess is several arrays alive at once. Where memory is too short for it, making an array
and converting it are watched at a small size, by the kernel's high-water mark, and the case is run
if as many arrays of its own size fit: a view adds none to the source, a copy one, a copy of a copy
two.
"""

from __future__ import annotations

import math

from dlprof.probes.base import ArraySpec
from dlprof.worker import room
from dlprof.worker.instruments import peak_memory
from dlprof.worker.subject import Subject

STEP = 0.25
"""Peaks are rounded up to such a part of an array, beyond :data:`NOISE_ARRAYS`."""
NOISE_ARRAYS = 0.1
"""Some megabytes of an array of :data:`peak_memory.SIZE_BYTES`; of a large one they are nothing."""


def check(small: Subject, spec: ArraySpec) -> None:
    """Raises :class:`room.TooLarge` where the arrays that ``spec`` needs do not fit.

    ``small`` is the same path on a small array.
    """
    try:
        made, converted = peak_memory.making_arrays(small), peak_memory.whole_arrays(small)
    except OSError:
        room.check(spec)
        return
    arrays = max(_rounded(made), 1 + _rounded(converted))
    room.check(spec, arrays, f", as seen at {peak_memory.SIZE_BYTES >> 20} MiB")


def _rounded(arrays: float) -> float:
    return math.ceil(max(arrays - NOISE_ARRAYS, 0.0) / STEP) * STEP
