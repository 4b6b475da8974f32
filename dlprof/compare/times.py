"""The one comparison of times: rounds of both sides → ratio with interval → word.

The question is not whether two builds differ, since any two do if they are measured long enough.
It is whether HEAD is more than half the floor slower.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import accumulate

from dlprof.runner import options
from dlprof.runner.session import Result

SLOWER, FASTER, SAME, UNSURE = "SLOWER", "FASTER", "SAME", "UNSURE"
WIDE = "WIDE"
"""An open time that is not slower by more than a known bound."""
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
"""Factor of the proof of SAME if the estimate is above :data:`MARGIN` of the floor: 1 in 1,000
instead of 1 in 40."""
WIDE_LIMIT = options.WIDE_LIMIT.default / 100
"""The default of ``--wide-limit``: a WIDE time passes if its bound is below."""

LIMIT = 2.0
"""Two finished sessions differ if this ratio lies between all processes of both sides. Equal views
had states 1.7 times apart."""
NEAR = 1.25
"""Two finished sessions are the same if their medians are at most this ratio apart. Equal views,
measured ten minutes apart, differed by up to 4.8 %, and a machine may be 10 % slower later."""
LEAST_PROCESSES, LEAST_OF_COPIES = 2, 5
"""Processes a side of two finished sessions. All processes of a large copy may be in another state
by chance: 1 time in 32 with three a side."""
STATEFUL_BYTES = 64 * 2**10
"""Copies from here on run in states: pages that are mapped anew or not, threads that wait for a
core or not. States are up to a hundred times apart."""

MANY = 16
"""Rounds from which on a bound may come from their signs."""
SIGN_SHARE = 1 / 3
"""The share of a bound's level for the signs. With it four of 24 rounds may be in another mode.
With the rest for the ranks, an interval of normal noise is 5 % wider."""
MANY_CALLS = 100
"""A mean of this many calls contains rare slow calls too."""
LOW_SHARE = 0.1
"""The quantile of the samples of many calls that is the time of a process.

