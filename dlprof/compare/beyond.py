"""What is slower than one floor and within another, larger one.

A floor that a calibration raised says what the machine can tell, and not that a smaller slowdown
does not matter: within it, what is slower than was asked for is known to be neither fine nor bad.
"""

from __future__ import annotations

import math
from dataclasses import replace

from dlprof.compare.decision import MARGIN, SAME, UNSURE
from dlprof.compare.record import Time
from dlprof.plan.floors import Floor


def beyond(time: Time, floor: Floor) -> bool:
    """Whether a time's 95 % interval says SLOWER by ``floor``: above half of it, and not within."""
    if time.interval is None or not time.base_ns:
        return False
    low, high = time.interval
    step = floor.step(time.base_ns)
    return low > math.exp(MARGIN * step) and high >= math.exp(step)


def doubted(time: Time) -> Time:
    """The time; UNSURE where only a raised floor makes SAME of what surely is slower than asked.

    What may be slower than was asked for, and surely is within the raised floor, is SAME by it.
    """
    floor = time.floor
    if time.word != SAME or floor.raised_from is None or not beyond(time, floor.asked):
        return time
    reason = (
        f"slower than the {100 * floor.raised_from:g} % asked for, but within what this machine "
        f"can tell, {100 * floor.relative:g} %"
    )
    return replace(time, word=UNSURE, reason=reason, beyond=True)
