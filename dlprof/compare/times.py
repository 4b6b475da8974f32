"""From the processes of both sides to one word for each time, with its ratio and the reason."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from dlprof.analysis.slower import FAMILY_LEVEL, MARGIN, SAME, SAME_LEVEL, UNSURE, decide
from dlprof.compare.matching import Key
from dlprof.compare.processes import median_ns
from dlprof.compare.samples import APART, Refusal, Sample, Tested, least_rounds, proofs_of, tested
from dlprof.plan.floors import DEFAULT, Floor

ACROSS_SESSIONS = 0.1
"""The least relative floor of two finished sessions: less than this is not told apart from what a
machine does between two days."""

NOTABLE_SHARE = 0.2
"""A common shift of less than this share of the floor is not worth a word."""

MOST_ROUNDS = 100
"""More rounds are not advised: what they would tell is not worth the time."""

MOST_LOG = 700.0
"""Larger logarithms are of no number that a float can hold."""


@dataclass(frozen=True)
class Time:
    """What one measure says of one case.

    ``ratio`` is HEAD's time over BASE's and ``interval`` its 95 % interval. ``corrected`` is the
    interval at one case's share of the suite's level: its lower end decides on SLOWER. Each is None
    if it is not known. ``rounds`` is about how many would tell; None if that is not known, or if it
    is too ``noisy`` for any number worth taking. ``shifted`` says that a shift of all cases leaves
    it open, ``beyond`` that it is slower than asked for and within a raised floor.
    """

    measure: str
    word: str
    floor: Floor
    base_ns: float | None = None
    head_ns: float | None = None
    ratio: float | None = None
    interval: tuple[float, float] | None = None
    corrected: tuple[float, float] | None = None
    processes: tuple[int, int] = (0, 0)
    reason: str = ""
    note: str = ""
    rounds: int | None = None
    shifted: bool = False
    noisy: bool = False
    beyond: bool = False


@dataclass(frozen=True)
class Settings:
    """How to compare.

    ``floors`` has one floor per measure, and ``own_floors`` those of single cases instead (by
    :func:`~dlprof.compare.matching.key`). ``decided`` are the words of a gate that looked more than
    once, by case and measure. ``level`` is that of the suite. ``across_pythons`` says that two
    versions of Python are what is compared.
    """

    floors: tuple[Floor, ...] = DEFAULT
    own_floors: Mapping[Key, tuple[Floor, ...]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    in_turns: bool = False
    decided: Mapping[tuple[Key, str], str] = field(default_factory=lambda: MappingProxyType({}))
    across_pythons: bool = False
    level: float = FAMILY_LEVEL

    def widened(self) -> Settings:
        """The same with the wider floors of two finished sessions."""
        if self.in_turns:
            return self
        own = {name: _at_least(floors) for name, floors in self.own_floors.items()}
        return replace(self, floors=_at_least(self.floors), own_floors=own)

    def floors_of(self, name: Key) -> tuple[Floor, ...]:
        return self.own_floors.get(name, self.floors)


def _at_least(floors: Sequence[Floor]) -> tuple[Floor, ...]:
    return tuple(floor.at_least(ACROSS_SESSIONS) for floor in floors)


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
        _time(sample, test, stand or word, own_level, common)
        for sample, test, word, stand in zip(samples, tests, words, stands, strict=True)
    ]
    return times, common


def _time(sample: Sample, test: Tested | Refusal, word: str, level: float, common: float) -> Time:
    found = Time(
        sample.floor.measure,
        word,
        sample.floor,
        base_ns=median_ns(sample.base),
        head_ns=median_ns(sample.head),
        processes=(len(sample.base), len(sample.head)),
    )
    if isinstance(test, Refusal):
        return replace(found, reason=test.reason, rounds=test.rounds)
    found = replace(
        found,
        ratio=_ratio(test.test.location),
        interval=_ratios(test.test.interval(SAME_LEVEL)),
        corrected=_ratios(test.test.interval(level)),
        note=test.note,
    )
    if word == SAME:
        return _within_a_raised_floor(found)
    return _explained(found, sample, test, (level, common)) if word == UNSURE else found


def _within_a_raised_floor(time: Time) -> Time:
    """UNSURE if only a raised floor makes SAME of what surely is slower than asked for."""
    if time.floor.raised_from is None or not is_beyond(time, time.floor.asked):
        return time
    reason = (
        f"slower than the {100 * time.floor.raised_from:g} % asked for, but within what can be "
        f"told here, {100 * time.floor.relative:g} %"
    )
    return replace(time, word=UNSURE, reason=reason, beyond=True)


def is_beyond(time: Time, floor: Floor) -> bool:
    """Whether a time's 95 % interval says SLOWER by ``floor``: above half of it, and not within."""
    if time.interval is None or not time.base_ns:
        return False
    low, high = time.interval
    step = floor.step(time.base_ns)
    return low > math.exp(MARGIN * step) and high >= math.exp(step)


def _explained(
    found: Time, sample: Sample, test: Tested, level_and_common: tuple[float, float]
) -> Time:
    """Why it is unsure, and what would help."""
    level, common = level_and_common
    if test.note:
        return replace(found, reason="it may be otherwise in other modes")
    low, high = test.test.interval(SAME_LEVEL)
    direction = "slower" if low > 0 else "faster" if high < 0 else ""
    if _is_shifted(low, high, sample.step, common):
        reason = f"{direction or 'the same'}, but all cases have shifted: machine or code"
        return replace(found, reason=reason, shifted=True)
    if direction and test.least == APART and abs(test.test.location) <= APART:
        return replace(found, reason=f"{direction}, but two sessions differ by as much")
    base, head = len(test.base), len(test.head)
    alike = f"{base} process{'es' * (base != 1)} a side"
    count = f"{base} and {head} processes" if base != head else alike
    reason = f"{direction}, but not surely by enough" if direction else "left open"
    rounds = _rounds_advised(sample, test, level)
    return replace(found, reason=f"{reason}: {count}", rounds=rounds, noisy=rounds is None)


def _is_shifted(low: float, high: float, step: float, common: float) -> bool:
    """Whether what all cases share, if it is not next to nothing, is what leaves it open."""
    if abs(common) < NOTABLE_SHARE * step:
        return False
    inside = -step < low and high < step
    return inside or (low > 0 and common > 0) or (high < 0 and common < 0)


def _rounds_advised(sample: Sample, test: Tested, level: float) -> int | None:
    """About how many rounds would narrow the interval to half the floor on either side.

    In turns to the floor, which would tell SAME: so far a gate goes.
    """
    low, high = test.test.interval(SAME_LEVEL)
    now, least = min(len(test.base), len(test.head)), least_rounds(level)
    if math.isinf(high):  # so few say nothing of the noise
        return least
    room = 2 * sample.step if sample.in_turns else sample.step
    wide = min((high - low) / room, MOST_ROUNDS)
    needed = max(math.ceil(now * wide**2), now + 1, least)
    return needed if needed <= MOST_ROUNDS else None


def _ratios(interval: tuple[float, float]) -> tuple[float, float] | None:
    low, high = map(_ratio, interval)
    return None if low is None or high is None else (low, high)


def _ratio(logarithm: float) -> float | None:
    return math.exp(logarithm) if abs(logarithm) < MOST_LOG else None
