"""From two interpreters to one comparison. A regression is what two passes agree on."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from dlprof.compare.comparison import (
    WORSE,
    Compared,
    Comparison,
    Key,
    compare,
    judged,
    key,
    paired,
)
from dlprof.compare.gate_rounds import BUDGET, FIRST, STOPPED, Budget, Course, earliest, run
from dlprof.compare.times import INVALID, LOOKS, SAME, SLOWER, Floor, SidePair, Time
from dlprof.compare.verdicts import (
    CRASHED_IN_COMPANY,
    LOST,
    RACE,
    RACE_LOOKS,
    SCALES,
    Change,
    Criteria,
)
from dlprof.errors import UsageError
from dlprof.judge.case_view import all_looks
from dlprof.measuring.judged import judged as judged_session
from dlprof.measuring.scenario import Sweep
from dlprof.protocol.messages import DIAGNOSIS
from dlprof.runner.files import default_path
from dlprof.runner.measurement import Measurement
from dlprof.runner.progress import Watcher
from dlprof.runner.quantity import duration_text
from dlprof.runner.rounds import Runner
from dlprof.runner.schedule import SERIES, Round, shuffle
from dlprof.runner.session import Result, Session
from dlprof.text.clean import counted

NAMES = ("base", "head", "base-again", "head-again")
FAR = 4
"""Processes of equal code choose numbers of calls that are a factor of 2 apart, or of 4 if samples
of few calls last longer."""


def session_files(folder: Path | None) -> dict[str, Path]:
    """Return the files of the sessions by name, in the named folder or the state folder."""
    if folder is None:
        path = default_path("gate")
        return {name: path.with_name(f"{path.stem}-{name}.json") for name in NAMES}
    if folder.suffix == ".json" or folder.is_file():
        raise UsageError(f"-o {folder}: a gate keeps several sessions, so name a folder")
    folder.mkdir(parents=True, exist_ok=True)
    found = {name: folder / f"{name}.json" for name in NAMES}
    if any(path.is_file() for path in found.values()):
        raise UsageError(f"-o {folder} holds sessions of an earlier gate: name another folder")
    return found


@dataclass(frozen=True)
class Task:
    """The sides and the criteria. The budget is ``patient`` if the user did not name it."""

    base: Sweep
    head: Sweep
    criteria: Criteria
    files: dict[str, Path]
    watcher: Watcher
    budget_s: float
    patient: bool = False


def gate(task: Task) -> tuple[Comparison, bool]:
    """Measure, and measure again what seems to be a regression.

    Return the comparison, and whether the user stopped it before it could be sure. Raises
    :class:`~dlprof.errors.UsageError` if the sessions cannot be kept.
    """
    budget = Budget(task.budget_s, time.monotonic(), patient=task.patient)
    first, course, suite = _pass(task, budget)
    second, second_course, diagnosis_s = None, None, suite.diagnosis_s
    cases = flagged(first)
    if cases and not course.interrupted:
        # Alone, a conversion that crashed after others in one process would not crash again.
        in_company = any(
            change.after == CRASHED_IN_COMPANY
            for case in first.cases
            if key(case.case) in cases
            for change in case.changes
        )
        # The diagnosis takes no time from the rounds of the second pass.
        remaining = replace(budget, start_s=budget.start_s + diagnosis_s)
        second, second_course, suite = _pass(
            task, remaining, "-again", None if in_company else cases
        )
        diagnosis_s += suite.diagnosis_s
    method = [_measured_text(course, second_course, budget.clock() - budget.start_s, diagnosis_s)]
    if not task.head.request.settings.diagnose:
        measures = sorted(measure.replace("_", " ") for measure in set(SCALES) & set(DIAGNOSIS))
        method.append(f"Not compared, for lack of a diagnosis: {', '.join(measures)}.")
    unfinished, rounds = first.unfinished, earliest(len(course.words))
    if course.stopped == BUDGET and rounds is not None and course.rounds < rounds:
        unfinished = (
            f"a decision on {counted(len(course.words), 'time')} needs {rounds} rounds, and there"
            f" was time for {course.rounds}: raise --budget, or measure fewer paths"
        )
    found = replace(confirmed(first, second), method=tuple(method), unfinished=unfinished)
    return found, (second_course or course).interrupted


def _pass(
    task: Task, budget: Budget, suffix: str = "", keys: frozenset[Key] | None = None
) -> tuple[Comparison, Course, MeasuredSuite]:
    """Measure one pass of all cases, or only of some."""
    diagnosis_s = (1 - FIRST if suffix else FIRST) * task.budget_s
    with _side(task, "base", suffix) as base, _side(task, "head", suffix) as head:
        suite = MeasuredSuite(base, head, task.criteria, task.watcher, keys)
        left_s = max(budget.start_s + budget.seconds - budget.clock(), 0.0)
        task.watcher.start(len(suite.sides) * LOOKS[-1], left_s, LOOKS[-1])
        limit = task.criteria.wide_limit
        course = run(suite, len(suite.entries), budget, first=not suffix, wide_limit=limit)
        if not course.interrupted:
            try:
                suite.diagnose(Budget(diagnosis_s, budget.clock(), budget.clock))
            except KeyboardInterrupt:
                course.stopped = STOPPED
        found = suite.comparison(course)
        for side in suite.sides:
            side.measurement.stop_with(side.runner, not course.interrupted)
    if suite.undiagnosed and task.criteria.need_diagnosis:
        paths = counted(len(suite.undiagnosed), "path")
        why = f"no time to look at waiting, memory and lifetime of {paths}: raise --budget"
        found = replace(found, unfinished=why)
    return replace(found, head=judged_session(head.measurement.session())), course, suite


@contextmanager
def _side(task: Task, name: str, suffix: str) -> Iterator[GateSide]:
    """Open a side of a task, to be measured: ``base`` or ``head``."""
    sweep = task.head if name == "head" else task.base
    settings = replace(sweep.request.settings, rounds=LOOKS[-1], together=True, in_turns=True)
    measurement = Measurement(
        replace(sweep.request, settings=settings),
        sweep.catalog,
        task.files[f"{name}{suffix}"],
        task.watcher,
    )
    with closing(measurement), measurement.running() as runner:
        numbers = {key(result.case): place for place, result in enumerate(measurement.results())}
        yield GateSide(measurement, runner, numbers)


def _measured_text(first: Course, second: Course | None, wall_s: float, diagnosis_s: float) -> str:
    """Return how many rounds were measured, how long that took, and why it stopped."""
    ended = f": {first.stopped}" if first.words or first.interrupted else ", for the verdicts"
    text = f"Measured in turns, {counted(first.rounds, 'round')}{ended}."
    if second is not None:
        text += f" The second pass took {counted(second.rounds, 'round')}: {second.stopped}."
    diagnosis = f" with {duration_text(diagnosis_s)} of diagnosis" if diagnosis_s >= 1 else ""
    return f"{text} {duration_text(wall_s)} in all{diagnosis}."


def flagged(comparison: Comparison) -> frozenset[Key]:
    """Return the cases that would fail, and that HEAD has: they are to be measured again."""
    found = comparison.having(SLOWER, WORSE)
    return frozenset(key(case.case) for case in found if case.statuses[1] is not None)


def confirmed(first: Comparison, second: Comparison | None) -> Comparison:
    """Return the first pass, with the words that both passes give the cases that it flagged."""
    again = {key(case.case): case for case in (second.cases if second else ())}
    criteria, names = first.criteria, flagged(first)
    cases = [
        _confirmed(case, again.get(key(case.case)), criteria) if key(case.case) in names else case
        for case in first.cases
    ]
    return replace(first, cases=tuple(cases))


def _confirmed(case: Compared, repeat: Compared | None, criteria: Criteria) -> Compared:
    later = repeat.changes if repeat is not None else ()
    failed = [change for change in later if criteria.fails(change)]
    times = tuple(_time(time, repeat) if time.word == SLOWER else time for time in case.times)
    changes: list[Change] = []
    unconfirmed: list[Change] = []
    for change in case.changes:
        # The second pass may see another change for the worse in its place.
        in_both = any(
            other.what == change.what and (other.after == change.after or other in failed)
            for other in later
        )
        (changes if in_both or not criteria.fails(change) else unconfirmed).append(change)
    known = {change.what for change in case.changes}
    unconfirmed += [change for change in failed if change.what not in known]
    for change in unconfirmed:
        after = f"{change.after} (seen in one pass only)"
        changes.append(replace(change, after=after, direction=LOST, severity="info"))
    # A crash in one pass does not pass whatever --unsure says.
    crashes = [str(change) for change in unconfirmed if change.is_crash]
    doubt = f"{crashes[0]} in one of two passes" if crashes else case.doubt
    return judged(replace(case, times=times, changes=tuple(changes), doubt=doubt), criteria)


def _time(first: Time, repeat: Compared | None) -> Time:
    """Return a time that is SLOWER in the first pass, with the word of both, or INVALID."""
    seconds = [time for time in (repeat.times if repeat else ()) if time.measure == first.measure]
    if not seconds:
        reason = f"{_ratio(first)} times as long, and not measured again"
        return replace(first, word=INVALID, reason=reason)
    (second,) = seconds
    reason = f"{_ratio(first)} times as long in the first pass, {_ratio(second)} in the second"
    if second.word in (SLOWER, SAME):
        return replace(first, word=second.word, reason=reason)
    reason += f": {second.word}" + (f", {second.reason}" if second.reason else "")
    return replace(first, word=INVALID, reason=reason)


def _ratio(time: Time) -> str:
    return "no known number of" if time.ratio is None else f"{time.ratio:.3f}"


# A pass: the cases of two sides, measured round by round


@dataclass
class Player:
    """A side of a round. ``ranks`` are the places of its cases in the order common to both."""

    round: Round
    ranks: Mapping[int, int]
    position: tuple[int, int] | None = field(default=None, init=False)
    """The rank and the series of its next sample; None before its beginning and after its end."""
    calls: int = field(default=0, init=False)
    """Calls of its next sample."""

    def step(self, calls: int | None = None) -> None:
        """Go on to its next stop, or its end, with a sample of ``calls``."""
        try:
            stop = self.round.send(calls)
        except StopIteration:
            self.position = None
        else:
            series = SERIES.index(stop.series) + 1 if stop.series in SERIES else 0
            self.position, self.calls = (self.ranks[stop.case], series), stop.calls


def alternate(first: Player, second: Player) -> None:
    """Run both rounds to their ends; both are closed if one fails.

    If both stand before a sample of the same series of the same case, each takes one, ``first``
    before ``second``. Otherwise the one that is behind goes on until it has reached the other.

    The order is strictly A B A B: in A B B A every other sample finds its own process's caches.
    """
    with closing(first.round), closing(second.round):
        first.step()
        second.step()
        while first.position is not None and second.position is not None:
            position = min(first.position, second.position)
            players = [player for player in (first, second) if player.position == position]
            calls = _common_calls(players)
            for player in players:
                player.step(calls)
        for player in (first, second):
            while player.position is not None:
                player.step()


def _common_calls(players: Sequence[Player]) -> int | None:
    """Return the calls of the next sample of both; None if each side decides for itself.

    The first calls of a sample find the other process's caches, so more calls look faster. A side
    that is far faster does not wait for as many calls as the other.
    """
    if len(players) == 1:
        return None
    few, many = min(player.calls for player in players), max(player.calls for player in players)
    return many if 0 < many <= FAR * few else None


@dataclass(frozen=True, eq=False)
class GateSide:
    """A measured side. ``numbers`` maps the key of each case to its number."""

    measurement: Measurement
    runner: Runner
    numbers: dict[Key, int]

    def by_name(self) -> dict[Key, Result]:
        """Return its cases by key, also those that were not measured yet."""
        results = self.measurement.results()
        return {name: results[number] for name, number in self.numbers.items()}

    def session(self, keys: Collection[Key] | None) -> Session:
        """Return the session so far, with the cases of ``keys`` alone; None for all."""
        self.measurement.stop_with(self.runner, complete=False)
        session = self.measurement.session()
        results = [result for result in session.results if keys is None or key(result.case) in keys]
        return session.model_copy(update={"results": results})


@dataclass
class MeasuredSuite:
    """The cases of two sides, as :mod:`dlprof.compare.gate_rounds` measures them.

    ``keys`` are the cases to be measured; None for all. ``entries`` are the times to be judged;
    without any, one round shows the verdicts.
    """

    base: GateSide
    head: GateSide
    criteria: Criteria
    watcher: Watcher
    keys: Collection[Key] | None = None
    diagnosis_s: float = field(default=0.0, init=False)
    undiagnosed: set[Key] = field(default_factory=set, init=False)
    race_looks: int = field(default=RACE_LOOKS, init=False)
    """Processes that looked for a race, at least, on the side that saw none."""
    entries: list[tuple[Key, Floor]] = field(init=False)

    def __post_init__(self) -> None:
        names = [name for name in self._chosen_names(self.head) if name in self.base.numbers]
        self.entries = [(name, floor) for name in names for floor in self.criteria.floors]

    @property
    def sides(self) -> tuple[GateSide, GateSide]:
        return (self.base, self.head)

    def _chosen_names(self, side: GateSide) -> list[Key]:
        return [name for name in side.numbers if self.keys is None or name in self.keys]

    def measure(self, round_: int, cases: frozenset[int]) -> None:
        """One round: two sides in turns, A B, and in every other round B A. All import first."""
        order = self._order(round_, cases)
        sides = [
            (side, {n: rank for rank, pair in enumerate(order) if (n := pair[place]) is not None})
            for place, side in enumerate(self.sides)
        ]
        if round_ % 2:
            sides.reverse()
        allowed = sorted(os.sched_getaffinity(0))
        cpu = allowed[round_ // 2 % len(allowed)]  # both sides begin on each
        first, second = (
            Player(side.runner.turns(round_, list(ranks), cpu), ranks) for side, ranks in sides
        )
        alternate(first, second)
        for _ in sides:
            self.watcher.step()

    def _order(self, round_: int, cases: frozenset[int]) -> list[tuple[int | None, int | None]]:
        """Return the numbers of the cases of a round on both sides; the first round is of all."""
        names = {self.entries[case][0] for case in cases}
        if round_ == 0:
            names |= {name for side in self.sides for name in self._chosen_names(side)}
        pairs = [
            (self.base.numbers.get(name), self.head.numbers.get(name))
            for name in dict.fromkeys([*self.base.numbers, *self.head.numbers])
            if name in names
        ]
        chance = random.Random(round_)  # noqa: S311 - not a secret
        return shuffle(pairs, chance, round_) if pairs else []

    def samples(self) -> list[SidePair]:
        """Return all times to be judged, with all rounds so far."""
        base, head = (side.by_name() for side in self.sides)
        return [paired(base[name], head[name], floor, True) for name, floor in self.entries]

    def settled(self) -> frozenset[int]:
        """Return the entries of cases that a side refused, or crashed in."""
        return frozenset(
            place
            for place, (name, _) in enumerate(self.entries)
            if any(side.measurement.file.settled(side.numbers[name]) for side in self.sides)
        )

    def diagnose(self, limit: Budget) -> None:
        """Run the diagnosis, if it is wanted, until the limit is over. BASE has half of it.

        Paths that are a view on one side alone come first: the address may decide by chance.
        """
        start_s = limit.clock()
        numbers = self._differing_cases()
        for side in self.sides:
            if numbers:
                side.runner.diagnose({side.numbers[name] for name in numbers}, lambda: False)
        for place, side in enumerate(self.sides, 1):
            if side.measurement.request.settings.diagnose:
                is_over = partial(limit.is_over, place / len(self.sides))
                names_by_number = {side.numbers[name]: name for name in self._chosen_names(side)}
                skipped = side.runner.diagnose(set(names_by_number), is_over)
                self.undiagnosed |= {names_by_number[number] for number in skipped}
        self.undiagnosed &= self.base.numbers.keys() & self.head.numbers.keys()
        for look in range(RACE_LOOKS - 1):
            unequal = self._unequal_races()
            if unequal and limit.is_over(1.0):
                self.race_looks = 1 + look
                break
            for side, names in unequal.items():
                side.runner.look_again({side.numbers[name] for name in names}, RACE, look)
        self.diagnosis_s = limit.clock() - start_s

    def _shared_results(self) -> Iterator[tuple[Key, tuple[Result, Result]]]:
        """Yield the cases that both sides measure, with their results."""
        base, head = (side.by_name() for side in self.sides)
        for name in self._chosen_names(self.head):
            if name in base:
                yield name, (base[name], head[name])

    def _unequal_races(self) -> dict[GateSide, set[Key]]:
        """Return the cases in which one side saw an early write, by the side that did not."""
        found: dict[GateSide, set[Key]] = {}
        for name, results in self._shared_results():
            words = [{word for word, _ in all_looks(result.early_write)} for result in results]
            for side, own, other in zip(self.sides, words, reversed(words), strict=True):
                if own == {"safe"} and "unsafe" in other:
                    found.setdefault(side, set()).add(name)
        return found

    def _differing_cases(self) -> set[Key]:
        """Return all cases of the paths that one side found a view and the other a copy."""
        shared = dict(self._shared_results())
        paths = {
            head.case.conversion
            for base, head in shared.values()
            if base.ownership is not None
            and head.ownership is not None
            and base.ownership.verdict != head.ownership.verdict
        }
        return {name for name, (_, head) in shared.items() if head.case.conversion in paths}

    def comparison(self, course: Course) -> Comparison:
        """Return what was found, with the words of the looks."""
        words = zip(self.entries, course.words, strict=True)
        decided = {(name, floor.measure): word for (name, floor), word in words}
        base, head = (side.session(self.keys) for side in self.sides)
        return compare(base, head, self.criteria, True, decided, self.race_looks)
