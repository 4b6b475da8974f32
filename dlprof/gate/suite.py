"""A pass of the gate: the times of a suite, measured round by round on both sides."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

from dlprof.compare.comparison import compare, path_of, sample_of
from dlprof.compare.criteria import Criteria
from dlprof.compare.match import Key, key, match
from dlprof.compare.record import Comparison
from dlprof.compare.sequential import LOOKS
from dlprof.compare.speed import speed
from dlprof.compare.statistic import Sample
from dlprof.compare.times import Settings, Work
from dlprof.gate.confirm import flagged
from dlprof.gate.loop import Ran
from dlprof.gate.side import Side
from dlprof.plan.floors import Floor
from dlprof.plan.groups import shuffle
from dlprof.plan.pairing import Case
from dlprof.plan.settings import OWN_PROCESS_BYTES
from dlprof.plan.turns import SERIES, Round, Stop
from dlprof.runner.asker import Watcher
from dlprof.session.model import Result, Session


@dataclass(frozen=True)
class Entry:
    """A time to be judged: a case by its key on either side, and the floor."""

    base: Key
    head: Key
    floor: Floor


@dataclass
class Suite:
    """The cases of two sides, as the loop measures them.

    ``base`` is a side that is measured too, or a finished session. ``only`` are the keys of the
    cases to be measured, of HEAD's where the sides differ; None for all. Where times are not
    ``judged``, there is nothing to decide, and one round shows the verdicts. ``loading_s`` is how
    long the rounds in turns so far took to start their processes and import, ``importing`` the
    processor time of these imports of both sides, round by round. ``names`` are those of the cases
    in BASE, by those in HEAD.
    """

    base: Side | Session
    head: Side
    settings: Settings
    watcher: Watcher
    only: Collection[Key] | None = None
    judged: bool = True
    loading_s: float = 0.0
    diagnosis_s: float = 0.0
    importing: list[tuple[float | None, float | None]] = field(default_factory=list)
    entries: tuple[Entry, ...] = field(init=False)
    names: dict[Key, Key] = field(init=False)

    def __post_init__(self) -> None:
        pairs = match(self._results(self.base), self.head.results()).pairs
        self.names = {
            key(pair.head.case): key(pair.base.case)
            for pair in pairs
            if pair.base is not None and pair.head is not None and self._wanted(key(pair.head.case))
        }
        self.entries = tuple(
            Entry(base, head, floor)
            for head, base in self.names.items()
            if self.judged
            for floor in self.settings.own_floors.get(head, self.settings.floors)
        )

    @property
    def sides(self) -> tuple[Side, ...]:
        return (self.base, self.head) if isinstance(self.base, Side) else (self.head,)

    def measure(self, round_: int, cases: frozenset[int]) -> None:
        """One round: two sides in turns, A B, and in every other round B A. All import first."""
        if isinstance(self.base, Side):
            self._in_turns(self.base, round_, cases)
            return
        numbers = self._numbers(self.head, round_, cases)
        self.head.runner.load(round_, numbers)
        self.head.runner.wait()
        self.head.runner.round(round_, numbers)
        self.watcher.step()

    def _in_turns(self, base: Side, round_: int, cases: frozenset[int]) -> None:
        places = self._places(base, round_, cases)
        sides = ((base, places[0]), (self.head, places[1]))
        order = sides if round_ % 2 == 0 else sides[::-1]
        begun = time.monotonic()
        for side, ranks in order:
            side.runner.load_in_order(round_, list(ranks))
        for side, _ in order:
            side.runner.wait()
        self.loading_s += time.monotonic() - begun
        self.importing.append((base.runner.importing_s(), self.head.runner.importing_s()))
        cpu = _cpu(round_)
        first, second = (
            Player(side.runner.turns(round_, list(ranks), cpu), ranks) for side, ranks in order
        )
        alternate(first, second)
        for _ in order:
            self.watcher.step()

    def _places(
        self, base: Side, round_: int, cases: frozenset[int]
    ) -> tuple[dict[int, int], dict[int, int]]:
        """The cases of each side as they are measured, with their ranks in the common order."""
        bases, heads = (
            {name: number for name, number in side.numbers.items() if number in wanted}
            for side in (base, self.head)
            for wanted in [self._numbers(side, round_, cases)]
        )
        pairs = paired(bases, heads, {base: head for head, base in self.names.items()})
        large = large_of(pairs, base.runner.cases, self.head.runner.cases)
        common = in_order(pairs, large, self.head.runner.settings.seed, round_)
        return (
            {pair[0]: rank for rank, pair in enumerate(common) if pair[0] is not None},
            {pair[1]: rank for rank, pair in enumerate(common) if pair[1] is not None},
        )

    def works(self) -> list[Work]:
        """Every entry with the processes so far; none of a case that failed on a side."""
        settings = self._judged_by()
        base = {key(result.case): result for result in self._results(self.base)}
        head = {key(result.case): result for result in self.head.results()}
        return [
            Work(place, entry.floor, self._sample(base, head, entry, settings), entry.head)
            for place, entry in enumerate(self.entries)
        ]

    def settled(self) -> frozenset[int]:
        """Entries of cases that a side refused, or crashed in; all if the machine is another."""
        speed_ = self._judged_by().speed
        enough = self.head.runner.rounds_done >= LOOKS[0]
        if speed_ is not None and speed_.far and enough:
            return frozenset(range(len(self.entries)))
        return frozenset(
            place
            for place, entry in enumerate(self.entries)
            if any(
                side.settled(side.numbers[entry.head if side is self.head else entry.base])
                for side in self.sides
            )
        )

    def diagnose(self) -> None:
        """The diagnosis, if it is wanted. Else where one side was a view and the other a copy,
        whether that is by the address of the array: it may be chance.
        """
        begun = time.monotonic()
        for side in self.sides:
            whole = side.measurement.request.settings.diagnose
            cases = self._all(side) if whole else self._differing(side)
            if cases:
                side.runner.diagnose(cases)
        self.diagnosis_s = time.monotonic() - begun

    def _differing(self, side: Side) -> set[int]:
        """All cases of the paths of which ownership is another one on the other side."""
        bases = {key(result.case): result for result in self._results(self.base)}
        heads = {key(result.case): result for result in self.head.results()}
        pairs = [(bases[base], heads[head]) for head, base in self.names.items()]
        place = 1 if side is self.head else 0
        paths = {path_of(pair[place]) for pair in pairs if _differ(*pair)}
        results = side.results()
        return {n for n in self._all(side) if path_of(results[n]) in paths}

    def comparison(self, ran: Ran) -> Comparison:
        """What was found, with the words of the looks."""
        words = zip(self.entries, ran.course.words, strict=True)
        decided = {(entry.head, entry.floor.measure): str(word) for entry, word in words}
        settings = replace(self._judged_by(), decided=decided)
        found = compare(self._session(self.base), self._session(self.head), settings)
        return replace(found, measured_here=True)

    def flagged(self, criteria: Criteria) -> bool:
        """Whether a verdict is worse so far, so that there is something to measure again."""
        found = compare(self._session(self.base), self._session(self.head), self._judged_by())
        return bool(flagged(found, replace(criteria, times=False)))

    def _judged_by(self) -> Settings:
        """The settings; against a finished session with the machine's speed so far."""
        if isinstance(self.base, Side):
            return self.settings
        return replace(self.settings, speed=speed(self.base, self.head.measurement.header()))

    def _session(self, side: Side | Session) -> Session:
        session = side.session() if isinstance(side, Side) else side
        if self.only is None:
            return session
        keys = {*self.only, *self.names.values()}
        results = [result for result in session.results if key(result.case) in keys]
        return session.model_copy(update={"results": results})

    def _sample(
        self,
        base: Mapping[Key, Result],
        head: Mapping[Key, Result],
        entry: Entry,
        settings: Settings,
    ) -> Sample:
        return sample_of(base[entry.base], head[entry.head], entry.floor, settings)

    def _numbers(self, side: Side, round_: int, cases: frozenset[int]) -> set[int]:
        """The first round is of all, also of cases that the other side does not have."""
        if round_ == 0:
            return self._all(side)
        keys = [
            self.entries[case].head if side is self.head else self.entries[case].base
            for case in cases
        ]
        return {side.numbers[name] for name in keys}

    def _all(self, side: Side) -> set[int]:
        if self.only is None:
            return set(side.numbers.values())
        heads = side is self.head
        wanted = set(self.only) if heads else {self.names.get(n, n) for n in self.only}
        return {side.numbers[name] for name in wanted if name in side.numbers}

    def _wanted(self, name: Key) -> bool:
        return self.only is None or name in self.only

    @staticmethod
    def _results(side: Side | Session) -> Sequence[Result]:
        return side.results() if isinstance(side, Side) else side.results


