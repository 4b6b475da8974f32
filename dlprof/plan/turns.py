"""Where a round stands that takes turns with another one."""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

SERIES = ("loop cost", "host time", "idle wait", "ready time")
"""What a worker takes turns for, in its order; see ``dlprof.worker.turns``."""


class Stop(NamedTuple):
    """Before ``case`` is asked for; or, with a ``series``, before one of its samples.

    ``calls`` is of how many calls it is to be.
    """

    case: int
    series: str = ""
    calls: int = 0


Round = Generator[Stop, int | None, None]
"""A round of one side: each time it is resumed it has the machine for itself until it stops. It may
be sent how many calls the sample is to be of."""
