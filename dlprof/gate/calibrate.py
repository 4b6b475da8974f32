"""Measure a machine against itself: both sides run the same code, in turns."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise

from dlprof.compare.match import Key, key
from dlprof.compare.process import Process, median_ns
from dlprof.compare.process import Side as Processes
from dlprof.compare.sequential import LOOKS, Plan
from dlprof.compare.times import Work
from dlprof.gate.loop import Deadline
from dlprof.gate.measure import HALF, Task, side_of
from dlprof.gate.noise import CaseNoise, Noise
from dlprof.gate.power import Round, lasting, modes_of, power, rounds_of, spread
from dlprof.gate.suite import Suite
from dlprof.measuring.measuring import now
from dlprof.session.model import CaseRecord, Mode

LEAST_ROUNDS = LOOKS[0]
MOST_ROUNDS = LOOKS[-1]


@dataclass(frozen=True)
class Calibrated:
    """``unmeasured`` are cases without a time. ``interrupted`` if it was stopped."""

    noise: Noise
    unmeasured: tuple[CaseRecord, ...]
    round_s: float
    interrupted: bool = False


def calibrate(task: Task) -> Calibrated | None:
    """Measure for the task's budget, and say what the gate could tell in that time.

    At least :data:`LEAST_ROUNDS` rounds are measured; None where it was stopped before that.
    """
    with ExitStack() as stack:
        sides = [stack.enter_context(side_of(task, name)) for name in ("base", "head")]
        suite = Suite(sides[0], sides[1], task.settings, task.watcher)
        task.watcher.start(2 * MOST_ROUNDS)
        rounds, cost, interrupted = _rounds(suite, Deadline.after(task.budget_s))
        for side in sides:
            side.measurement.complete = not interrupted
        if rounds < LEAST_ROUNDS:
            return None
        works = suite.works()
        records = _records(suite)
        environment = sides[1].measurement.header().environment
    measured = [work for work in works if work.sample.base and work.sample.head]
    lasts = [lasting(_pairs(work), work.floor, len(works), task.plan) for work in measured]
    most = fitting(task.plan, lasts, cost, HALF * (task.budget_s or 0.0))
    noise = Noise(
        created=now(),
        scenario=task.head.request.scenario.file if task.head.request.scenario else "",
        environment=environment,
        rounds=rounds,
        gate_rounds=most,
        budget_s=task.budget_s or 0.0,
        sample_ns=task.head.request.settings.sample_ns,
        cases=[_case(records[work.key], work, len(works), (task.plan, most)) for work in measured],
    )
    left = {work.key for work in works} - {work.key for work in measured}
    unmeasured = tuple(records[name] for name in left)
    return Calibrated(noise, unmeasured, cost.of(1.0), interrupted)


def _rounds(suite: Suite, deadline: Deadline) -> tuple[int, RoundCost, bool]:
    """Rounds of all cases until the time is used up; what one takes; stopped or not."""
    everything = frozenset(range(len(suite.entries)))
    done, begun = 0, deadline.clock()
    # Of the first round, which starts the interpreters' caches, nothing is counted.
    first_s = first_loading_s = 0.0
    try:
        while done < LEAST_ROUNDS or (done < MOST_ROUNDS and not deadline.passed):
            suite.measure(done, everything)
            done += 1
            first_s = first_s or deadline.clock() - begun
            first_loading_s = first_loading_s or suite.loading_s
    except KeyboardInterrupt:
        stopped = True
    else:
        stopped = False
    others = max(done - 1, 1)
    loading_s = (suite.loading_s - first_loading_s) / others
    round_s = (deadline.clock() - begun - first_s) / others
    return done, RoundCost(loading_s, max(0.0, round_s - loading_s)), stopped


def _records(suite: Suite) -> dict[Key, CaseRecord]:
    return {key(result.case): result.case for result in suite.head.results()}


def _pairs(work: Work) -> tuple[Round, ...]:
    return rounds_of(work.sample.base, work.sample.head)


def _case(record: CaseRecord, work: Work, cases: int, planned: tuple[Plan, int]) -> CaseNoise:
    rounds = _pairs(work)
    side = (*work.sample.base, *work.sample.head)
    found = power(rounds, work.floor, cases, *planned)
    return CaseNoise(
        case=record,
        measure=work.floor.measure,
        median_ns=median_ns(side) or 0.0,
        processes=len(side),
        spread=spread(rounds),
        modes=_modes(side),
        caught=found.caught,
        floor=found.floor,
    )


def _modes(side: Processes) -> list[Mode]:
    found = [[side[index] for index in mode] for mode in modes_of(side)]
    return [_mode(mode) for mode in found] if len(found) > 1 else []


def _mode(mode: Sequence[Process]) -> Mode:
    faults = [process.page_faults for process in mode if process.page_faults is not None]
    return Mode(
        median_ns=median_ns(mode) or 0.0,
        rounds=[process.round for process in mode],
        page_faults_per_call=statistics.median(faults) if faults else None,
    )


@dataclass(frozen=True)
class RoundCost:
    """Seconds of a round of all cases: for processes and imports, and for the cases together."""

    loading_s: float
    cases_s: float

    def of(self, share: float) -> float:
        """Seconds of a round of this share of the cases; all processes import all the same."""
        return self.loading_s + share * self.cases_s


def fitting(plan: Plan, lasts: Sequence[Sequence[int]], cost: RoundCost, time_s: float) -> int:
    """The rounds of the last look of the plan that ``time_s`` is enough for, at least the first.

    ``lasts`` is, of each case, after how many rounds gates of equal code measure it no more
    (:func:`dlprof.gate.power.lasting`).
    """
    found, needed_s = plan.looks[0], 0.0
    for before, rounds in pairwise((0, *plan.looks)):
        needed_s += (rounds - before) * cost.of(_open(lasts, before))
        if needed_s <= time_s:
            found = rounds
    return found


def _open(lasts: Sequence[Sequence[int]], rounds: int) -> float:
    """The share of the cases that is still measured after so many rounds, in the mean."""
    shares = [sum(last > rounds for last in one) / len(one) for one in lasts if one]
    return sum(shares) / len(shares) if shares else 0.0
