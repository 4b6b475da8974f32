"""The one comparison of times: rounds of both sides → ratio with interval → word.

The question is not whether two builds differ, since any two do if they are measured long enough.
It is whether HEAD is more than half the floor slower. So equal code is half a floor away from a
false alarm, and code that is slower by the floor is half a floor away from being missed.
Two finished sessions share no rounds, so only a fixed wide limit tells them apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType

from dlprof.compare.criteria import DEFAULT, Criteria, Floor
from dlprof.compare.matching import Key
from dlprof.compare.processes import Side, differences, median_ns
from dlprof.compare.rank_tests import RankTest, holm, sign, wilcoxon
from dlprof.compare.verdicts import RACE_LOOKS
from dlprof.runner import options

SLOWER, FASTER, SAME, UNSURE = "SLOWER", "FASTER", "SAME", "UNSURE"
WIDE = "WIDE"
"""What stays open, and is not slower by more than a bound that is known."""
INVALID = "INVALID"

FAMILY_LEVEL = 0.01
"""The chance of any false SLOWER among all cases together; the same again for FASTER."""
PASS_LEVEL = 0.1
"""The chance of any false SLOWER in one pass of a gate.

The gate fails only if a second pass in fresh processes agrees, so both err together 1 time in 100,
which is :data:`FAMILY_LEVEL`."""
SAME_LEVEL = 0.025
"""The chance of calling a case SAME that is slower by the whole floor."""
MARGIN = 0.5
"""The share of the floor that a difference must be proven to exceed."""
LOOKS = (8, 12, 16, 24, 32, 48, 64)
"""Rounds after which to look. Fewer than eight cannot say SAME with the share of the first look."""
FIRST_SHARE = 0.2
"""The first look's share of the levels. Eight rounds that agree have a chance of 1 in 256, and this
share of :data:`SAME_LEVEL` is 1 in 200. The other looks share the rest."""
SHARES = (FIRST_SHARE, *[(1 - FIRST_SHARE) / (len(LOOKS) - 1)] * (len(LOOKS) - 1))
LATE_LEVEL = PASS_LEVEL * SHARES[-1]
"""The level of a later look."""
NEARER = 25
"""If the estimate is above :data:`MARGIN` of the floor, SAME takes so many times the proof: 1 in
1,000 in place of 1 in 40."""
WIDE_LIMIT = options.WIDE_LIMIT.default / 100
"""What stays open passes if it is slower by so much at most; ``--wide-limit`` says otherwise."""

LIMIT = 2.0
"""Two finished sessions differ if all processes of one side are so many times as slow as those of
the other. Equal views had states 1.7 times apart."""
NEAR = 1.25
"""Two finished sessions are the same if their medians are at most this ratio apart. Equal views,
measured ten minutes apart, differed by up to 4.8 %, and a machine may be 10 % slower later."""
LEAST_PROCESSES, LEAST_OF_COPIES = 2, 5
"""Processes a side of two finished sessions. Those of a large copy may all be in another state by
chance: 1 time in 32 with three a side."""
STATEFUL_BYTES = 64 * 2**10
"""Copies from here on run in states: pages that are mapped anew or not, threads that wait for a
core or not. States are up to a hundred times apart."""

MANY = 16
"""From so many rounds on a bound may be that of their signs."""
OF_SIGNS = 1 / 3
"""The share of a bound's level that goes to the signs then. With it four of 24 rounds may be in
another mode. With the rest for the ranks, an interval of normal noise is 5 % wider."""


def share_at(rounds: int) -> float:
    """Return the share of the look that is taken of so many rounds."""
    looks = zip(LOOKS, SHARES, strict=True)
    return next((share for look, share in looks if look >= rounds), SHARES[-1])


def bound_level(rounds: int) -> float:
    """Return the level of the bound of what is WIDE after so many rounds.

    A case is called SAME or WIDE at one look only, so both together err no more often than the
    shares of :data:`SAME_LEVEL` add up to.
    """
    return SAME_LEVEL * share_at(rounds)


@dataclass(frozen=True)
class Sample:
    """One measure of one case on both sides.

    ``in_turns`` says that both sides took the samples of a round in turns. A ``stateful`` copy is
    so large that its processes run in states.
    """

    base: Side
    head: Side
    floor: Floor = DEFAULT[0]
    stateful: bool = False
    in_turns: bool = False

    @property
    def step(self) -> float:
        """The floor as a difference of logarithms."""
        return self.floor.step(median_ns(self.base) or 0.0)

    @cached_property
    def differences(self) -> list[float]:
        """HEAD - BASE in logarithms, of each round."""
        return differences(self.base, self.head)

    @cached_property
    def test(self) -> RankTest | None:
        """The test of all rounds; None if no round has both sides."""
        return wilcoxon(self.differences) if self.differences else None

    def bound(self, level: float) -> float | None:
        """By how much HEAD is slower at most, as a difference of logarithms, at ``level``.

        None if so few rounds bound nothing. Equal code of ``tf.constant(x)`` takes twice as long
        on one side in a sixth of all rounds: what many rounds have in common is bounded by their
        signs, what few have by their ranks.
        """
        if self.test is None:
            return None
        if len(self.differences) < MANY:
            high = self.test.interval(level)[1]
        else:
            ranked = self.test.interval(level * (1 - OF_SIGNS))[1]
            high = min(ranked, sign(self.differences).interval(level * OF_SIGNS)[1])
        return None if math.isinf(high) else high


@dataclass(frozen=True)
class Time:
    """What one measure says of one case.

    ``ratio`` is HEAD's time over BASE's and ``interval`` its 95 % interval; of two finished
    sessions, the least and the greatest ratio of two processes. ``corrected`` is the interval at
    one case's share of the suite's level: its lower end decides on SLOWER. ``bound`` is the ratio
    that a time which is WIDE does not exceed. Each is None if it is not known. ``reason`` says why
    the word is WIDE, UNSURE or INVALID, ``note`` what else there is to know.
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
        return math.log(self.interval[0]) > MARGIN * self.floor.step(self.base_ns or 0.0)


