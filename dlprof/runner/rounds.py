"""The rounds: fresh workers and shuffled cases, whatever a framework does to its process."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any

from dlprof.plan.pairing import Case
from dlprof.plan.request import Settings
from dlprof.plan.schedule import Group, Round, Stop, grouped, shuffled
from dlprof.runner.case_client import CaseClient, Turns, imports_of, status_of
from dlprof.runner.diagnosis import Diagnosis, died_before, serves_no_more
from dlprof.runner.journal import Journal
from dlprof.runner.progress import Watcher
from dlprof.runner.worker_client import Outcome, WorkerPool

MOST_DEATHS = 3
"""A path that ended so many processes is tried with no other array of the survey."""
OFTEN_DEAD = f"not tried: the path ended {MOST_DEATHS} processes before"


class Runner:
    """Measures cases in one interpreter, and writes every answer into a journal.

    ``variables`` are environment variables of the frameworks. ``on_answer`` is called after each
    case. A round that the journal holds already is not measured again.
    """

    def __init__(
        self,
        python: str,
        variables: Mapping[str, str],
        cases: Sequence[Case],
        settings: Settings,
        journal: Journal,
        watcher: Watcher,
        on_answer: Callable[[], None] = lambda: None,
    ) -> None:
        self.cases = cases
        self.settings = settings
        self.journal = journal
        self.watcher = watcher
        self.rounds_done = 0
        self.out_of_time = False
        self.undiagnosed = 0, 0
        """Paths without a diagnosis when the time was over, and all paths."""
        self._deaths: Counter[Any] = Counter()
        """How often each path ended its process, or gave no answer."""
        self._pool = WorkerPool(python, variables)
        self._client = CaseClient(self._pool, settings, journal, watcher, on_answer)
        self._diagnosis = Diagnosis(cases, self._client)

    def leave_out_traces(self) -> None:
        """CUPTI is missing: no worker is asked for a trace."""
        self._diagnosis.can_trace = False

    def run(self) -> None:
        """All rounds, or as many as the budget allows; at least one."""
        timed = [index for index, case in enumerate(self.cases) if not case.surveyed]
        surveyed = [index for index, case in enumerate(self.cases) if case.surveyed]
        started, rounds = time.monotonic(), self.settings.rounds if timed else 0
        paths = self._diagnosis.paths
        self.watcher.start(len(timed) * rounds + len(surveyed) + paths)
        for round_ in range(rounds):
            if round_ and self._over_budget(started):
                break
            last = round_ == rounds - 1
            for group in self._groups(round_, set(timed)):
                late = not last or self._over_budget(started)
                diagnosed = set() if late else self._diagnosis.chosen()
                deque(self._run_group(group, round_, diagnosed), maxlen=0)
            self.rounds_done = round_ + 1
        self.out_of_time = self._over_budget(started)
        left = self._diagnosis.left()
        self.undiagnosed = len(left), paths
        if self.out_of_time or self.rounds_done < rounds:
            return
        for group in shuffled(self._grouped(sorted(left)), self.settings.seed, rounds):
            self._diagnosis.diagnose(group)
        for _ in range(paths - len(self._diagnosis.done)):
            self.watcher.step()  # refused, crashed, or diagnosed before the run was resumed
        for group in self._needed(0, surveyed):
            deque(self._run_group(group, 0, set()), maxlen=0)

    def round(self, round_: int, only: set[int]) -> None:
        for group in self._groups(round_, only):
            deque(self._run_group(group, round_, set()), maxlen=0)
        self.rounds_done = max(self.rounds_done, round_ + 1)

    def turns(self, round_: int, order: Sequence[int], cpu: int | None) -> Round:
        """One round of some cases, in turns with another runner; samples are on ``cpu``."""
        for group in self._needed(round_, order):
            yield from self._run_group(group, round_, set(), {"cpu": cpu})
        self.rounds_done = max(self.rounds_done, round_ + 1)

    def diagnose(self, only: set[int]) -> None:
        chosen = sorted(self._diagnosis.left() & only)
        for group in shuffled(self._grouped(chosen), self.settings.seed, self.settings.rounds):
            self._diagnosis.diagnose(group)

    def look_again(self, only: set[int], instrument: str, look: int) -> None:
        """See :meth:`~dlprof.runner.diagnosis.Diagnosis.look_again`."""
        for group in self._grouped(sorted(only)):
            self._diagnosis.look_again(group, instrument, look)

    def measure_later(self, instruments: tuple[str, ...]) -> None:
        """Ask for these instruments in all rounds but the first."""
        self._client.later_rounds = instruments

    def load(self, round_: int, order: Sequence[int]) -> None:
        """Start the first worker of :meth:`turns`, which imports meanwhile."""
        for group in self._needed(round_, order):
            self.watcher.case(group[0][1], round_, "import")
            self._pool.load([imports_of(case) for _, case in group])
            return

    def wait(self) -> None:
        """Wait until the worker of :meth:`load` has imported. A worker that died is dropped."""
        self._pool.wait(self.settings.limit_s)

    def close(self) -> None:
        self._pool.close()

    def _over_budget(self, started: float) -> bool:
        budget_s = self.settings.budget_s
        return budget_s is not None and time.monotonic() - started > budget_s

    def _groups(self, round_: int, only: set[int] | None = None) -> Iterator[Group]:
        """The cases that a round still needs, grouped for one worker each, in random order."""
        order = range(len(self.cases)) if only is None else sorted(only)
        return shuffled(self._needed(round_, order), self.settings.seed, round_)

    def _needed(self, round_: int, order: Iterable[int]) -> list[Group]:
        """The cases that a round still needs, grouped for one worker each."""
        needed = []
        for index in order:
            if self.journal.needs(index, round_):
                needed.append(index)
            else:
                self.watcher.step()
        return self._grouped(needed)

    def _grouped(self, indices: Iterable[int]) -> list[Group]:
        return grouped(((index, self.cases[index]) for index in indices), self.settings)

    def _run_group(
        self,
        group: Group,
        round_: int,
        diagnosed: set[int],
        turns: Turns | None = None,
        refused: Mapping[int, Outcome] | None = None,
    ) -> Round:
        """One round of a group. The worker that is left at the end makes the diagnosis.

        A case may have broken the process for those after it. So what was refused after another
        case is asked for again in a new process, in reversed order: then what came before it comes
        after it. ``refused`` has the first answers of cases that are asked for again.
        """
        waiting = list(group)
        doubtful: dict[int, Outcome] = {}  # in the order in which they were asked for
        alone = len(group) == 1
        while waiting:
            yield Stop(waiting[0][0])  # before a process starts that would disturb the other side
            with self._pool.worker() as worker:
                served = 0
                while waiting:
                    if served:
                        yield Stop(waiting[0][0])
                    index, case = waiting.pop(0)
                    if case.surveyed and self._deaths[case.pair, case.path] >= MOST_DEATHS:
                        self._client.keep(index, round_, Outcome("skipped", OFTEN_DEAD))
                        continue
                    with self._client.kept_if_stopped(index, round_, _name(round_), worker.heard):
                        outcome = yield from self._client.in_turns(
                            worker, index, case, round_, turns, alone
                        )
                    if served and died_before(outcome):
                        waiting.insert(0, (index, case))
                        break
                    if served and refused is None and _was_refused(outcome):
                        doubtful[index] = outcome
                        if case.surveyed and not self._pool.has_loaded:
                            # It imports beside the others: no time is taken here.
                            self._pool.load([imports_of(case)])
                    else:
                        _compare(outcome, refused[index] if refused else None)
                        yield from self._settle(index, round_, outcome, turns, alone)
                    served += 1
                    if serves_no_more(outcome):
                        break
                else:
                    left = self._diagnosis.left_of(group, diagnosed - doubtful.keys())
                    self._diagnosis.diagnose(left, worker)
        if doubtful:
            again = [(index, self.cases[index]) for index in reversed(doubtful)]
            yield from self._run_group(again, round_, diagnosed, turns, doubtful)

    def _settle(
        self, index: int, round_: int, outcome: Outcome, turns: Turns | None, alone: bool
    ) -> Round:
        """Keep the outcome of a case; of the case alone if it broke a worker of many cases."""
        case = self.cases[index]
        if _broke(outcome) and (self.settings.together or case.surveyed) and not alone:
            outcome = yield from self._alone(index, round_, outcome, turns)
        self._client.keep(index, round_, outcome)
        self._deaths[case.pair, case.path] += not outcome.alive

    def _alone(
        self, index: int, round_: int, broken: Outcome, turns: Turns | None
    ) -> Generator[Stop, int | None, Outcome]:
        """Try a case that broke a worker of several cases once more in a process of its own."""
        case = self.cases[index]
        with (
            self._pool.worker() as worker,
            self._client.kept_if_stopped(
                index, round_, _name(round_), lambda: in_company(worker.heard(), broken)
            ),
        ):
            outcome = yield from self._client.in_turns(
                worker, index, case, round_, turns, alone=True
            )
        if outcome.alive:
            _note_company(outcome, broken)
            outcome.output = broken.output
        return in_company(outcome, broken)


def _name(round_: int) -> str:
    return f"round {round_ + 1}"


def _broke(outcome: Outcome) -> bool:
    """Whether earlier cases may have broken a worker. They do not make an import hang."""
    hung = outcome.status == "timeout" and outcome.stage in ("start", "import")
    return not outcome.alive and not hung


def _was_refused(outcome: Outcome) -> bool:
    """Whether a living worker refused a case; a disturbed device is no refusal."""
    return outcome.alive and outcome.status not in ("ok", "invalid")


def _compare(outcome: Outcome, refused: Outcome | None) -> None:
    """Note that a case works which was ``refused`` after other cases."""
    if refused is not None and outcome.status == "ok":
        _note_company(outcome, refused)
        in_company(outcome, refused)


def _note_company(outcome: Outcome, before: Outcome) -> None:
    what = "after other conversions in the same process"
    outcome.failures.append({"instrument": what, "reason": before.reason or before.status})


def in_company(outcome: Outcome, broken: Outcome) -> Outcome:
    """The outcome of a case alone, with its earlier one after other cases."""
    reason = broken.reason or broken.status
    outcome.parts["in_company"] = {"status": status_of(broken), "reason": reason}
    return outcome
