"""Which slowdown matters: a floor for each measure, relative and absolute."""

from __future__ import annotations

import math
from dataclasses import dataclass

MEASURES = ("ready", "host", "first_call", "device")
"""What can be compared as a time; see docs/session-file.md for each."""


@dataclass(frozen=True)
class Floor:
    """A slowdown matters where it exceeds both: ``relative`` (0.05 is 5 %) and ``absolute_ns``."""

    measure: str = "ready"
    relative: float = 0.05
    absolute_ns: float = 5.0

    def step(self, base_ns: float) -> float:
        """The floor for a case that takes ``base_ns``, as a difference of logarithms.

        The larger of the two floors: a slowdown of that size exceeds both.
        """
        share = self.absolute_ns / base_ns if base_ns > 0 else math.inf
        return math.log1p(max(self.relative, share))


DEFAULT = (Floor(),)
"""5 %, and 5 ns so that a view of 50 ns is not judged by the resolution of its loop."""
