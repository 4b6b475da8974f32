"""The speed of one machine in two sessions, by what no framework has a part in.

A virtual machine, or one with a governor, is not equally fast on two days. Reference costs are
measured in both sessions (:mod:`dlprof.worker.reference`), and HEAD's times are divided by what
they took longer: those of large copies by the memcpy's ratio, all others by the mean of those
of an empty call and of a piece of Python.

What the references do not prove to have changed is not divided by, and what they leave open counts
as uncertain: where their kinds contradict each other, how much it is, and beside other programs.
There an empty call took 22 ns in one session and 25 ns in the next, when views took 497 and 501;
36 ns were seen, too.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from dlprof.compare.process import Side
from dlprof.compare.ranks import ranks
from dlprof.compare.surroundings import differences
from dlprof.session.machine import NOTABLE_CORES
from dlprof.session.model import Header, Reference

MOST = 1.25
"""A machine that is more than so many times as fast as another is another machine: caches, memory
and clocks no longer go together, and no one number says how much of it a conversion meets."""

LEAST = 1.02
"""What is closer to 1 is not divided by: it would add the noise of the references, and no more."""

LEAST_PROCESSES = 3
"""References of fewer rounds may have been disturbed by anything."""


RANGE_LEVEL = 0.025
"""Both ends of a 95 % interval of each ratio; the whole range of rounds that are too few for it."""

MOST_LOG = 700.0
LARGE = 100.0

COSTS = MappingProxyType({"call": "empty_call_ns", "python": "python_ns", "memcpy": "memcpy_ns"})
BOTH = "instructions"
"""The range of the mean of an empty call and of Python, round by round."""

Range = tuple[float, float]


@dataclass(frozen=True)
class Speed:
    """HEAD's reference costs over BASE's: above 1 the machine was slower for HEAD.

    ``ranges`` are the lowest and the highest ratio that the rounds leave open of each. ``loaded``
    where other programs ran beside: conversions may not have met what the references met.
    """

    call: float
    python: float
    memcpy: float
    ranges: Mapping[str, Range] = field(default_factory=dict)
    loaded: bool = False

    @property
    def instructions(self) -> float:
        """What times are divided by that are spent on instructions rather than on memory."""
        return self._proven(math.sqrt(self.call * self.python), BOTH)

    @property
    def copies(self) -> float:
        """What times of large copies are divided by."""
        return self._proven(self.memcpy, "memcpy")

    def _proven(self, ratio: float, name: str) -> float:
        """1 where the rounds do not prove that anything changed: an empty call takes 22 ns in one
        process and 27 in the next.
        """
        low, high = self.ranges.get(name, (ratio, ratio))
        return 1.0 if low <= 1.0 <= high else _notable(ratio)

    @property
    def far(self) -> bool:
        """Whether the machine is too far from what it was to be normalised."""
        ratios = (self.call, self.python, self.memcpy)
        return any(not 1 / MOST <= ratio <= MOST for ratio in ratios)

    def __str__(self) -> str:
        call, python, memcpy = (
            f"{ratio:.2f}" if ratio < LARGE else f"{ratio:.3g}"
            for ratio in (self.call, self.python, self.memcpy)
        )
        costs = f"an empty call took {call}, Python {python} and a memcpy {memcpy} times"
        return f"{costs} as long as for BASE"

    def normalised(self, side: Side, copies: bool) -> Side:
        """HEAD's processes as the machine of BASE would have run them; as they are of another."""
        ratio = self.copies if copies else self.instructions
        return side if self.far else tuple(process.times(1 / ratio) for process in side)

    def open(self, copies: bool) -> Range:
        """The lowest and the highest ratio that times may have to be divided by; what is next to
        nothing is nothing here, too.
        """
        ratio = self.copies if copies else self.instructions
        if self.far:
            return ratio, ratio
        if copies or self._agree:
            name = "memcpy" if copies else BOTH
            known = [] if ratio == 1.0 else [*self.ranges.get(name, ())]
        else:
            known = [*self.ranges["call"], *self.ranges["python"]]
        ends = [ratio, *known, *([1.0] * self.loaded)]
        low, high = min(ends), max(ends)
        return (1.0, 1.0) if _notable(low) == _notable(high) == 1.0 else (low, high)

    @property
    def _agree(self) -> bool:
        """Whether a call and Python may have changed alike."""
        ranges = [self.ranges.get(name, (0.0, math.inf)) for name in ("call", "python")]
        return max(low for low, _ in ranges) <= min(high for _, high in ranges)

    def doubt(self, copies: bool) -> Range:
        """The same against what they are divided by, in logarithms: 0 or below, and 0 or above."""
        ratio = self.copies if copies else self.instructions
        low, high = self.open(copies)
        return (0.0, 0.0) if low == high else (math.log(low / ratio), math.log(high / ratio))


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
    sides = {
        name: tuple([float(getattr(one, cost)) for one in side] for side in (base, head))
        for name, cost in COSTS.items()
    }
    return Speed(
        **{
            name: statistics.median(new) / statistics.median(old)
            for name, (old, new) in sides.items()
        },
        ranges={
            **{name: _range(old, new) for name, (old, new) in sides.items()},
            BOTH: _range(*(_means(sides["call"][n], sides["python"][n]) for n in range(2))),
        },
        loaded=any((one.foreign_cores or 0.0) > NOTABLE_CORES for one in (before, after)),
    )


def _means(calls: Iterable[float], pythons: Iterable[float]) -> list[float]:
    # Of roots, since the product of two short times may be none.
    return [math.sqrt(one) * math.sqrt(other) for one, other in zip(calls, pythons, strict=True)]


def _range(base: Iterable[float], head: Iterable[float]) -> Range:
    """What the rounds leave open of a ratio, by Mann and Whitney's test."""
    test = ranks(np.log(list(base)), np.log(list(head)))
    low, high = (float(end) for end in test.interval(RANGE_LEVEL))
    if math.isinf(low):
        low, high = float(test.ordered[0]), float(test.ordered[-1])
    low, high = (math.exp(min(max(end, -MOST_LOG), MOST_LOG)) for end in (low, high))
    return low, high
