"""Judge the times of a suite: from the processes of both sides to one word for each case."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from dlprof.compare.beyond import doubted
from dlprof.compare.decision import FAMILY_LEVEL, SAME_LEVEL, UNSURE, Proof, decide, prove
from dlprof.compare.drift import common_shift
from dlprof.compare.match import Key
from dlprof.compare.process import median_ns
from dlprof.compare.ranks import Floats
from dlprof.compare.record import Time
from dlprof.compare.sequential import LOOKS
from dlprof.compare.speed import Speed
from dlprof.compare.statistic import APART, Refusal, Sample, Tested, least_rounds, tested
from dlprof.plan.floors import DEFAULT, Floor

MOST_ROUNDS = 100
"""More rounds are not advised: what they would tell is not worth the time."""

NOTABLE_SHARE = 0.2
"""A common shift of less than this share of the floor is not worth a word."""

LEAST_STEP = 1e-12
"""A floor may be so small that nothing can be divided by it."""

MOST_LOG = 700.0
"""Larger logarithms are of no number that a float can hold."""


@dataclass(frozen=True)
class Settings:
    """How to judge.

    ``floors`` one per measure; ``own_floors`` for single cases in their place (by
    :func:`~dlprof.compare.match.key`); ``in_turns`` as in
    :class:`~dlprof.compare.statistic.Sample`. ``decided`` are the words, by case and measure, of
    one who has looked more than once (:mod:`dlprof.compare.turns`).
    ``speed`` is what the machine took longer for HEAD, as a ratio; see ``normalise``.
    ``across_pythons`` says that two versions of Python are what is compared.
    """

    floors: tuple[Floor, ...] = DEFAULT
    own_floors: Mapping[Key, tuple[Floor, ...]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    in_turns: bool = False
    decided: Mapping[tuple[Key, str], str] = field(default_factory=lambda: MappingProxyType({}))
    speed: Speed | None = None
    across_pythons: bool = False
    level: float = FAMILY_LEVEL
    same_level: float = SAME_LEVEL


DEFAULT_SETTINGS = Settings()


@dataclass(frozen=True)
class Work:
    """A time to be judged: whose (the caller's number), by which floor, from which processes."""

    place: int
    floor: Floor
    sample: Sample
    key: Key = ()

    @property
    def step(self) -> float:
        """The floor in logarithms."""
        return self.floor.step(median_ns(self.sample.base) or 0.0)


def judge(works: Sequence[Work], settings: Settings = DEFAULT_SETTINGS) -> tuple[float, list[Time]]:
    """The shift that all share, in logarithms, and one time for each work, in their order.

    The works are one family: the chance of a false SLOWER is that of all together.
    """
    level = settings.level / max(len(works), 1)
    tests = [tested(work.sample, level) for work in works]
    common = 0.0 if settings.in_turns else shared(tests)
    proof = proofs(works, tests, common)
    words = [
        settings.decided.get((work.key, work.floor.measure), str(word))
        for work, word in zip(
            works, decide(proof, settings.level, settings.same_level), strict=True
        )
    ]
    bench = Bench(level, common)
    return common, [
        bench.time(work, test, word) for work, test, word in zip(works, tests, words, strict=True)
    ]


def shared(tests: Sequence[Tested | Refusal]) -> float:
    """The shift that all have in common, in logarithms; see :mod:`dlprof.compare.drift`."""
    shifts = [float(test.test.location) for test in tests if isinstance(test, Tested)]
    return float(common_shift(np.array(shifts)))


def proofs(works: Sequence[Work], tests: Sequence[Tested | Refusal], common: float) -> Proof:
    """What the tests prove; a case that none can judge proves nothing, and counts in the family."""
    found = [_proof(work, test, common) for work, test in zip(works, tests, strict=True)]
    columns = np.array(found, dtype=np.float64).reshape(-1, 3).T
    return Proof(slower=columns[0], faster=columns[1], same=columns[2])


def _proof(work: Work, test: Tested | Refusal, common: float) -> tuple[float, float, float]:
    if isinstance(test, Refusal):
        return 1.0, 1.0, 1.0
    proof = prove(test.test, work.step, common, test.least, work.sample.open_)
    # What one mode says of a case is not all there is to say of it.
    same = float(proof.same) if test.whole else 1.0
    return float(proof.slower), float(proof.faster), same


@dataclass(frozen=True)
class Bench:
    """What the times of a suite have in common: one case's level, and the shift that all share."""

    level: float
    common: float

    def time(self, work: Work, test: Tested | Refusal, word: str) -> Time:
        sample = work.sample
        bare = Time(
            work.floor.measure,
            word,
            work.floor,
            base_ns=median_ns(sample.base),
            head_ns=median_ns(sample.head),
            processes=(len(sample.base), len(sample.head)),
        )
        if isinstance(test, Refusal):
            return replace(bare, reason=test.reason, rounds=test.rounds)
        found = replace(
            bare,
            ratio=_ratio(float(test.test.location)),
            interval=_ratios(test.test.interval(SAME_LEVEL)),
            corrected=_ratios(test.test.interval(self.level)),
            note=test.note,
        )
        return doubted(found) if word != UNSURE else self._doubt(found, work, test)

    def _doubt(self, found: Time, work: Work, test: Tested) -> Time:
        """Why it is unsure, and what would help."""
        if test.note:
            return replace(found, reason="it may be otherwise in other modes")
        low, high = _ends(test)
        direction = "slower" if low > 0 else "faster" if high < 0 else ""
        if self._is_open(work, test):
            told = "but the reference costs leave open how fast the machine was"
            return replace(found, reason=f"{direction or 'the same'}, {told}", open_=True)
        if self._shifted(low, high, work.step):
            reason = f"{direction or 'the same'}, but all cases have shifted: machine or code"
            return replace(found, reason=reason, shifted=True)
        if direction and test.least == APART and abs(float(test.test.location)) <= APART:
            return replace(found, reason=f"{direction}, but two sessions differ by as much")
        count = _count(test)
        reason = f"{direction}, but not surely by enough" if direction else "left open"
        count += _astray(test, direction)
        rounds = self._rounds(work, test)
        return replace(found, reason=f"{reason}: {count}", rounds=rounds, noisy=rounds is None)

    def _is_open(self, work: Work, test: Tested) -> bool:
        """Whether it had another word if the speed of the machine were known; what all cases share
        may be that speed, too.
        """
        down, up = work.sample.open_
        if down == up == 0.0:
            return False
        common = 0.0 if down <= self.common <= up else self.common
        proof = prove(test.test, work.step, common, test.least)
        told = min(float(proof.slower), float(proof.faster)) <= self.level
        return told or (test.whole and float(proof.same) <= SAME_LEVEL)

    def _shifted(self, low: float, high: float, step: float) -> bool:
        """Whether what all cases share, if it is not next to nothing, is what leaves it open."""
        if abs(self.common) < NOTABLE_SHARE * step:
            return False
        inside = -step < low and high < step
        return inside or (low > 0 and self.common > 0) or (high < 0 and self.common < 0)

    def _rounds(self, work: Work, test: Tested) -> int | None:
        """About how many rounds would narrow the interval to half the floor on either side.

        In turns to the floor, which would tell SAME: so far a gate goes.
        """
        low, high = _ends(test)
        now = min(len(test.base), len(test.head))
        if work.sample.in_turns and now < LOOKS[0]:
            return LOOKS[0]  # so few say nothing of the noise either
        wide = (high - low) / (max(work.step, LEAST_STEP) * (2 if work.sample.in_turns else 1))
        if not wide < MOST_ROUNDS:
            return None
        in_turns = work.sample.in_turns
        least, most = (LOOKS[0], LOOKS[-1]) if in_turns else (least_rounds(self.level), MOST_ROUNDS)
        needed = max(math.ceil(now * wide**2), least, now + 1)
        return needed if needed <= most else None


def _ends(test: Tested) -> tuple[float, float]:
    low, high = test.test.interval(SAME_LEVEL)
    return float(low), float(high)


def _count(test: Tested) -> str:
    base, head = len(test.base), len(test.head)
    if base != head:
        return f"{base} and {head} processes"
    return f"{base} process{'' if base == 1 else 'es'} a side"


def _astray(test: Tested, direction: str) -> str:
    """How many processes of the faster side took as long as the other: they make it wide."""
    if not direction:
        return ""
    name, fast, slow = (
        ("BASE", test.base, test.head) if direction == "slower" else ("HEAD", test.head, test.base)
    )
    middle = median_ns(slow)
    count = sum(middle is not None and process.time_ns >= middle for process in fast)
    return f", of which {count} of {name} took as long as the other side" if count else ""


def _ratios(interval: tuple[Floats, Floats]) -> tuple[float, float] | None:
    low, high = (_ratio(float(end)) for end in interval)
    return None if low is None or high is None else (low, high)


def _ratio(logarithm: float) -> float | None:
    return math.exp(logarithm) if abs(logarithm) < MOST_LOG else None
