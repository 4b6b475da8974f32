"""From two interpreters, or one and a baseline, to one comparison."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace

from dlprof.analysis.quantity import duration_text
from dlprof.compare.comparison import Comparison
from dlprof.compare.criteria import Criteria
from dlprof.compare.matching import Key, key
from dlprof.compare.outcome import outcome
from dlprof.compare.sequential import IN_TURNS, LOOKS, Plan, earliest
from dlprof.compare.surroundings import differences, refusal
from dlprof.compare.times import Settings
from dlprof.compare.verdicts import CRASHED_IN_COMPANY, MEASURED
from dlprof.errors import Unmeasured, Unsure
from dlprof.gate.confirm import SecondPass, confirmed, flagged, missed
from dlprof.gate.kept import Kept
from dlprof.gate.rounds import BUDGET, STOPPED, Deadline, Limits, Ran, run
from dlprof.gate.side import TIMERS, Side, SideWatcher, cases_of, opened, settings_of
from dlprof.gate.suite import MeasuredSuite
from dlprof.plan.catalog import environment
from dlprof.plan.schedule import EVERY_ROUND
from dlprof.runner.measurement import Measurement
from dlprof.runner.progress import Watcher
from dlprof.scenario.request import Sweep
from dlprof.session.header import Asked, Environment
from dlprof.session.model import Header, Session

FIRST_SHARE = 0.75
"""Of the budget, for the first pass if something is flagged. In 15 of 16 gates with two views that
were slower the second pass had decided both after 8 rounds (docs/results/gates.md)."""

WHOLE = 0.98
"""Of the budget, for all rounds: the rest is for files and reports."""

HALF = 0.46
"""Of the budget, so that all is over by half of it: a case that does not look slower by then is
left."""


@dataclass(frozen=True)
class Task:
    """What to measure, and how to judge it.

    ``base`` is measured in turns with ``head``, or it is a finished session. ``budget_s`` None is
    no limit. ``told`` is what the report says besides.
    """

    base: Sweep | Session
    head: Sweep
    settings: Settings
    criteria: Criteria
    kept: Kept
    watcher: Watcher
    budget_s: float | None
    told: tuple[str, ...] = ()

    @property
    def plan(self) -> Plan:
        """A finished BASE is what both passes are compared with, so each has the whole level."""
        return Plan() if isinstance(self.base, Session) else IN_TURNS


@dataclass(frozen=True)
class Gated:
    """What a gate found. ``interrupted`` if it was stopped before it could be sure."""

    comparison: Comparison
    interrupted: bool


def gate(task: Task) -> Gated:
    """Measure, and measure again what seems to be a regression.

    Raises :class:`~dlprof.errors.UsageError` if the sessions cannot be kept.
    """
    begun = time.monotonic()

    def share(part: float) -> Deadline:
        return Deadline(None if task.budget_s is None else begun + part * task.budget_s)

    first, ran, suite = _pass(task, "", None, Limits(share(WHOLE), share(FIRST_SHARE), share(HALF)))
    cases = flagged(first, task.criteria)
    # The diagnosis is in no budget, and takes no time from the second pass.
    end = share(WHOLE).later(suite.diagnosis_s)
    # One round shows a verdict again, and that much is measured however late it is.
    late = end.is_within(ran.last_s)
    anew = cases & _worse(first, task.criteria) if late else cases | missed(first)
    second, again = SecondPass(stopped=ran.interrupted), None
    if anew and not ran.interrupted:
        only = None if _crash_beside_others(first, anew) else anew
        found, again, _ = _pass(task, "-again", only, Limits(end))
        second = SecondPass(found, again.rounds, again.interrupted)
    found = confirmed(first, second, cases, task.criteria)
    told = (_measured_text(task, ran, again, time.monotonic() - begun), *task.told)
    sightless = _sightless(task, ran, second.stopped)
    return Gated(replace(found, told=told, sightless=sightless), second.stopped)


def _worse(found: Comparison, criteria: Criteria) -> frozenset[Key]:
    return frozenset(key(case.case) for case, _ in outcome(found, criteria).worse)


def _crash_beside_others(found: Comparison, cases: frozenset[Key]) -> bool:
    """Whether a case crashed after others in one process: alone it would not show that again."""
    return any(
        change.after == CRASHED_IN_COMPANY
        for case in found.cases
        if key(case.case) in cases
        for change in case.changes
    )


def _pass(
    task: Task, again: str, only: frozenset[Key] | None, limits: Limits
) -> tuple[Comparison, Ran, MeasuredSuite]:
    with ExitStack() as stack:
        base: Side | Session = (
            task.base
            if isinstance(task.base, Session)
            else stack.enter_context(side_of(task, "base", again))
        )
        head = stack.enter_context(side_of(task, "head", again))
        suite = MeasuredSuite(base, head, task.settings, task.watcher, only, task.criteria.times)
        task.watcher.start(len(suite.sides) * task.plan.looks[-1])
        limits = replace(limits, flagged=lambda: suite.is_flagged(task.criteria))
        ran = run(suite, len(suite.entries), limits, task.plan)
        if not ran.interrupted:
            try:
                suite.diagnose()
            except KeyboardInterrupt:
                ran = replace(ran, stopped=STOPPED)
        for side in suite.sides:
            side.measurement.complete = not ran.interrupted
        found = suite.comparison(ran)
    return replace(found, head=head.measurement.judged(found.head)), ran, suite


@contextmanager
def side_of(task: Task, name: str, again: str = "") -> Iterator[Side]:
    """A side of a task, to be measured: ``base`` or ``head``."""
    against = isinstance(task.base, Session)
    sweep = task.head if name == "head" or isinstance(task.base, Session) else task.base
    settings = replace(sweep.request.settings, rounds=task.plan.looks[-1], budget_s=None)
    if not against:
        settings = replace(settings, together=True, in_turns=True)
    measurement = Measurement(
        replace(sweep.request, settings=settings),
        sweep.catalog,
        task.kept.path(f"{name}{again}"),
        SideWatcher(name.upper(), task.watcher),
        is_resumable=False,
    )
    # The baseline was measured with all instruments, and what they leave behind in a process
    # changes the copies that come after them.
    later = EVERY_ROUND if against else TIMERS
    with closing(measurement), opened(measurement, later) as side:
        yield side


def check_baseline(baseline: Session, head: Sweep, across_pythons: bool = False) -> None:
    """Raises :class:`Unsure` if no time of HEAD could be compared with a finished session.

    Raises :class:`Unmeasured` if the baseline has nothing that HEAD is asked for.
    """
    wanted = {key(case) for case in cases_of(head)}
    timed = {key(one.case) for one in baseline.results if one.status in MEASURED}
    if not timed:
        raise Unmeasured("the baseline holds no case that was measured")
    if not wanted & timed:
        raise Unmeasured("the baseline has no case of this scenario: it is of another one")
    here = Header(
        created="",
        command=[],
        seed=0,
        environment=Environment.model_validate(environment(head.catalog, {})),
        request=Asked.model_validate({"settings": settings_of(head, LOOKS[-1]).as_dict()}),
    )
    reason = refusal(differences(baseline, here), across_pythons)
    if reason is not None:
        raise Unsure(
            f"HEAD cannot be compared with the baseline: {reason}; take a new baseline with: "
            "dlprof sweep SCENARIO --rounds 10 -o FILE"
        )


def _measured_text(task: Task, first: Ran, second: Ran | None, wall_s: float) -> str:
    """How many rounds were measured, how long that took, and why it stopped."""
    how = "HEAD alone" if isinstance(task.base, Session) else "in turns"
    times = bool(first.course.words)
    ended = f": {first.stopped}" if times or first.interrupted else ", for the verdicts"
    text = f"Measured {how}, {_rounds(first)}{ended}."
    if second is not None:
        ended = f": {second.stopped}" if times or second.interrupted else ""
        text += f" What was flagged was measured again, {_rounds(second)}{ended}."
    return f"{text} {duration_text(wall_s)} in all."


def _rounds(ran: Ran) -> str:
    return f"{ran.rounds} round{'' if ran.rounds == 1 else 's'}"


def _sightless(task: Task, ran: Ran, stopped: bool) -> str:
    """Why no time could have been called slower, if there was no time for more; else empty."""
    if stopped:
        return "the gate was stopped before its end"
    if isinstance(task.base, Session) or not task.criteria.times or ran.stopped != BUDGET:
        return ""
    times = len(ran.course.words)
    rounds = earliest(ran.course.plan, times)
    if rounds is None or ran.looked >= rounds:
        return ""
    came = (
        f"and the last look was after {ran.looked}"
        if ran.looked
        else f"of which there was time for {ran.rounds}"
    )
    return (
        f"none of {times:,} times can be called slower before {rounds} rounds, {came}: raise "
        "--budget, or name fewer conversions"
    )
