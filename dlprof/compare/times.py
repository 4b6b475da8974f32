"""From the processes of both sides to one word for each time, with its ratio and the reason."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from dlprof.compare.criteria import Criteria
from dlprof.compare.matching import Key
from dlprof.compare.processes import median_ns
from dlprof.compare.samples import Sample, Tested, Untestable, bound, proofs_of, tested
from dlprof.compare.sequential import IN_TURNS, WIDE_LIMIT
from dlprof.compare.verdicts import RACE_LOOKS
from dlprof.judge.slower import (
    FAMILY_LEVEL,
    MARGIN,
    SAME,
    SAME_LEVEL,
    UNSURE,
    WIDE,
    decide,
    is_likely_slower,
)
from dlprof.runner.floors import Floor

ACROSS_SESSIONS = 0.1
"""The least relative floor of two finished sessions: less than this is not told apart from what a
machine does between two days."""

LARGEST_FLOOR = 0.3
"""A case that needs a larger floor is too noisy to gate: a conversion that takes a third longer is
what a gate is for, and a floor above that lets it pass."""

MOST_LOG = 700.0
"""Larger logarithms are of no number that a float can hold."""


@dataclass(frozen=True)
class Time:
    """What one measure says of one case.

    ``ratio`` is HEAD's time over BASE's and ``interval`` its 95 % interval. ``corrected`` is the
    interval at one case's share of the suite's level: its lower end decides on SLOWER. ``bound`` is
    the ratio that a time which is WIDE does not exceed. Each is None if it is not known. ``reason``
    says why the word is WIDE, UNSURE or INVALID, ``note`` what else there is to know.
    """

    measure: str
    word: str
    floor: Floor
    base_ns: float | None = None
    head_ns: float | None = None
    ratio: float | None = None
    interval: tuple[float, float] | None = None
    corrected: tuple[float, float] | None = None
    bound: float | None = None
    processes: tuple[int, int] = (0, 0)
    reason: str = ""
    note: str = ""

    @property
    def is_likely_slower(self) -> bool:
        """Whether it is WIDE, and slower by more than half the floor if it alone were judged."""
        if self.word != WIDE or self.interval is None:
            return False
        return is_likely_slower(math.log(self.interval[0]), self.floor.step(self.base_ns or 0.0))


@dataclass(frozen=True)
class Settings:
    """How to compare.

    ``own_floors`` are those of single cases, by :func:`~dlprof.compare.matching.key`. ``decided``
    are the words of a gate that looked more than once, by case and measure. ``across_pythons`` says
    that two versions of Python are what is compared. ``race_looks`` is how many processes of a side
    in turns looked for a race, if they saw none. A time that is WIDE passes if it is slower by
    ``wide_limit`` at most (0.25 is 25 %) and not likely slower, and never if ``strict``.

    ``drifts`` are what sessions of equal code may differ by, from a calibration, by case and
    measure: differences of logarithms, None for one that runs in modes. Without a calibration it is
    None.
    """

    criteria: Criteria = field(default_factory=Criteria)
    own_floors: Mapping[Key, tuple[Floor, ...]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    in_turns: bool = False
    decided: Mapping[tuple[Key, str], str] = field(default_factory=lambda: MappingProxyType({}))
    across_pythons: bool = False
    race_looks: int = RACE_LOOKS
    wide_limit: float = WIDE_LIMIT
    strict: bool = False
    drifts: Mapping[tuple[Key, str], float | None] | None = None

    def passes(self, time: Time) -> bool:
        """Whether a time that is WIDE is no doubt. Of 720 times of equal code none was likely
        slower (docs/results/gates.md).
        """
        is_below = time.bound is not None and time.bound <= 1 + self.wide_limit
        return is_below and not (self.strict or time.is_likely_slower)

    @property
    def level(self) -> float:
        """The chance of any false SLOWER: of a gate in turns, at one of its late looks."""
        return IN_TURNS.level * IN_TURNS.shares[-1] if self.in_turns else FAMILY_LEVEL

    @property
    def floors(self) -> tuple[Floor, ...]:
        """Those of all cases; wider ones for two finished sessions."""
        return self._least(self.criteria.floors)

    def floors_of(self, name: Key) -> tuple[Floor, ...]:
        """The floors of one case; none if no times of it are judged."""
        if not self.criteria.times:
            return ()
        floors = self._least(self.own_floors.get(name, self.criteria.floors))
        if self.in_turns or self.drifts is None:
            return floors
        drifts = [self.drifts.get((name, floor.measure)) or 0.0 for floor in floors]
        return tuple(
            floor.at_least(math.expm1(drift)) for floor, drift in zip(floors, drifts, strict=True)
        )

    def _least(self, floors: Sequence[Floor]) -> tuple[Floor, ...]:
        least = 0.0 if self.in_turns else ACROSS_SESSIONS
        return tuple(floor.at_least(least) for floor in floors)


def judge(
    samples: Sequence[Sample],
    level: float = FAMILY_LEVEL,
    decided: Sequence[str | None] = (),
) -> tuple[list[Time], float]:
    """One time for each sample of a suite, and the shift that all share.

    ``decided`` are words that stand already. The chance of a false SLOWER is that of all samples
    together.
    """
    own_level = level / max(len(samples), 1)
    tests = [tested(sample, own_level) for sample in samples]
    proofs, common = proofs_of(samples, tests)
    words = decide(proofs, level)
    stands = decided or [None] * len(words)
    times = [
        _time(sample, test, stand or word, own_level)
        for sample, test, word, stand in zip(samples, tests, words, stands, strict=True)
    ]
    return times, common


def _time(sample: Sample, test: Tested | Untestable, word: str, level: float) -> Time:
    found = Time(
        sample.floor.measure,
        word,
        sample.floor,
        base_ns=median_ns(sample.base),
        head_ns=median_ns(sample.head),
        processes=(len(sample.base), len(sample.head)),
    )
    if isinstance(test, Untestable):
        return replace(found, reason=test.reason)
    interval = test.test.interval(SAME_LEVEL)
    found = replace(
        found,
        ratio=_ratio(test.test.location),
        interval=_ratios(interval),
        corrected=_ratios(test.test.interval(level)),
        note=test.note,
    )
    asked = sample.floor.asked.step(found.base_ns or 0.0)
    if word == SAME and interval[0] > MARGIN * asked and interval[1] >= asked < sample.step:
        reason = f"surely slower, but by less than its floor of {100 * sample.floor.relative:g} %"
        return replace(found, word=UNSURE, reason=reason)
    if word == SAME and sample.doubt:
        return replace(found, word=UNSURE, reason=sample.doubt)
    if word != UNSURE:
        return found
    found = replace(found, reason=sample.doubt or _why_open(test))
    most = bound(sample, IN_TURNS.bound_level(len(sample.head)))
    # Between two sessions the machine may be what makes it slower: then the bound is no answer.
    is_likely = is_likely_slower(interval[0], sample.step)
    if most is None or (is_likely and not sample.in_turns):
        return found
    return replace(found, word=WIDE, bound=_ratio(most))


def _why_open(test: Tested) -> str:
    if test.note:
        return "it may be otherwise in other modes"
    low, high = test.test.interval(SAME_LEVEL)
    base, head = len(test.base), len(test.head)
    count = f"{base} and {head} processes" if base != head else f"{base} processes a side"
    if low <= 0 <= high:
        return f"left open: {count}"
    return f"{'slower' if low > 0 else 'faster'}, but not surely by enough: {count}"


def _ratios(interval: tuple[float, float]) -> tuple[float, float] | None:
    low, high = map(_ratio, interval)
    return None if low is None or high is None else (low, high)


def _ratio(logarithm: float) -> float | None:
    return math.exp(logarithm) if abs(logarithm) < MOST_LOG else None
