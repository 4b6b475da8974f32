"""Where a round stands that takes turns with another one."""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

SERIES = ("loop cost", "host time", "idle wait", "ready time")
"""What a worker takes turns for, in its order; see ``dlprof.worker.turns``."""


class Stop(NamedTuple):
    """Before ``case`` is asked for; or, with a ``series``, before one of its samples."""

    case: int
    series: str = ""


Round = Generator[Stop, None, None]
"""A round of one side: each time it is resumed it has the machine for itself until it stops."""
