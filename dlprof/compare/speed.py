"""The speed of one machine in two sessions, by what no framework has a part in.

A virtual machine, or one with a governor, is not equally fast on two days. Reference costs are
measured in both sessions (:mod:`dlprof.worker.reference`), and HEAD's times are divided by what
they took longer: those of large copies by the memcpy's ratio, all others by the mean of those
of an empty call and of a piece of Python.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from dlprof.compare.process import Side
from dlprof.compare.surroundings import differences
from dlprof.session import Header, Reference

MOST = 1.25
"""A machine that is more than so many times as fast as another is another machine: caches, memory
and clocks no longer go together, and no one number says how much of it a conversion meets."""

LEAST = 1.02
"""What is closer to 1 is not divided by: it would add the noise of the references, and no more."""

LEAST_PROCESSES = 3
"""References of fewer rounds may have been disturbed by anything."""


@dataclass(frozen=True)
class Speed:
    """HEAD's reference costs over BASE's: above 1 the machine was slower for HEAD."""

    call: float
    python: float
    memcpy: float

    @property
    def instructions(self) -> float:
        """What times are divided by that are spent on instructions rather than on memory."""
        return _notable(math.sqrt(self.call * self.python))

    @property
    def copies(self) -> float:
        """What times of large copies are divided by."""
        return _notable(self.memcpy)

    @property
    def far(self) -> bool:
        """Whether the machine is too far from what it was to be normalised."""
        ratios = (self.call, self.python, self.memcpy)
        return any(not 1 / MOST <= ratio <= MOST for ratio in ratios)

    def __str__(self) -> str:
        return (
            f"an empty call took {self.call:.2f}, Python {self.python:.2f} and a memcpy "
            f"{self.memcpy:.2f} times as long as for BASE"
        )

    def normalised(self, side: Side, copies: bool) -> Side:
        """HEAD's processes as the machine of BASE would have run them."""
        ratio = self.copies if copies else self.instructions
        return tuple(process.times(1 / ratio) for process in side)


def why_unknown(before: Header, after: Header) -> str | None:
    """Why the references do not tell how fast the machine was; None where they do."""
    if any(one.kind == "python" for one in differences(before, after)):
        return "The reference costs are of different Pythons"
    base, head = _common(before, after)
    if before.references and after.references and not (base or head):
        return "BASE and HEAD have reference costs of no common environment"
    for name, side in (("BASE", base), ("HEAD", head)):
        if not side:
            return f"{name} has no reference costs"
        count = len({one.round for one in side})
        if count < LEAST_PROCESSES:
            rounds = f"{count} round{'' if count == 1 else 's'}"
            return f"{name} has reference costs of {rounds}, and {LEAST_PROCESSES} are needed"
    if {one.memcpy_bytes for one in base} != {one.memcpy_bytes for one in head}:
        return "BASE and HEAD timed a memcpy of different sizes"
    return None


def _common(before: Header, after: Header) -> tuple[Sequence[Reference], Sequence[Reference]]:
    """The reference costs of the environments that both have: one is another Python as a rule. All,
    where neither has several.
    """
    sides = before.references, after.references
    old, new = ({one.environment for one in side} for side in sides)
    if len(old) <= 1 and len(new) <= 1:
        return sides
    base, head = ([one for one in side if one.environment in old & new] for side in sides)
    return base, head


def _notable(ratio: float) -> float:
    return 1.0 if 1 / LEAST <= ratio <= LEAST else ratio


def speed(before: Header, after: Header) -> Speed | None:
    """How fast the machine was; None where it cannot be told, see :func:`why_unknown`."""
    if why_unknown(before, after) is not None:
        return None
    base, head = _common(before, after)
    ratios = {
        name: statistics.median(getattr(one, name) for one in head)
        / statistics.median(getattr(one, name) for one in base)
        for name in ("empty_call_ns", "python_ns", "memcpy_ns")
    }
    return Speed(ratios["empty_call_ns"], ratios["python_ns"], ratios["memcpy_ns"])
