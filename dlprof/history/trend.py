"""The trend of each case: its times, the steps in them, and what changed at a step."""

from __future__ import annotations

import fnmatch
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from dlprof.compare.decision import FAMILY_LEVEL
from dlprof.compare.floors import Floor
from dlprof.compare.process import logs, median_ns
from dlprof.compare.surroundings import Difference, differences
from dlprof.compare.verdicts import LOST, MEASURED, SCALES, UNTAKEN, Change, changes, kept_differs
from dlprof.history.series import Point, Series
from dlprof.history.steps import Step, find_steps
from dlprof.rules.known import seen
from dlprof.session import Result
from dlprof.stats import differ

UNTOLD = ("seed", "rounds", "schema")
"""Settings that change no time."""

SHARED_BY = 0.9
LEAST_SHARED = 4
"""A step of so large a share of so many cases at once is more likely the machine's."""


@dataclass(frozen=True)
class Brought:
    """What changed between the last session before a step and the first one behind it.

    ``labels`` are those of the two sessions, empty where they have none.
    """

    before: Point
    behind: Point
    labels: tuple[str, str]
    differences: tuple[Difference, ...]


@dataclass(frozen=True)
class TimeStep:
    """``shared``: how many cases of the machine step here, if that is nearly all of them."""

    step: Step
    brought: Brought
    times_ns: tuple[float, float]
    page_faults: tuple[float, float] | None = None
    shared: int = 0

    @property
    def slower(self) -> bool:
        return self.step.ratio > 1


@dataclass(frozen=True)
class VerdictStep:
    change: Change
    brought: Brought


@dataclass(frozen=True)
class Pending:
    """The newest sessions differ, but they are too few to tell."""

    sessions: int
    ratio: float


@dataclass(frozen=True)
class Trend:
    """One series with its steps, oldest first."""

    series: Series
    steps: tuple[TimeStep, ...]
    verdicts: tuple[VerdictStep, ...]
    pending: Pending | None = None


def trends_of(
    found: Sequence[Series], measure: str = "ready", level: float = FAMILY_LEVEL
) -> tuple[Trend, ...]:
    """The trends of all series; the chance of any false step among them is ``level`` at most."""
    share = level / max(sum(bool(series.timed) for series in found), 1)
    floor = Floor(measure)
    made = [_trend(series, floor, share) for series in found]
    return tuple(_with_shared(made))


def chosen(found: Sequence[Series], globs: Sequence[str]) -> tuple[Series, ...]:
    """The series whose code, pair or array matches one of ``globs``; all without any."""
    if not globs:
        return tuple(found)
    return tuple(one for one in found if any(_matches(one, glob) for glob in globs))


def _matches(series: Series, glob: str) -> bool:
    case = series.case
    names = (
        case.code,
        case.path,
        f"{case.producer}->{case.consumer}",
        case.producer,
        case.consumer,
    )
    return any(fnmatch.fnmatchcase(name, glob) for name in names)


