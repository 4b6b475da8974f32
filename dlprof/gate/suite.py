"""A pass of the gate: the times of a suite, measured round by round on both sides."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from dlprof.compare.comparison import Comparison, compare, path_of, sample_of
from dlprof.compare.criteria import Criteria
from dlprof.compare.matching import Key, key, match
from dlprof.compare.samples import Sample
from dlprof.compare.times import Settings
from dlprof.gate.confirm import flagged
from dlprof.gate.rounds import Ran
from dlprof.gate.side import Side
from dlprof.gate.turns import Pair, Player, alternate, in_order
from dlprof.plan.floors import Floor
from dlprof.runner.progress import Watcher
from dlprof.session.model import Result, Session


@dataclass
class MeasuredSuite:
    """The cases of two sides, as :mod:`dlprof.gate.rounds` measures them.

    ``base`` is a side that is measured too, or a finished session. ``only`` are the keys of HEAD's
    cases to be measured; None for all. If times are not ``judged``, one round shows the verdicts.
    ``entries`` are the times to be judged: the keys in BASE and in HEAD, and the floor. ``names``
    are the keys in BASE by those in HEAD.
    """

    base: Side | Session
    head: Side
    settings: Settings
    watcher: Watcher
    only: Collection[Key] | None = None
    judged: bool = True
    diagnosis_s: float = 0.0
    entries: list[tuple[Key, Key, Floor]] = field(init=False)
    names: dict[Key, Key] = field(init=False)

    def __post_init__(self) -> None:
        self.settings = self.settings.widened()
        both = [
            (key(pair.base.case), key(pair.head.case))
            for pair in match(_results(self.base), self.head.results()).pairs
            if pair.base is not None and pair.head is not None
        ]
        wanted = [pair for pair in both if self.only is None or pair[1] in self.only]
        self.names = {head: base for base, head in wanted}
        self.entries = [
            (base, head, floor)
            for base, head in wanted
            if self.judged
            for floor in self.settings.floors_of(head)
        ]

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
        order = self._order(base, round_, cases)
        places = [
            (side, {pair[at]: rank for rank, pair in enumerate(order) if pair[at] is not None})
            for at, side in enumerate((base, self.head))
        ]
        sides = [
            (side, {n: r for n, r in ranks.items() if n is not None}) for side, ranks in places
        ]
        if round_ % 2:
            sides.reverse()
        for side, ranks in sides:
            side.runner.load_in_order(round_, list(ranks))
        for side, _ in sides:
            side.runner.wait()
        cpu = _cpu(round_)
        first, second = (
            Player(side.runner.turns(round_, list(ranks), cpu), ranks) for side, ranks in sides
        )
        alternate(first, second)
        for _ in sides:
            self.watcher.step()

    def _order(self, base: Side, round_: int, cases: frozenset[int]) -> list[Pair]:
        """The cases of both sides in the order common to both."""
        wanted = self._numbers(base, round_, cases), self._numbers(self.head, round_, cases)
        heads = {self.names.get(name, name): n for name, n in self.head.numbers.items()}
        pairs: list[tuple[Pair, bool]] = []
        for name in dict.fromkeys([*base.numbers, *heads]):
            old, new = base.numbers.get(name), heads.get(name)
            old, new = (old if old in wanted[0] else None), (new if new in wanted[1] else None)
            large = (old is not None and base.is_large(old)) or (
                new is not None and self.head.is_large(new)
            )
            if old is not None or new is not None:
                pairs.append(((old, new), large))
        return in_order(pairs, self.head.runner.settings.seed, round_)

    def samples(self) -> list[Sample]:
        base = {key(result.case): result for result in _results(self.base)}
        head = {key(result.case): result for result in self.head.results()}
        in_turns = self.settings.in_turns
        return [
            sample_of(base[old], head[new], floor, in_turns) for old, new, floor in self.entries
        ]

    def settled(self) -> frozenset[int]:
        """Entries of cases that a side refused, or crashed in."""
        return frozenset(
            place
            for place, (base, head, _) in enumerate(self.entries)
            if self.head.is_settled(head)
            or (isinstance(self.base, Side) and self.base.is_settled(base))
        )

    def diagnose(self) -> None:
        """The diagnosis, if it is wanted.

        Otherwise it looks at paths that were a view on one side and a copy on the other: that may
        depend on the address of the array, which is chance.
        """
        begun = time.monotonic()
        for side in self.sides:
            wanted = side.measurement.request.settings.diagnose
            side.diagnose(self._names_in(side) if wanted else self._differing(side))
        self.diagnosis_s = time.monotonic() - begun

    def _differing(self, side: Side) -> set[Key]:
        """All cases of the paths that one side found a view and the other a copy."""
        bases = {key(result.case): result for result in _results(self.base)}
        heads = {key(result.case): result for result in self.head.results()}
        pairs = [(bases[base], heads[head]) for head, base in self.names.items()]
        own = 1 if side is self.head else 0
        paths = {path_of(pair[own]) for pair in pairs if _own_differently(*pair)}
        found = {key(result.case) for result in side.results() if path_of(result) in paths}
        return found & self._names_in(side)

    def comparison(self, ran: Ran) -> Comparison:
        """What was found, with the words of the looks."""
        words = zip(self.entries, ran.course.words, strict=True)
        decided = {(head, floor.measure): word for (_, head, floor), word in words}
        settings = replace(self.settings, decided=decided)
        found = compare(self._session(self.base), self._session(self.head), settings)
        return replace(found, measured_here=True)

    def is_flagged(self, criteria: Criteria) -> bool:
        """Whether a verdict is worse so far, so that there is something to measure again."""
        found = compare(self._session(self.base), self._session(self.head), self.settings)
        return bool(flagged(found, replace(criteria, times=False)))

    def _session(self, side: Side | Session) -> Session:
        session = side.session() if isinstance(side, Side) else side
        if self.only is None:
            return session
        keys = {*self.only, *self.names.values()}
        results = [result for result in session.results if key(result.case) in keys]
        return session.model_copy(update={"results": results})

    def _numbers(self, side: Side, round_: int, cases: frozenset[int]) -> set[int]:
        """The first round is of all, also of cases that the other side does not have."""
        if round_ == 0:
            names = self._names_in(side)
        else:
            pairs = [self.entries[case][:2] for case in cases]
            names = {head if side is self.head else base for base, head in pairs}
        return {side.numbers[name] for name in names}

    def _names_in(self, side: Side) -> set[Key]:
        if self.only is None:
            return set(side.numbers)
        wanted = set(self.only)
        if side is not self.head:
            wanted = {self.names.get(name, name) for name in wanted}
        return wanted & set(side.numbers)


def _results(side: Side | Session) -> Sequence[Result]:
    return side.results() if isinstance(side, Side) else side.results


def _own_differently(base: Result, head: Result) -> bool:
    words = {one.ownership.verdict for one in (base, head) if one.ownership is not None}
    return len(words) > 1


def _cpu(round_: int) -> int | None:
    """The processor for the samples of a round; None if the system does not say which there are.

    It is another one in every second round, so that either side is the first on each.
    """
    if not hasattr(os, "sched_getaffinity"):
        return None
    allowed = sorted(os.sched_getaffinity(0))
    return allowed[round_ // 2 % len(allowed)]