Other programs only add time. While they kept one of two cores busy, medians of equal processes of
views were 3 to 40 % apart, and these 1 to 4 %."""
FASTEST = 3
"""The fastest third of the samples of few calls is compared: threads that wait for each other make
other samples up to a hundred times as slow."""


@dataclass(frozen=True)
class Floor:
    """A slowdown matters if it exceeds both ``relative`` (0.05 is 5 %) and ``absolute_ns``."""

    measure: str = "ready"
    relative: float = 0.05
    absolute_ns: float = 5.0

    def step(self, base_ns: float) -> float:
        """Return the floor of a case that takes ``base_ns``, as a difference of logarithms."""
        share = self.absolute_ns / base_ns if base_ns > 0 else math.inf
        return max(math.log1p(max(self.relative, share)), 1e-12)  # never 0: it is divided by


# Processes: the independent samples of both sides, paired by round


@dataclass(frozen=True)
class ProcessTimes:
    """The samples of a fresh process, each the mean of :data:`MANY_CALLS` if ``many_calls``."""

    round: int
    samples_ns: tuple[float, ...]
    many_calls: bool = False

    @property
    def time_ns(self) -> float:
        """The time of the process: a low percentile of samples of many calls, else the median."""
        if not self.many_calls:
            return statistics.median_low(self.samples_ns)
        return sorted(self.samples_ns)[int(LOW_SHARE * (len(self.samples_ns) - 1))]


SideTimes = tuple[ProcessTimes, ...]


def processes(result: Result, measure: str) -> SideTimes:
    """Return the processes of ``measure``, ``ready`` or ``host``."""
    time = result.ready_time if measure == "ready" else result.host_time
    found = [
        ProcessTimes(
            process.round,
            tuple(sample for sample in process.samples_ns if sample > 0),
            process.loops >= MANY_CALLS,
        )
        for process in (time.processes if time else ())
    ]
    return tuple(process for process in found if process.samples_ns)


def median_ns(side: SideTimes) -> float | None:
    """Return the median of the processes, or None for no process."""
    return statistics.median(process.time_ns for process in side) if side else None


def difference(base: ProcessTimes, head: ProcessTimes) -> float:
    """Return HEAD - BASE in logarithms, of neighboring samples, or of the fastest of few calls."""
    count = min(len(base.samples_ns), len(head.samples_ns))
    before, after = (list(map(math.log, process.samples_ns[:count])) for process in (base, head))
    if base.many_calls and head.many_calls:
        return statistics.median(new - old for old, new in zip(before, after, strict=True))
    fastest = max(1, count // FASTEST)
    return statistics.fmean(sorted(after)[:fastest]) - statistics.fmean(sorted(before)[:fastest])


# Rank tests


@dataclass(frozen=True)
class RankTest:
    """``shifts`` are sorted, and their number above a shift is the statistic.

    ``chances`` holds the probability that at least 0, 1, 2, … of them are above 0 in equal code.
    """

    shifts: tuple[float, ...]
    chances: tuple[float, ...]

    @property
    def location(self) -> float:
        """Return the estimate of the shift (Hodges and Lehmann, 1963)."""
        return statistics.median(self.shifts)

    def p_above(self, shift: float) -> float:
        """Return the chance of so large a HEAD if it is above BASE by ``shift`` or less."""
        return self.chances[len(self.shifts) - bisect_right(self.shifts, shift)]

    def p_below(self, shift: float) -> float:
        """Return the chance of so small a HEAD if it is above BASE by ``shift`` or more."""
        return self.chances[bisect_left(self.shifts, shift)]

    def interval(self, level: float) -> tuple[float, float]:
        """Return the shifts that neither side rejects at ``level``; infinite for too few rounds."""
        enough = next((n for n, chance in enumerate(self.chances) if chance <= level), None)
        if enough is None:
            return -math.inf, math.inf
        return self.shifts[-enough], self.shifts[enough - 1]


def wilcoxon(differences: Sequence[float]) -> RankTest:
    """Return the signed-rank test of HEAD - BASE of each round.

    The sum of ranks is the number of averages of each two rounds, and of each round with itself,
    that lie above zero (Tukey, 1949).
    """
    averages = [
        (first + second) / 2
        for place, first in enumerate(differences)
        for second in differences[place:]
    ]
    return RankTest(tuple(sorted(averages)), _rank_chances(len(differences)))


def sign(differences: Sequence[float]) -> RankTest:
    """Return the sign test of HEAD - BASE of each round, which a few outliers move little."""
    rounds = len(differences)
    chances = [math.comb(rounds, above) * 0.5**rounds for above in range(rounds + 1)]
    return RankTest(tuple(sorted(differences)), _upper_tail(chances))


@lru_cache(maxsize=128)
def _rank_chances(rounds: int) -> tuple[float, ...]:
    """Return the chance of a sum of ranks of at least 0, 1, 2, … in equal code (Wilcoxon, 1945)."""
    chances = [1.0]
    for rank in range(1, rounds + 1):  # each rank is in the sum with a chance of one half
        longer = [chance / 2 for chance in chances] + [0.0] * rank
        for total, chance in enumerate(chances):
            longer[total + rank] += chance / 2
        chances = longer
    return _upper_tail(chances)


def _upper_tail(chances: Sequence[float]) -> tuple[float, ...]:
    found = accumulate(reversed(chances))
    return tuple(min(total, 1.0) for total in found)[::-1]


def holm(chances: Sequence[float]) -> list[float]:
    """Return corrected chances (Holm, 1979), each to be compared with the level of all."""
    order = sorted(range(len(chances)), key=chances.__getitem__)
    found, highest = [1.0] * len(chances), 0.0
    for rank, place in enumerate(order):
        highest = max(highest, min((len(chances) - rank) * chances[place], 1.0))
        found[place] = highest
    return found


# From samples to words


def look_share(rounds: int) -> float:
    """Return the share of the look after ``rounds`` rounds."""
    looks = zip(LOOKS, SHARES, strict=True)
    return next((share for look, share in looks if look >= rounds), SHARES[-1])


def bound_level(rounds: int) -> float:
    """Return the level of the bound of a WIDE time: a case is SAME or WIDE at one look only."""
    return SAME_LEVEL * look_share(rounds)


@dataclass(frozen=True)
class SidePair:
    """One measure of one case on both sides.

    ``in_turns`` says that both sides took the samples of a round in turns. A ``stateful`` copy is
    so large that its processes run in states.
    """

    base: SideTimes
    head: SideTimes
    floor: Floor = Floor()
    stateful: bool = False
    in_turns: bool = False

    @property
    def step(self) -> float:
        """The floor as a difference of logarithms."""
        return self.floor.step(median_ns(self.base) or 0.0)

    @cached_property
    def differences(self) -> list[float]:
        """HEAD - BASE in logarithms, of each round that both sides have."""
        before = {process.round: process for process in self.base}
        return [
            difference(before[after.round], after) for after in self.head if after.round in before
        ]

    @cached_property
    def test(self) -> RankTest | None:
        """The test of all rounds; None if no round has both sides."""
        return wilcoxon(self.differences) if self.differences else None

    def bound(self, level: float) -> float | None:
        """Return the most that HEAD may be slower, as a difference of logarithms, at ``level``.

        None for too few rounds. The signs bound many rounds: ``tf.constant(x)`` takes twice as
        long in a sixth of them.
        """
        if self.test is None:
            return None
        if len(self.differences) < MANY:
            high = self.test.interval(level)[1]
        else:
            ranked = self.test.interval(level * (1 - SIGN_SHARE))[1]
            high = min(ranked, sign(self.differences).interval(level * SIGN_SHARE)[1])
        return None if math.isinf(high) else high


@dataclass(frozen=True)
class Time:
    """The result of one measure of one case.

    ``ratio`` is HEAD's time over BASE's and ``interval`` its 95 % interval; of two finished
    sessions, the least and the greatest ratio of two processes. ``corrected`` is the interval at
    one case's share of the suite's level: its lower end decides on SLOWER. ``bound`` is the ratio
    that a time which is WIDE does not exceed. Each is None if it is not known. ``reason`` says why
    the word is WIDE, UNSURE or INVALID, or what both passes of a gate found.
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

    @property
    def is_likely_slower(self) -> bool:
        """Whether it is WIDE, and slower by more than half the floor if it alone were judged."""
        if self.word != WIDE or self.interval is None:
            return False
        return math.log(self.interval[0]) > MARGIN * self.floor.step(self.base_ns or 0.0)


