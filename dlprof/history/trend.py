"""The trend of each case: its times, the steps in them, and what changed at a step."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from dlprof.analysis.slower import FAMILY_LEVEL
from dlprof.compare.processes import logs
from dlprof.history.changes import Step, find_steps
from dlprof.history.series import (
    Cause,
    Machine,
    Point,
    Series,
    cause,
)
from dlprof.history.verdicts import VerdictStep, verdict_steps
from dlprof.plan.floors import Floor
from dlprof.session.model import CaseRecord
from dlprof.session.stats import differ

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