def _trend(series: Series, floor: Floor, level: float) -> Trend:
    timed = series.timed
    if not timed:
        return Trend(series, (), _verdicts(series.points))
    values = [logs(point.side) for point in timed]
    typical = sorted(median_ns(point.side) or 0.0 for point in timed)[len(timed) // 2]
    step = floor.step(typical)
    found = find_steps(values, step, level)
    steps = tuple(_time_step(timed, one) for one in found)
    last = found[-1].at if found else 0
    return Trend(series, steps, _verdicts(series.points), _pending(timed[last:], step))


def _time_step(timed: Sequence[Point], step: Step) -> TimeStep:
    before, behind = timed[step.at - step.before : step.at], timed[step.at : step.at + step.behind]
    return TimeStep(
        step,
        brought(before[-1], behind[0]),
        (_typical(before), _typical(behind)),
        _page_faults(before, behind),
    )


def _typical(points: Sequence[Point]) -> float:
    times = sorted(point.time_ns or 0.0 for point in points)
    return (times[(len(times) - 1) // 2] + times[len(times) // 2]) / 2


def _page_faults(before: Sequence[Point], behind: Sequence[Point]) -> tuple[float, float] | None:
    """The page faults per call on both sides, where they tell of another mode."""
    old, new = (
        sorted(p.page_faults for point in side for p in point.side if p.page_faults is not None)
        for side in (before, behind)
    )
    if not old or not new:
        return None
    middle = old[len(old) // 2], new[len(new) // 2]
    return middle if differ(*middle) else None


def brought(before: Point, behind: Point) -> Brought:
    """What the two sessions at a step differ in."""
    labels = before.entry.label.text, behind.entry.label.text
    told = [one for one in differences(before.header, behind.header) if one.what not in UNTOLD]
    if kept_differs(before.result, behind.result):
        old, new = _timed(before.result), _timed(behind.result)
        told.append(Difference("what was timed", old, new, "setting"))
    return Brought(before, behind, labels, tuple(told))


def _timed(result: Result) -> str:
    kept = result.fresh_source is not None and result.fresh_source.verdict == "kept"
    return "a result that the framework keeps" if kept else "a new conversion"


def _verdicts(points: Sequence[Point]) -> tuple[VerdictStep, ...]:
    """The changes of verdict, for the worse and for the better, from session to session."""
    taken = [point for point in points if point.result.status != UNTAKEN]
    found: list[VerdictStep] = []
    if not taken:
        return ()
    known = taken[0].result
    for before, behind in pairwise(taken):
        now = _carried(known, behind.result)
        found += [
            VerdictStep(change, brought(before, behind))
            for change in changes(known, now)
            if change.direction != LOST
        ]
        known = now
    return tuple(found)


def _carried(known: Result, now: Result) -> Result:
    """The newer result; what it does not know is as it was when it was last known."""
    if now.status not in MEASURED or known.status not in MEASURED:
        return now
    names = (*SCALES, "peak_memory")
    lost = {name: getattr(known, name) for name in names if not _answers(now, name)}
    return now.model_copy(update=lost)


def _answers(result: Result, name: str) -> bool:
    scale = SCALES.get(name, {"ok": None})
    return any(word in scale for word, _ in seen(getattr(result, name)))


def _pending(points: Sequence[Point], step: float) -> Pending | None:
    """The newest sessions, if all of them lie beyond the floor from those before."""
    values = [math.log(point.time_ns or 1.0) for point in points]
    for count in range(min(len(values) - 1, 12), 0, -1):
        rest, newest = values[:-count], values[-count:]
        middle = sorted(rest)[len(rest) // 2]
        shifts = [value - middle for value in newest]
        if len(rest) >= count and (min(shifts) > step or max(shifts) < -step):
            return Pending(count, math.exp(sorted(shifts)[count // 2]))
    return None


def _with_shared(found: Sequence[Trend]) -> list[Trend]:
    """The trends, told where nearly all cases of a machine step at one session."""
    at: Counter[tuple[object, str, bool]] = Counter()
    cases: Counter[object] = Counter()
    for trend in found:
        machine = trend.series.machine
        cases[machine] += bool(trend.series.timed)
        for one in trend.steps:
            at[machine, one.brought.behind.entry.id, one.slower] += 1
    return [replace(trend, steps=_told(trend, at, cases)) for trend in found]


def _told(
    trend: Trend, at: Counter[tuple[object, str, bool]], cases: Counter[object]
) -> tuple[TimeStep, ...]:
    machine = trend.series.machine
    counts = [at[machine, one.brought.behind.entry.id, one.slower] for one in trend.steps]
    return tuple(
        replace(one, shared=count)
        if count >= LEAST_SHARED and count >= SHARED_BY * cases[machine]
        else one
        for one, count in zip(trend.steps, counts, strict=True)
    )
