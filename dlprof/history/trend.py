"""The trend of each case: its times, steps in them, changes of verdict, and what came with each.

Not every session answers everything: one has no diagnosis, another one crashes. So each verdict is
compared with the last session that answered it, and what changed is what differs since that one.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from dlprof.compare.processes import logs
from dlprof.compare.severity import Severities
from dlprof.compare.verdicts import (
    BETTER,
    CRASHED,
    LOST,
    MEASURED,
    NOT_SEEN,
    SCALES,
    SKIPPED,
    STATUS,
    Change,
    answers,
    changes,
    crashed_in,
)
from dlprof.history.changes import Step, find_steps
from dlprof.history.series import (
    Cause,
    Machine,
    Point,
    Series,
    cause,
)
from dlprof.judge.case_view import seen
from dlprof.judge.slower import FAMILY_LEVEL
from dlprof.runner.floors import Floor
from dlprof.runner.session import CaseRecord, Result, Verdict
from dlprof.runner.stats import differ

SHARED_BY = 0.9
LEAST_SHARED = 4
"""A step of so large a share of so many cases at once is more likely the machine's."""


@dataclass(frozen=True)
class TimeStep:
    """``shared``: how many cases of the machine step here, of how many, if nearly all do."""

    step: Step
    cause: Cause
    times_ns: tuple[float, float]
    page_faults: tuple[float, float] | None = None
    shared: tuple[int, int] | None = None

    @property
    def slower(self) -> bool:
        return self.step.ratio > 1


@dataclass(frozen=True)
class Trend:
    """One series with its steps, oldest first."""

    series: Series
    steps: tuple[TimeStep, ...]
    verdicts: tuple[VerdictStep, ...]


def trends_of(found: Sequence[Series], measure: str = "ready") -> tuple[Trend, ...]:
    """The trends of all series; any false step among them has at most the family's chance."""
    share = FAMILY_LEVEL / max(sum(bool(series.timed) for series in found), 1)
    floor = Floor(measure)
    made = [_trend(series, floor, share) for series in found]
    return tuple(_with_shared(made))


def chosen(found: Sequence[Series], globs: Sequence[str]) -> tuple[Series, ...]:
    """The series whose code, pair or array matches one of ``globs``; all without any."""
    return tuple(
        one
        for one in found
        if not globs or any(fnmatchcase(name, glob) for name in _names(one.case) for glob in globs)
    )


def _names(case: CaseRecord) -> tuple[str, ...]:
    pair = f"{case.producer}->{case.consumer}"
    return case.code, case.path, pair, case.producer, case.consumer


def _trend(series: Series, floor: Floor, level: float) -> Trend:
    timed, verdicts = series.timed, tuple(verdict_steps(series.points))
    if not timed:
        return Trend(series, (), verdicts)
    found = find_steps([logs(point.side) for point in timed], floor.step(_typical(timed)), level)
    return Trend(series, tuple(_time_step(timed, one) for one in found), verdicts)


def _time_step(timed: Sequence[Point], step: Step) -> TimeStep:
    before, behind = timed[step.at - step.before : step.at], timed[step.at : step.at + step.behind]
    return TimeStep(
        step,
        cause(before[-1], behind[0]),
        (_typical(before), _typical(behind)),
        _page_faults(before, behind),
    )


def _typical(points: Sequence[Point]) -> float:
    return statistics.median(point.time_ns or 0.0 for point in points)


def _page_faults(before: Sequence[Point], behind: Sequence[Point]) -> tuple[float, float] | None:
    """The page faults per call on both sides, if they show another mode."""
    old, new = (
        [p.page_faults for point in side for p in point.side if p.page_faults is not None]
        for side in (before, behind)
    )
    if not old or not new:
        return None
    middle = statistics.median_high(old), statistics.median_high(new)
    return middle if differ(*middle) else None


