"""From two interpreters to one comparison. A regression is what two passes in fresh processes
agree on.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from dlprof.compare.comparison import WORSE, Compared, Comparison, judged
from dlprof.compare.criteria import Criteria
from dlprof.compare.gate_rounds import BUDGET, FIRST, STOPPED, Budget, Ran, run
from dlprof.compare.gate_suite import MeasuredSuite, Side, SideWatcher, opened
from dlprof.compare.looks import earliest
from dlprof.compare.matching import Key, key
from dlprof.compare.times import INVALID, LOOKS, SAME, SLOWER, Settings, Time
from dlprof.compare.verdicts import CRASHED_IN_COMPANY, LOST, Change
from dlprof.errors import UsageError
from dlprof.measuring.measure import judged as judged_session
from dlprof.measuring.sweep import Sweep
from dlprof.runner.measurement import Measurement
from dlprof.runner.pairing import Case
from dlprof.runner.plan import plan
from dlprof.runner.progress import Watcher
from dlprof.runner.quantity import duration_text
from dlprof.runner.schedule import OWN_PROCESS_BYTES
from dlprof.runner.session import CaseRecord
from dlprof.runner.state import default_path
from dlprof.text.clean import counted

NAMES = ("base", "head", "base-again", "head-again")


@dataclass(frozen=True)
class Kept:
    """Where the sessions of both sides and passes are: ``base.json``, ``head.json`` and so on."""

    folder: Path
    prefix: str = ""

    def path(self, name: str) -> Path:
        return self.folder / f"{self.prefix}{name}.json"

    def written(self) -> list[Path]:
        """The files that are there."""
        return [path for path in map(self.path, NAMES) if path.is_file()]


def kept_in(folder: Path | None) -> Kept:
    """The folder that the user named, or the state folder. Raises :class:`UsageError`."""
    if folder is None:
        path = default_path("gate")
        return Kept(path.parent, f"{path.stem}-")
    if folder.suffix == ".json" or folder.is_file():
        raise UsageError(f"-o {folder}: a gate keeps several sessions, so name a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make the folder {folder}: {error.strerror}") from None
    if Kept(folder).written():
        raise UsageError(f"-o {folder} holds sessions of an earlier gate: name another folder")
    return Kept(folder)


@dataclass(frozen=True)
class Task:
    """What to measure, and how to judge it.

    ``budget_s`` None is no limit. It is ``patient`` if the user did not name it. ``told`` is what
    the report says besides, and ``in_one_place`` are the frameworks that both sides load from the
    same file.
    """

    base: Sweep
    head: Sweep
    settings: Settings
    kept: Kept
    watcher: Watcher
    budget_s: float | None
    told: tuple[str, ...] = ()
    patient: bool = False
    in_one_place: tuple[str, ...] = ()


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
        # The diagnosis takes no time from the rounds of the second pass.
        left = budget.later(diagnosis_s)
        second, again, suite = _pass(task, left, "-again", _alone(first, cases))
        interrupted = again.interrupted
        diagnosis_s += suite.diagnosis_s
    found = confirmed(first, second)
    wall_s = budget.clock() - budget.begun
    told = _measured_text(ran, again, wall_s, diagnosis_s), *task.told
    found = replace(found, told=told, in_one_place=task.in_one_place)
    return Gated(replace(found, too_few_rounds=_too_few(ran)), interrupted)


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


def _undiagnosed(suite: MeasuredSuite) -> str:
    """Of how many paths the verdicts were not looked at for lack of time; empty for none."""
    count = len(suite.undiagnosed)
    if not count:
        return ""
    return (
        f"no time to look at waiting, memory and lifetime of {counted(count, 'path')}:"
        " raise --budget"
    )


def _alone(found: Comparison, cases: frozenset[Key]) -> frozenset[Key] | None:
    """The cases to measure again; None for all, if one crashed after others in one process: alone
    it would not show that again.
    """
    beside_others = any(
        change.after == CRASHED_IN_COMPANY
        for case in found.cases
        if key(case.case) in cases
        for change in case.changes
    )
    return None if beside_others else cases


def _pass(
    task: Task, budget: Budget, again: str = "", only: frozenset[Key] | None = None
) -> tuple[Comparison, Ran, MeasuredSuite]:
    """Measure one pass of all cases, or only of some."""
    share = 1 - FIRST if again else FIRST
    diagnosis_s = None if task.budget_s is None else share * task.budget_s
    with ExitStack() as stack:
        base = stack.enter_context(side_of(task, "base", again))
        head = stack.enter_context(side_of(task, "head", again))
        suite = MeasuredSuite(base, head, task.settings, task.watcher, only)
        task.watcher.start(len(suite.sides) * LOOKS[-1], budget.left_s)
        limit = task.settings.wide_limit
        ran = run(suite, len(suite.entries), budget, first=not again, wide_limit=limit)
        if not ran.interrupted:
            try:
                suite.diagnose(Budget(diagnosis_s, budget.clock(), budget.clock))
            except KeyboardInterrupt:
                ran.stopped = STOPPED
        found = replace(suite.comparison(ran.course), undiagnosed=_undiagnosed(suite))
        for side in suite.sides:
            side.measurement.stop_with(side.runner, not ran.interrupted)
    return replace(found, head=judged_session(head.measurement.session())), ran, suite


@contextmanager
def side_of(task: Task, name: str, again: str = "") -> Iterator[Side]:
    """Open a side of a task, to be measured: ``base`` or ``head``."""
    sweep = task.head if name == "head" else task.base
    settings = replace(
        sweep.request.settings, rounds=LOOKS[-1], budget_s=None, together=True, in_turns=True
    )
    measurement = Measurement(
        replace(sweep.request, settings=settings),
        sweep.catalog,
        task.kept.path(f"{name}{again}"),
        SideWatcher(name.upper(), task.watcher),
    )
    with closing(measurement), opened(measurement) as side:
        yield side


def cases_of(sweep: Sweep) -> list[CaseRecord]:
    """What a sweep measures. Raises :class:`~dlprof.errors.Unmeasured` if that is nothing."""
    return [CaseRecord.model_validate(case.record()) for case in _planned(sweep)]


def has_large_arrays(sweep: Sweep) -> bool:
    """Whether some cases take no turns, since two of their arrays may not fit into memory."""
    return any(case.size_bytes >= OWN_PROCESS_BYTES for case in _planned(sweep))


def _planned(sweep: Sweep) -> tuple[Case, ...]:
    return tuple(plan(sweep.request, sweep.catalog).cases)


def _measured_text(first: Ran, second: Ran | None, wall_s: float, diagnosis_s: float) -> str:
    """Return how many rounds were measured, how long that took, and why it stopped."""
    times = bool(first.course.words)
    ended = f": {first.stopped}" if times or first.interrupted else ", for the verdicts"
    text = f"Measured in turns, {counted(first.rounds, 'round')}{ended}."
    if second is not None:
        ended = f": {second.stopped}" if times or second.interrupted else ""
        text += f" The second pass took {counted(second.rounds, 'round')}{ended}."
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
    changes = [
        change if not criteria.fails(change) or _is_seen(change, again, criteria) else _lost(change)
        for change in case.changes
    ]
    once = [old for old, new in zip(case.changes, changes, strict=True) if new is not old]
    known = {change.what for change in case.changes}
    if again is not None:
        for change in again.changes:
            if criteria.fails(change) and change.what not in known:
                once.append(change)
                changes.append(_lost(change))
    crashes = [str(change) for change in once if change.is_crash]
    # It failed once, so it is no pass whatever --unsure says.
    doubt = f"{crashes[0]} in one of two passes" if crashes else case.doubt
    return judged(replace(case, times=times, changes=tuple(changes), doubt=doubt), criteria)


def _is_seen(change: Change, again: Compared | None, criteria: Criteria) -> bool:
    """Whether the second pass saw the change too, or another one for the worse in its place."""
    return again is not None and any(
        other.what == change.what and (other.after == change.after or criteria.fails(other))
        for other in again.changes
    )


def _lost(change: Change) -> Change:
    """What only one pass saw: nobody can be sure of it."""
    after = f"{change.after} (seen in one pass only)"
    return replace(change, after=after, direction=LOST, severity="info")


def _time(first: Time, again: Compared | None) -> Time:
    """What is SLOWER in the first pass, with the word that both passes give it.

    If the second pass does not refute it, it is INVALID: no option makes a pass of it.
    """
    second = (
        next((one for one in again.times if one.measure == first.measure), None) if again else None
    )
    if second is None:
        reason = f"{_ratio(first)} times as long, and not measured again"
        return replace(first, word=INVALID, reason=reason)
    told = f"{_ratio(first)} times as long in the first pass, {_ratio(second)} in the second"
    if second.word == SLOWER:
        return replace(first, note="; ".join(filter(None, (told, first.note))))
    if second.word == SAME:
        return replace(first, word=SAME, note=told)
    reason = f"{told}: {second.word}" + (f", {second.reason}" if second.reason else "")
    return replace(first, word=INVALID, reason=reason)


def _ratio(time: Time) -> str:
    return "no known number of" if time.ratio is None else f"{time.ratio:.3f}"
