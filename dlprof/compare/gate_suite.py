"""A pass of the gate: the cases of two sides, measured round by round.

The two processes take their samples in turns, so that whatever the machine does meets both.
"""

from __future__ import annotations

import os
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial

from dlprof.compare.comparison import Comparison, Key, compare, key, sample_of
from dlprof.compare.criteria import Floor
from dlprof.compare.gate_rounds import Budget, Course
from dlprof.compare.times import Sample, Settings
from dlprof.compare.verdicts import RACE, RACE_LOOKS
from dlprof.judge.case_view import seen
from dlprof.runner.measurement import Measurement
from dlprof.runner.pairing import Case
from dlprof.runner.progress import Watcher
from dlprof.runner.rounds import Runner
from dlprof.runner.schedule import SERIES, Round, shuffle
from dlprof.runner.session import Result, Session

FAR = 4
"""Processes of equal code choose numbers of calls that are a factor of 2 apart, or of 4 if samples
of few calls last longer."""

Pair = tuple[int | None, int | None]
"""The numbers of a case on both sides; None for a side that does not measure it."""


def cpu_of(round_: int) -> int:
    """Return the processor for the samples of a round.

    It is another one in every second round, so that either side is the first on each.
    """
    allowed = sorted(os.sched_getaffinity(0))
    return allowed[round_ // 2 % len(allowed)]


@dataclass
class Player:
    """A side of a round. ``ranks`` are the places of its cases in the order common to both."""

    round: Round
    ranks: Mapping[int, int]
    at: tuple[int, int] | None = field(default=None, init=False)
    """The rank and the series before which it stands; None before it begins and after its end."""
    calls: int = field(default=0, init=False)
    """How many calls its next sample is of."""

    def step(self, calls: int | None = None) -> None:
        """On to its next stop, or its end; with a sample of so many calls."""
        try:
            stop = self.round.send(calls)
        except StopIteration:
            self.at = None
        else:
            series = SERIES.index(stop.series) + 1 if stop.series in SERIES else 0
            self.at, self.calls = (self.ranks[stop.case], series), stop.calls


def alternate(first: Player, second: Player) -> None:
    """Run both rounds to their ends; both are closed whatever happens.

    If both stand before a sample of the same series of the same case, each takes one, ``first``
    before ``second``. Otherwise the one that is behind goes on until it has reached the other.

    The order is strictly A B A B. In A B B A every other sample would find the caches as its own
    process left them: copies of 4 MiB were 1.8 times as long in one pair as in the next.
    """
    with closing(first.round), closing(second.round):
        first.step()
        second.step()
        while first.at is not None and second.at is not None:
            behind = min(first.at, second.at)
            players = [one for one in (first, second) if one.at == behind]
            calls = _common_calls(players)
            for player in players:
                player.step(calls)
        for left in (first, second):
            while left.at is not None:
                left.step()


def _common_calls(players: Sequence[Player]) -> int | None:
    """Of how many calls the samples of both are; None if each side decides for itself.

    The first calls of a sample find the caches as the other process left them. If one sample had
    twice as many calls as the other, a conversion of 31 us took 5 to 9 % less in it. A side that is
    far faster does not wait for as many calls as the other.
    """
    if len(players) == 1:
        return None
    few, many = min(one.calls for one in players), max(one.calls for one in players)
    return many if 0 < many <= FAR * few else None


@dataclass(frozen=True, eq=False)
class Side:
    """A side that is measured. ``numbers`` are those of its cases, by key."""

    measurement: Measurement
    runner: Runner
    numbers: dict[Key, int]

    def by_name(self) -> dict[Key, Result]:
        """Return its cases by key, also those that were not measured yet."""
        results = self.measurement.results()
        return {name: results[number] for name, number in self.numbers.items()}

    def session(self, only: Collection[Key] | None) -> Session:
        """Return the session so far, with ``only`` some of the cases."""
        self.measurement.stop_with(self.runner, complete=False)
        session = self.measurement.session()
        results = [one for one in session.results if only is None or key(one.case) in only]
        return session.model_copy(update={"results": results})


@dataclass(frozen=True)
class SideWatcher(Watcher):
    """Says of each case which side it is of; the gate counts the rounds itself."""

    name: str
    watcher: Watcher

    def case(self, case: Case, round_: int, stage: str) -> None:
        self.watcher.case(case, round_, f"{self.name}: {stage}")


@dataclass
class MeasuredSuite:
    """The cases of two sides, as :mod:`dlprof.compare.gate_rounds` measures them.

    ``only`` are the cases to be measured; None for all. ``entries`` are the times to be judged;
    without any, one round shows the verdicts. ``undiagnosed`` are the cases that the diagnosis had
    no time for.
    """

    base: Side
    head: Side
    settings: Settings
    watcher: Watcher
    only: Collection[Key] | None = None
    diagnosis_s: float = field(default=0.0, init=False)
    undiagnosed: set[Key] = field(default_factory=set, init=False)
    race_looks: int = field(default=RACE_LOOKS, init=False)
    """How many processes of the side that saw no race looked for one, at least."""
    entries: list[tuple[Key, Floor]] = field(init=False)

    def __post_init__(self) -> None:
        both = [name for name in self._chosen(self.head) if name in self.base.numbers]
        self.entries = [(name, floor) for name in both for floor in self.settings.floors]

    @property
    def sides(self) -> tuple[Side, Side]:
        return (self.base, self.head)

    def _chosen(self, side: Side) -> list[Key]:
        return [name for name in side.numbers if self.only is None or name in self.only]

    def measure(self, round_: int, cases: frozenset[int]) -> None:
        """One round: two sides in turns, A B, and in every other round B A. All import first."""
        order = self._order(round_, cases)
        sides = [
            (side, {n: rank for rank, pair in enumerate(order) if (n := pair[at]) is not None})
            for at, side in enumerate(self.sides)
        ]
        if round_ % 2:
            sides.reverse()
        cpu = cpu_of(round_)
        first, second = (
            Player(side.runner.turns(round_, list(ranks), cpu), ranks) for side, ranks in sides
        )
        alternate(first, second)
        for _ in sides:
            self.watcher.step()

    def _order(self, round_: int, cases: frozenset[int]) -> list[Pair]:
        """Return the cases of a round in the order common to both sides.

        The first round is of all, also of cases that the other side does not have.
        """
        names = {self.entries[case][0] for case in cases}
        if round_ == 0:
            names |= {name for side in self.sides for name in self._chosen(side)}
        pairs = [
            (self.base.numbers.get(name), self.head.numbers.get(name))
            for name in dict.fromkeys([*self.base.numbers, *self.head.numbers])
            if name in names
        ]
        seed = self.head.runner.settings.seed
        chance = random.Random(f"{seed}:{round_}")  # noqa: S311 - not a secret
        return shuffle(pairs, chance, seed, round_) if pairs else []

    def samples(self) -> list[Sample]:
        """Return all times to be judged, with all rounds so far."""
        base, head = (side.by_name() for side in self.sides)
        return [sample_of(base[name], head[name], floor, True) for name, floor in self.entries]

    def settled(self) -> frozenset[int]:
        """Return the entries of cases that a side refused, or crashed in."""
        return frozenset(
            place
            for place, (name, _) in enumerate(self.entries)
            if any(side.measurement.file.settled(side.numbers[name]) for side in self.sides)
        )

    def diagnose(self, limit: Budget) -> None:
        """Run the diagnosis, if it is wanted, until the limit is over. BASE has half of it.

        Paths that were a view on one side and a copy on the other come first, whatever the limit:
        that may depend on the address of the array, which is chance.
        """
        begun = limit.clock()
        numbers = self._differing()
        for side in self.sides:
            if numbers:
                side.runner.diagnose({side.numbers[name] for name in numbers}, lambda: False)
        for place, side in enumerate(self.sides, 1):
            if side.measurement.request.settings.diagnose:
                is_over = partial(limit.is_over, place / len(self.sides))
                named = {side.numbers[name]: name for name in self._chosen(side)}
                left = side.runner.diagnose(set(named), is_over)
                self.undiagnosed |= {named[number] for number in left}
        self.undiagnosed &= self.base.numbers.keys() & self.head.numbers.keys()
        for look in range(RACE_LOOKS - 1):
            unequal = self._unequal_races()
            if unequal and limit.is_over(1.0):
                self.race_looks = 1 + look
                break
            for side, names in unequal.items():
                side.runner.look_again({side.numbers[name] for name in names}, RACE, look)
        self.diagnosis_s = limit.clock() - begun

    def _both(self) -> Iterator[tuple[Key, tuple[Result, Result]]]:
        """Yield the cases that both sides measure, with their results."""
        base, head = (side.by_name() for side in self.sides)
        for name in self._chosen(self.head):
            if name in base:
                yield name, (base[name], head[name])

    def _unequal_races(self) -> dict[Side, set[Key]]:
        """Return the cases in which one side saw an early write, by the side that did not."""
        found: dict[Side, set[Key]] = {}
        for name, results in self._both():
            words = [{word for word, _ in seen(result.early_write)} for result in results]
            for side, own, other in zip(self.sides, words, reversed(words), strict=True):
                if own == {"safe"} and "unsafe" in other:
                    found.setdefault(side, set()).add(name)
        return found

    def _differing(self) -> set[Key]:
        """Return all cases of the paths that one side found a view and the other a copy."""
        both = dict(self._both())
        paths = {
            head.case.conversion
            for base, head in both.values()
            if base.ownership is not None
            and head.ownership is not None
            and base.ownership.verdict != head.ownership.verdict
        }
        return {name for name, (_, head) in both.items() if head.case.conversion in paths}

    def comparison(self, course: Course) -> Comparison:
        """Return what was found, with the words of the looks."""
        words = zip(self.entries, course.words, strict=True)
        decided = {(name, floor.measure): word for (name, floor), word in words}
        base, head = (side.session(self.only) for side in self.sides)
        return compare(base, head, self.settings, decided, self.race_looks)