def _with_shared(found: Sequence[Trend]) -> list[Trend]:
    """The trends, with a mark on the steps that nearly all cases of a machine make at once."""
    cases = Counter(trend.series.machine for trend in found if trend.series.timed)
    at = Counter(_place(trend, step) for trend in found for step in trend.steps)

    def marked(trend: Trend, step: TimeStep) -> TimeStep:
        count, every = at[_place(trend, step)], cases[trend.series.machine]
        shared = count >= LEAST_SHARED and count >= SHARED_BY * every
        return replace(step, shared=(count, every)) if shared else step

    return [
        replace(trend, steps=tuple(marked(trend, step) for step in trend.steps)) for trend in found
    ]


def _place(trend: Trend, step: TimeStep) -> tuple[Machine, str, bool]:
    """On which machine, at which session and in which direction."""
    return trend.series.machine, step.cause.behind.entry.id, step.slower


PEAK = "peak_memory"
NAMES = (*SCALES, PEAK)
"""Measures that a session may leave unanswered."""


@dataclass(frozen=True)
class VerdictStep:
    """A change, and what changed since the last session that knew better."""

    change: Change
    cause: Cause


def verdict_steps(points: Sequence[Point]) -> tuple[VerdictStep, ...]:
    """All changes of a series, oldest first; what could not be told is none."""
    taken = [point for point in points if point.result.status != SKIPPED]
    found: list[VerdictStep] = []
    known = _Known()
    for place, point in enumerate(taken):
        if place:
            before = taken[place - 1]
            status = (one for one in changes(before.result, point.result) if one.what == STATUS)
            found += [VerdictStep(change, cause(before, point)) for change in status]
        if point.result.status in MEASURED:
            found += known.steps(point)
    return tuple(found)


@dataclass
class _Known:
    """``measured`` is the newest session that was measured, ``answered`` by measure the newest that
    answered it, ``crashed`` the instruments that crashed since. ``race_looks`` is the number of
    sessions in turn that saw no race.
    """

    measured: Point | None = None
    answered: dict[str, Point] = field(default_factory=dict)
    tried: Verdict[Any] | None = None
    crashed: set[str] = field(default_factory=set)
    race_looks: int = 0

    def steps(self, point: Point) -> list[VerdictStep]:
        """What changed with the next session that was measured, which is remembered then."""
        found = [] if self.measured is None else [*self._changes(self.measured, point)]
        self.measured, self.tried = point, point.tried or self.tried
        words = {word for word, _ in seen(point.result.early_write)}
        if words & {"safe", "unsafe"}:
            self.race_looks = 0 if "unsafe" in words else self.race_looks + 1
        self.answered |= {name: point for name in NAMES if answers(point.result, name)}
        return found

    def _changes(self, measured: Point, point: Point) -> Iterator[VerdictStep]:
        for name in sorted(one for one in self.crashed if answers(point.result, one)):
            self.crashed.discard(name)
            ended = Change(name, CRASHED, getattr(point.result, name).verdict, BETTER)
            yield VerdictStep(ended, cause(measured, point))
        tried = self.tried, point.tried or self.tried
        severities = Severities(point.entry.session.results)
        sides, looks = self._filled(measured.result, point.result), (self.race_looks, 1)
        for change in changes(*sides, tried, severities, looks):
            known_crash = change.after == CRASHED and change.what in self.crashed
            is_doubt = change.direction == LOST or change.after == NOT_SEEN
            if change.what == STATUS or is_doubt or known_crash:
                continue
            if change.after == CRASHED:
                self.crashed.add(change.what)
            name = PEAK if change.what == "peak memory" else change.what
            yield VerdictStep(change, cause(self.answered.get(name, measured), point))

    def _filled(self, measured: Result, now: Result) -> tuple[Result, Result]:
        """What is known by now, and the newer result; what that does not answer is as it was. A
        crash is an answer.
        """
        known = {name: getattr(point.result, name) for name, point in self.answered.items()}
        base = measured.model_copy(update=known)
        left = [name for name in NAMES if not (answers(now, name) or crashed_in(now, name))]
        return base, now.model_copy(update={name: getattr(base, name) for name in left})