@dataclass(frozen=True)
class Settings:
    """How to compare.

    ``decided`` are the words of a gate that looked more than once, by case and measure.
    ``race_looks`` is how many processes of a side in turns looked for a race, if they saw none.
    A time that is WIDE passes if it is slower by ``wide_limit`` at most (0.25 is 25 %) and not
    likely slower.
    """

    criteria: Criteria = field(default_factory=Criteria)
    in_turns: bool = False
    decided: Mapping[tuple[Key, str], str] = field(default_factory=lambda: MappingProxyType({}))
    race_looks: int = RACE_LOOKS
    wide_limit: float = WIDE_LIMIT

    @property
    def floors(self) -> tuple[Floor, ...]:
        """The floors of the measures that are judged."""
        return self.criteria.floors if self.criteria.times else ()

    def passes(self, time: Time) -> bool:
        """Whether a time that is WIDE is no doubt. Of 720 times of equal code none was likely
        slower (docs/results/gates.md).
        """
        is_below = time.bound is not None and time.bound <= 1 + self.wide_limit
        return is_below and not time.is_likely_slower


@dataclass(frozen=True)
class Proof:
    """How likely its times are by chance if a case is not slower, not faster, not the same."""

    slower: float = 1.0
    faster: float = 1.0
    same: float = 1.0


def prove(test: RankTest | None, step: float) -> Proof:
    """Return what a test proves of one case; ``step`` is the floor as a difference of logarithms.

    A case without rounds proves nothing, and counts in the family.
    """
    if test is None:
        return Proof()
    half = MARGIN * step
    same = max(test.p_below(step), test.p_above(-step))
    if test.location > half:
        same = min(NEARER * same, 1.0)
    return Proof(test.p_above(half), test.p_below(-half), same)


