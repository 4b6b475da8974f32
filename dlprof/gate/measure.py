"""From two interpreters, or one and a baseline, to one comparison."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from dlprof.compare.criteria import Criteria
from dlprof.compare.match import Key, key
from dlprof.compare.outcome import outcome
from dlprof.compare.record import Comparison
from dlprof.compare.sequential import IN_TURNS, Plan, earliest
from dlprof.compare.times import Settings
from dlprof.compare.verdicts import CRASHED_IN_COMPANY
from dlprof.gate.confirm import confirmed, flagged
from dlprof.gate.kept import Kept
from dlprof.gate.loop import BUDGET, STOPPED, Deadline, Ran, Reserve, run
from dlprof.gate.side import TIMERS, Named, Side, opened
from dlprof.gate.suite import Suite
from dlprof.gate.words import columns_text, imports_text, measured_text, speed_text
from dlprof.measuring.measuring import Measurement
from dlprof.plan.instruments import EVERY_ROUND
from dlprof.runner.asker import Watcher
from dlprof.scenario.expectation import MET, MISSED, TIMED, UNKNOWN, parse
from dlprof.scenario.request import Sweep
from dlprof.session.model import ExpectationRecord, Session

FIRST_SHARE = 0.75
"""Of the budget, for the first pass where something is flagged: it is to be measured again. In
15 of 16 gates with two views that were slower the second pass had decided both after 8 rounds, and
after 12 in the other (docs/results/gates-earlier.md)."""

WHOLE = 0.98
"""Of the budget, for all rounds: the rest is for files and reports."""

HALF = 0.46
"""Of the budget, so that all is over by half of it, reports and files included: what was not found
to be slower by then, and does not look like it, is left."""

KEPT_REFERENCES = 4
"""Rounds with reference costs where the sides are measured in turns, for who compares the session
with others later: in turns both sides meet the same machine."""


@dataclass(frozen=True)
class Task:
    """What to measure, and how to judge it.

    ``base`` is measured in turns with ``head``, or it is a finished session.
    """

    base: Sweep | Session
    head: Sweep
    settings: Settings
    criteria: Criteria
    kept: Kept
    watcher: Watcher
    budget_s: float | None
    told: tuple[str, ...] = ()
    """What is to be said besides."""

    @property
    def plan(self) -> Plan:
        """With a finished BASE, which both passes are compared with, each has the whole level."""
        return Plan() if isinstance(self.base, Session) else IN_TURNS


@dataclass(frozen=True)
class Gated:
    """What a gate found. ``interrupted`` if it was stopped before it could be sure."""

    comparison: Comparison
    interrupted: bool


def gate(task: Task) -> Gated:
    """Measure, and measure again what seems to be a regression.

    Raises :class:`~dlprof.errors.UsageError` where the sessions cannot be kept.
    """
    begun = time.monotonic()
    until = _until(task, begun, WHOLE)
    reserve = Reserve(_until(task, begun, FIRST_SHARE), half=_until(task, begun, HALF))
    first, ran, suite = _pass(task, "", None, until, reserve)
    cases = flagged(first, task.criteria)
    unmet = of_unmet(first)
    second, again = None, None
    # The diagnosis is in no budget, and takes no time from the second pass.
    until = until.later(suite.diagnosis_s)
    # One round shows a verdict again, and that much is measured however late it is.
    late = until.is_within(ran.last_s)
    anew = _worse(first, task.criteria) if late else cases | unmet
    if anew and not ran.interrupted:
        beside_others = any(_crashes_in_company(first, name) for name in anew)
        second, again, _ = _pass(task, "-again", None if beside_others else anew, until)
    stopped = ran.interrupted or (again is not None and again.interrupted)
    found = confirmed(first, second, cases, task.criteria, stopped)
    found = agreed(found, second, stopped, again.rounds if again else 0)
    told = (
        measured_text(
            ran,
            again,
            time.monotonic() - begun,
            isinstance(task.base, Session),
            bool(suite.entries),
        ),
        *(speed_text(first) if isinstance(task.base, Session) else columns_text(found)),
        *imports_text(suite.importing),
        *task.told,
    )
    return Gated(replace(found, told=told, sightless=_sightless(task, ran, stopped)), stopped)


def _sightless(task: Task, ran: Ran, stopped: bool) -> str:
    """Why no time could have been called slower, however slow, where there was no time for more."""
    if stopped:
        return "the gate was stopped before its end"
    times = len(ran.course.words)
    if isinstance(task.base, Session) or not task.criteria.times:
        return ""
    rounds = earliest(ran.course.plan, times)
    # At half of the time whatever looks slower is measured on.
    if ran.stopped != BUDGET or rounds is None or ran.looked >= rounds:
        return ""
    came = (
        f"and the last look was after {ran.looked}"
        if ran.looked
        else f"of which there was time for {ran.rounds}"
    )
    return (
        f"none of {times:,} times can be called slower before {rounds} rounds, {came}: give it "
        "more with --budget, or fewer conversions"
    )


def _crashes_in_company(found: Comparison, name: Key) -> bool:
    """Whether a case crashed after others in one process: alone it would not show that again."""
    return any(
        change.after == CRASHED_IN_COMPANY
        for case in found.cases
        if key(case.case) == name
        for change in case.changes
    )


def _worse(found: Comparison, criteria: Criteria) -> frozenset[Key]:
    """The flagged cases of which a verdict is worse."""
    worse = frozenset(key(case.case) for case, _ in outcome(found, criteria).worse)
    return worse & flagged(found, criteria)


def _until(task: Task, begun: float, share: float) -> Deadline:
    return Deadline(None if task.budget_s is None else begun + share * task.budget_s)


def _pass(
    task: Task,
    again: str,
    only: frozenset[Key] | None,
    deadline: Deadline,
    kept_back: Reserve | None = None,
) -> tuple[Comparison, Ran, Suite]:
    with ExitStack() as stack:
        base: Side | Session = (
            task.base
            if isinstance(task.base, Session)
            else stack.enter_context(side_of(task, "base", again))
        )
        head = stack.enter_context(side_of(task, "head", again))
        suite = Suite(base, head, task.settings, task.watcher, only, task.criteria.times)
        task.watcher.start(len(suite.sides) * task.plan.looks[-1])
        reserve = kept_back and replace(kept_back, flagged=lambda: suite.flagged(task.criteria))
        ran = run(suite, len(suite.entries), deadline, task.plan, reserve)
        if not ran.interrupted:
            ran = _diagnosed(suite, ran)
        for one in suite.sides:
            one.measurement.complete = not ran.interrupted
        found = suite.comparison(ran)
    return replace(found, head=head.measurement.judged(found.head)), ran, suite


def _diagnosed(suite: Suite, ran: Ran) -> Ran:
    try:
        suite.diagnose()
    except KeyboardInterrupt:
        return replace(ran, stopped=STOPPED)
    return ran


@contextmanager
def side_of(task: Task, name: str, again: str = "") -> Iterator[Side]:
    """A side of a task, to be measured: ``base`` or ``head``."""
    sweep = task.head if name == "head" or isinstance(task.base, Session) else task.base
    settings = replace(sweep.request.settings, rounds=task.plan.looks[-1], budget_s=None)
    if not isinstance(task.base, Session):
        settings = replace(settings, together=True, in_turns=True)
    measurement = Measurement(
        replace(sweep.request, settings=settings),
        sweep.catalog,
        task.kept.path(f"{name}{again}"),
        Named(name.upper(), task.watcher),
        reference_rounds=None if isinstance(task.base, Session) else KEPT_REFERENCES,
    )
    # The baseline was measured with all instruments, and what they leave behind in a process
    # changes the copies that come after them.
    later = EVERY_ROUND if isinstance(task.base, Session) else TIMERS
    with opened(name, measurement, later) as side:
        yield side


def of_unmet(first: Comparison) -> frozenset[Key]:
    """The cases that are measured again for what is not met: those of HEAD that it is about, and
    the other direction, which some rules compare them with.
    """
    patterns = [parse(one.text).pair for one in first.head.expectations if _by_times(one)]
    found = set()
    for case in first.cases:
        pair = (case.case.producer, case.case.consumer)
        meant = any(one.matches(pair) or one.matches(pair[::-1]) for one in patterns)
        if meant and case.statuses[1] is not None:
            found.add(key(case.case))
    return frozenset(found)


def agreed(
    first: Comparison, second: Comparison | None, stopped: bool = False, rounds: int = 2
) -> Comparison:
    """The first pass, with what the second makes of each expectation that is not met.

    ``second`` is None where there was none, and of so many ``rounds``, of which one tells nothing
    of times; where it was ``stopped`` it says nothing. What there is no case of to measure again is
    left.
    """
    if not of_unmet(first):
        return first
    again = {one.text: one for one in (second.head.expectations if second else ())}
    expectations = [
        _judged(one, again.get(one.text), stopped, rounds) for one in first.head.expectations
    ]
    head = first.head.model_copy(update={"expectations": expectations})
    return replace(first, head=head)


def _by_times(one: ExpectationRecord) -> bool:
    return one.verdict == MISSED and parse(one.text).what in TIMED


def _judged(
    one: ExpectationRecord, again: ExpectationRecord | None, stopped: bool, rounds: int
) -> ExpectationRecord:
    if not _by_times(one):
        return one
    if stopped:
        seen = "and it was stopped before it was measured again"
    elif again is None:
        seen = "and there was no time to measure it again"
    elif rounds == 1:
        seen = "and the one round that was measured again tells nothing of times"
    elif again.verdict == MISSED:
        return one
    else:
        seen = "met in the second" if again.verdict == MET else f"in the second: {again.reason}"
    reason = f"not met in the first pass, {seen}"
    return one.model_copy(update={"verdict": UNKNOWN, "reason": reason})
