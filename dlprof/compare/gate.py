"""From two interpreters to one comparison. A regression is what two passes in fresh processes
agree on.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from dlprof.compare.comparison import WORSE, Compared, Comparison, Key, judged, key
from dlprof.compare.criteria import Criteria
from dlprof.compare.gate_rounds import BUDGET, FIRST, STOPPED, Budget, Ran, earliest, run
from dlprof.compare.gate_suite import MeasuredSuite, Side, SideWatcher
from dlprof.compare.times import INVALID, LOOKS, SAME, SLOWER, Settings, Time
from dlprof.compare.verdicts import CRASHED_IN_COMPANY, LOST, SCALES, Change
from dlprof.errors import UsageError
from dlprof.measuring.judged import judged as judged_session
from dlprof.measuring.scenario import Sweep
from dlprof.protocol.messages import DIAGNOSIS
from dlprof.runner.measurement import Measurement
from dlprof.runner.progress import Watcher
from dlprof.runner.quantity import duration_text
from dlprof.runner.state import default_path
from dlprof.text.clean import counted

NAMES = ("base", "head", "base-again", "head-again")


def kept_in(folder: Path | None) -> dict[str, Path]:
    """Return the files of the sessions of both sides and passes, by name.

    They are in the folder that the user named, or in the state folder. Raises :class:`UsageError`.
    """
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
    """What to measure, and how to judge it.

    The budget is ``patient`` if the user did not name it.
    """

    base: Sweep
    head: Sweep
    settings: Settings
    kept: dict[str, Path]
    watcher: Watcher
    budget_s: float
    patient: bool = False


@dataclass(frozen=True)
class Gated:
    """What a gate found. ``interrupted`` if it was stopped before it could be sure."""

    comparison: Comparison
    interrupted: bool


def gate(task: Task) -> Gated:
    """Measure, and measure again what seems to be a regression.

    Raises :class:`~dlprof.errors.UsageError` if the sessions cannot be kept.
    """
    budget = Budget(task.budget_s, time.monotonic(), patient=task.patient)
    first, ran, suite = _pass(task, budget)
    interrupted, second, again, diagnosis_s = ran.interrupted, None, None, suite.diagnosis_s
    cases = flagged(first)
    if cases and not interrupted:
        # Alone, what crashed after others in one process would not show that again.
        in_company = any(
            change.after == CRASHED_IN_COMPANY
            for case in first.cases
            if key(case.case) in cases
            for change in case.changes
        )
        # The diagnosis takes no time from the rounds of the second pass.
        left = replace(budget, begun=budget.begun + diagnosis_s)
        second, again, suite = _pass(task, left, "-again", None if in_company else cases)
        interrupted = again.interrupted
        diagnosis_s += suite.diagnosis_s
    told = [_measured_text(ran, again, budget.clock() - budget.begun, diagnosis_s)]
    if not task.head.request.settings.diagnose:
        left_out = sorted(what.replace("_", " ") for what in set(SCALES) & set(DIAGNOSIS))
        told.append(f"Not compared, for lack of a diagnosis: {', '.join(left_out)}.")
    found = replace(confirmed(first, second), told=tuple(told))
    return Gated(replace(found, unfinished=_too_few(ran) or first.unfinished), interrupted)


def _too_few(ran: Ran) -> str:
    """Return why no time could have been called slower, if the time was used up before."""
    times = len(ran.course.words)
    rounds = earliest(times)
    if ran.stopped != BUDGET or rounds is None or ran.rounds >= rounds:
        return ""
    return (
        f"a decision on {counted(times, 'time')} needs {rounds} rounds, and there was time for"
        f" {ran.rounds}: raise --budget, or measure fewer paths"
    )


def _pass(
    task: Task, budget: Budget, again: str = "", only: frozenset[Key] | None = None
) -> tuple[Comparison, Ran, MeasuredSuite]:
    """Measure one pass of all cases, or only of some."""
    diagnosis_s = (1 - FIRST if again else FIRST) * task.budget_s
    with _side(task, "base", again) as base, _side(task, "head", again) as head:
        suite = MeasuredSuite(base, head, task.settings, task.watcher, only)
        task.watcher.start(len(suite.sides) * LOOKS[-1], budget.left_s)
        limit = task.settings.wide_limit
        ran = run(suite, len(suite.entries), budget, first=not again, wide_limit=limit)
        if not ran.interrupted:
            try:
                suite.diagnose(Budget(diagnosis_s, budget.clock(), budget.clock))
            except KeyboardInterrupt:
                ran.stopped = STOPPED
        found = suite.comparison(ran.course)
        for side in suite.sides:
            side.measurement.stop_with(side.runner, not ran.interrupted)
    if suite.undiagnosed and task.settings.criteria.need_diagnosis:
        paths = counted(len(suite.undiagnosed), "path")
        why = f"no time to look at waiting, memory and lifetime of {paths}: raise --budget"
        found = replace(found, unfinished=why)
    return replace(found, head=judged_session(head.measurement.session())), ran, suite


@contextmanager
def _side(task: Task, name: str, again: str) -> Iterator[Side]:
    """Open a side of a task, to be measured: ``base`` or ``head``."""
    sweep = task.head if name == "head" else task.base
    settings = replace(
        sweep.request.settings, rounds=LOOKS[-1], budget_s=None, together=True, in_turns=True
    )
    measurement = Measurement(
        replace(sweep.request, settings=settings),
        sweep.catalog,
        task.kept[f"{name}{again}"],
        SideWatcher(name.upper(), task.watcher),
    )
    with closing(measurement), measurement.running() as runner:
        numbers = {key(result.case): place for place, result in enumerate(measurement.results())}
        yield Side(measurement, runner, numbers)


def _measured_text(first: Ran, second: Ran | None, wall_s: float, diagnosis_s: float) -> str:
    """Return how many rounds were measured, how long that took, and why it stopped."""
    times = bool(first.course.words)
    ended = f": {first.stopped}" if times or first.interrupted else ", for the verdicts"
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
    """The first pass with what the second makes of the cases that it flagged."""
    again = {key(case.case): case for case in (second.cases if second else ())}
    criteria, names = first.settings.criteria, flagged(first)
    cases = [
        _confirmed(case, again.get(key(case.case)), criteria) if key(case.case) in names else case
        for case in first.cases
    ]
    return replace(first, cases=tuple(cases))


def _confirmed(case: Compared, again: Compared | None, criteria: Criteria) -> Compared:
    times = tuple(_time(time, again) if time.word == SLOWER else time for time in case.times)
    seen_once, changes = [], []
    for change in case.changes:
        if not criteria.fails(change) or _is_seen(change, again, criteria):
            changes.append(change)
        else:
            seen_once.append(change)
    known = {change.what for change in case.changes}
    seen_once += [
        change
        for change in (again.changes if again is not None else ())
        if criteria.fails(change) and change.what not in known
    ]
    for change in seen_once:
        after = f"{change.after} (seen in one pass only)"
        changes.append(replace(change, after=after, direction=LOST, severity="info"))
    # A crash that was seen once is no pass whatever --unsure says.
    crashes = [str(change) for change in seen_once if change.is_crash]
    doubt = f"{crashes[0]} in one of two passes" if crashes else case.doubt
    return judged(replace(case, times=times, changes=tuple(changes), doubt=doubt), criteria)


def _is_seen(change: Change, again: Compared | None, criteria: Criteria) -> bool:
    """Whether the second pass saw the change too, or another one for the worse in its place."""
    return again is not None and any(
        other.what == change.what and (other.after == change.after or criteria.fails(other))
        for other in again.changes
    )


def _time(first: Time, again: Compared | None) -> Time:
    """Return what is SLOWER in the first pass, with the word that both passes give it.

    If the second pass does not refute it, it is INVALID: no option makes a pass of it.
    """
    seconds = [one for one in (again.times if again else ()) if one.measure == first.measure]
    if not seconds:
        reason = f"{_ratio(first)} times as long, and not measured again"
        return replace(first, word=INVALID, reason=reason)
    (second,) = seconds
    told = f"{_ratio(first)} times as long in the first pass, {_ratio(second)} in the second"
    if second.word in (SLOWER, SAME):
        return replace(first, word=second.word, note=told)
    reason = f"{told}: {second.word}" + (f", {second.reason}" if second.reason else "")
    return replace(first, word=INVALID, reason=reason)


def _ratio(time: Time) -> str:
    return "no known number of" if time.ratio is None else f"{time.ratio:.3f}"