def _differ(base: Result, head: Result) -> bool:
    words = {one.ownership.verdict for one in (base, head) if one.ownership is not None}
    return len(words) > 1


def _cpu(round_: int) -> int | None:
    """The processor for the samples of a round; None where nobody can say.

    Another one in every second round, so that either side is the first on each.
    """
    if not hasattr(os, "sched_getaffinity"):
        return None
    allowed = sorted(os.sched_getaffinity(0))
    return allowed[round_ // 2 % len(allowed)]


Pair = tuple[int | None, int | None]
"""The numbers of a case on both sides; None where one does not measure it."""


def paired(
    base: Mapping[Key, int], head: Mapping[Key, int], names: Mapping[Key, Key]
) -> list[Pair]:
    """The numbers of one side and the other; ``names`` are the keys of BASE's cases on HEAD."""
    bases = {names.get(name, name): number for name, number in base.items()}
    return [(bases.get(name), head.get(name)) for name in dict.fromkeys([*bases, *head])]


def in_order(pairs: Sequence[Pair], large: Collection[Pair], seed: int, round_: int) -> list[Pair]:
    """At random, and in each round another one first. Those that are ``large`` come last: they have
    processes of their own, which are started after the one that all others share.
    """
    chance = random.Random(f"{seed}:{round_}")  # noqa: S311 - not a secret
    kinds = [[pair for pair in pairs if (pair in large) is is_large] for is_large in (False, True)]
    return [pair for kind in kinds if kind for pair in shuffle(kind, chance, seed, round_)]


def large_of(pairs: Sequence[Pair], base: Sequence[Case], head: Sequence[Case]) -> set[Pair]:
    """Those with a process of their own."""
    return {pair for pair in pairs if _size(pair, base, head) >= OWN_PROCESS_BYTES}


def _size(pair: Pair, base: Sequence[Case], head: Sequence[Case]) -> int:
    both = ((pair[0], base), (pair[1], head))
    return max(cases[number].size_bytes for number, cases in both if number is not None)


Position = tuple[int, int]

FAR = 4
"""Processes of equal code choose numbers of calls that are a factor of 2 apart, or of 4 where
samples of few calls last longer."""


@dataclass
class Player:
    """A side of a round. ``ranks`` are the places of its cases in the order common to both."""

    round: Round
    ranks: Mapping[int, int]
    at: Position | None = field(default=None, init=False)
    """None before it begins and when it has ended."""
    calls: int = field(default=0, init=False)
    """Of the sample before which it stands."""

    def step(self, calls: int | None = None) -> None:
        """On to its next stop, or its end; with a sample of so many calls."""
        try:
            stop = self.round.send(calls)
        except StopIteration:
            self.at = None
        else:
            self.at, self.calls = self._position(stop), stop.calls

    def _position(self, stop: Stop) -> Position:
        series = SERIES.index(stop.series) + 1 if stop.series in SERIES else 0
        return self.ranks[stop.case], series


def _common(players: Sequence[Player]) -> int | None:
    """Of how many calls samples of both are to be; None where that is for each to say.

    The first calls of a sample find the caches as the other process left them. Where one sample had
    twice as many calls as the other, a conversion of 31 us took 5 to 9 % less in it. Who is far
    slower than the other is not made to wait for as many calls.
    """
    if len(players) == 1:
        return None
    few, many = min(one.calls for one in players), max(one.calls for one in players)
    return many if 0 < many <= FAR * few else None


def alternate(first: Player, second: Player) -> None:
    """Run both rounds to their ends; both are closed whatever happens.

    While both stand before a sample of the same series of the same case, each takes one, ``first``
    before ``second``. Elsewhere the one goes on that is behind, until the other is reached.

    Strictly A B A B: in A B B A every other sample would find the caches as its own process left
    them, and copies of 4 MiB were 1.8 times as long in one pair as in the next.
    """
    with closing(first.round), closing(second.round):
        first.step()
        second.step()
        while first.at is not None and second.at is not None:
            behind = min(first.at, second.at)
            ones = [one for one in (first, second) if one.at == behind]
            calls = _common(ones)
            for one in ones:
                one.step(calls)
        for left in (first, second):
            while left.at is not None:
                left.step()