def decide(
    proofs: Sequence[Proof], level: float, same_level: float, faster_level: float
) -> list[str]:
    """Return the word of each case of a suite.

    SAME comes first: an interval within the floor on both sides proves that the difference does not
    matter, even if it is known not to be zero. SLOWER and FASTER are corrected over the suite. SAME
    is not: a regression that is missed is one case's error.
    """
    slower = holm([proof.slower for proof in proofs])
    faster = holm([proof.faster for proof in proofs])
    words = []
    for proof, up, down in zip(proofs, slower, faster, strict=True):
        if proof.same <= same_level:
            words.append(SAME)
        elif up <= level:
            words.append(SLOWER)
        else:
            words.append(FASTER if down <= faster_level else UNSURE)
    return words


def judge(samples: Sequence[Sample], decided: Sequence[str | None] = ()) -> list[Time]:
    """Return the time of each sample of a suite; all in turns, or all of two finished sessions.

    ``decided`` are words that stand already; without them it is one late look.
    """
    if not all(sample.in_turns for sample in samples):
        return [_of_sessions(sample) for sample in samples]
    proofs = [prove(sample.test, sample.step) for sample in samples]
    words = decide(proofs, LATE_LEVEL, SAME_LEVEL, LATE_LEVEL)
    stands = decided or [None] * len(words)
    own_level = LATE_LEVEL / max(len(samples), 1)
    return [
        _in_turns(sample, stand or word, own_level)
        for sample, word, stand in zip(samples, words, stands, strict=True)
    ]


def _in_turns(sample: Sample, word: str, level: float) -> Time:
    test, found = sample.test, _without_ratio(sample, word)
    if test is None:
        return replace(found, reason="no round has times of both sides")
    interval = test.interval(SAME_LEVEL)
    found = replace(
        found,
        ratio=_ratio(test.location),
        interval=_ratios(interval),
        corrected=_ratios(test.interval(level)),
    )
    if word != UNSURE:
        return found
    count = f"{len(sample.differences)} rounds"
    if interval[0] <= 0 <= interval[1]:
        found = replace(found, reason=f"left open: {count}")
    else:
        way = "slower" if interval[0] > 0 else "faster"
        found = replace(found, reason=f"{way}, but not surely by enough: {count}")
    most = sample.bound(bound_level(len(sample.head)))
    return found if most is None else replace(found, word=WIDE, bound=_ratio(most))


def _of_sessions(sample: Sample) -> Time:
    """Compare two finished sessions: only a large ratio is more than what a machine does."""
    found = _without_ratio(sample, UNSURE)
    base, head = ([process.time_ns for process in side] for side in (sample.base, sample.head))
    base_ns, head_ns = found.base_ns, found.head_ns
    if base_ns is None or head_ns is None:
        return replace(found, reason="a side has no times of single processes")
    low = math.log(min(head)) - math.log(max(base))
    high = math.log(max(head)) - math.log(min(base))
    ratio = math.log(head_ns) - math.log(base_ns)
    found = replace(found, ratio=_ratio(ratio), interval=_ratios((low, high)))
    found = replace(found, corrected=found.interval)
    count = min(len(base), len(head))
    if count < (LEAST_OF_COPIES if sample.stateful else LEAST_PROCESSES):
        return replace(found, reason=f"too few processes: {count} a side")
    limit = max(math.log(LIMIT), sample.step)
    if low >= limit or high <= -limit:
        return replace(found, word=SLOWER if low > 0 else FASTER)
    if abs(ratio) <= math.log(NEAR) and max(-low, high) < limit:
        return replace(found, word=SAME)
    reason = f"two sessions tell only {math.exp(limit):.3g} times as long from equal code"
    return replace(found, reason=reason)


def _without_ratio(sample: Sample, word: str) -> Time:
    return Time(
        sample.floor.measure,
        word,
        sample.floor,
        base_ns=median_ns(sample.base),
        head_ns=median_ns(sample.head),
        processes=(len(sample.base), len(sample.head)),
    )


def _ratios(interval: tuple[float, float]) -> tuple[float, float] | None:
    low, high = map(_ratio, interval)
    return None if low is None or high is None else (low, high)


def _ratio(logarithm: float) -> float | None:
    """Return the ratio, or None for one that a float cannot hold."""
    return math.exp(logarithm) if abs(logarithm) < 700 else None  # noqa: PLR2004