@dataclass(frozen=True)
class Proof:
    """The chances of the times of a case if it is not slower, not faster, or not the same."""

    slower: float = 1.0
    faster: float = 1.0
    same: float = 1.0


def prove(test: RankTest | None, step: float) -> Proof:
    """Return what a test proves of one case; a case without rounds proves nothing."""
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

    SAME comes first: within the floor a difference does not matter. SLOWER and FASTER are corrected
    over the suite. SAME is not: a regression that is missed is one case's error.
    """
    slower = holm([proof.slower for proof in proofs])
    faster = holm([proof.faster for proof in proofs])
    words = []
    for proof, slower_chance, faster_chance in zip(proofs, slower, faster, strict=True):
        if proof.same <= same_level:
            words.append(SAME)
        elif slower_chance <= level:
            words.append(SLOWER)
        else:
            words.append(FASTER if faster_chance <= faster_level else UNSURE)
    return words


def judge(samples: Sequence[SidePair], decided: Sequence[str | None] = ()) -> list[Time]:
    """Return the time of each sample of a suite; all in turns, or all of two finished sessions.

    ``decided`` are words that stand already; without them it is one late look.
    """
    if not all(sample.in_turns for sample in samples):
        return [_judge_sessions(sample) for sample in samples]
    proofs = [prove(sample.test, sample.step) for sample in samples]
    words = decide(proofs, LATE_LEVEL, SAME_LEVEL, LATE_LEVEL)
    stands = decided or [None] * len(words)
    own_level = LATE_LEVEL / max(len(samples), 1)
    return [
        _judge_turns(sample, stand or word, own_level)
        for sample, word, stand in zip(samples, words, stands, strict=True)
    ]


def _judge_turns(sample: SidePair, word: str, level: float) -> Time:
    test, found = sample.test, _without_ratio(sample, word)
    if test is None:
        return replace(found, reason="no round has times of both sides")
    interval = test.interval(SAME_LEVEL)
    found = replace(
        found,
        ratio=math.exp(test.location),
        interval=_ratios(interval),
        corrected=_ratios(test.interval(level)),
    )
    if word != UNSURE:
        return found
    reason = "left open"
    if interval[0] > 0 or interval[1] < 0:
        reason = f"{'slower' if interval[0] > 0 else 'faster'}, but not surely by enough"
    found = replace(found, reason=f"{reason}: {len(sample.differences)} rounds")
    bound = sample.bound(bound_level(len(sample.head)))
    return found if bound is None else replace(found, word=WIDE, bound=math.exp(bound))


def _judge_sessions(sample: SidePair) -> Time:
    """Compare two finished sessions: only a large ratio is more than what a machine does."""
    found = _without_ratio(sample, UNSURE)
    base, head = ([process.time_ns for process in side] for side in (sample.base, sample.head))
    low = math.log(min(head) / max(base))
    high = math.log(max(head) / min(base))
    ratio = statistics.median(head) / statistics.median(base)
    count = min(len(base), len(head))
    found = replace(found, ratio=ratio)
    if count > 1:
        interval = _ratios((low, high))
        found = replace(found, interval=interval, corrected=interval)
    least = LEAST_OF_COPIES if sample.stateful else LEAST_PROCESSES
    if count < least:
        return replace(found, reason=f"too few processes: {count} a side, use --rounds {least}")
    limit = max(math.log(LIMIT), sample.step)
    if low >= limit or high <= -limit:
        return replace(found, word=SLOWER if low > 0 else FASTER)
    if abs(math.log(ratio)) <= math.log(NEAR) and max(-low, high) < limit:
        return replace(found, word=SAME)
    reason = f"two sessions tell only {math.exp(limit):.3g} times as long from equal code"
    return replace(found, reason=reason)


def _without_ratio(sample: SidePair, word: str) -> Time:
    return Time(
        sample.floor.measure,
        word,
        sample.floor,
        base_ns=median_ns(sample.base),
        head_ns=median_ns(sample.head),
        processes=(len(sample.base), len(sample.head)),
    )


def _ratios(interval: tuple[float, float]) -> tuple[float, float] | None:
    """Return the ratios of an interval of logarithms; None if too few rounds bound it."""
    low, high = interval
    return None if math.isinf(low) else (math.exp(low), math.exp(high))
