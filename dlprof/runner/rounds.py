"""Run the rounds: fresh workers, shuffled cases, and survive whatever a framework does."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

from dlprof.plan.groups import Group, grouped, shuffled
from dlprof.plan.instruments import FIRST_CALL
from dlprof.plan.pairing import Case
from dlprof.plan.settings import Settings
from dlprof.plan.turns import Round, Stop
from dlprof.runner.asker import Asker, Turns, Watcher, way
from dlprof.runner.diagnoser import Diagnoser
from dlprof.runner.interpreter import Outcome
from dlprof.runner.keeper import Keeper, company
from dlprof.runner.outcomes import broke_in_company, died_before, only_first_call, serves_no_more
from dlprof.runner.standby import Interpreter, Standby
from dlprof.session.journal import INTERRUPTED, Journal


class Runner:
    """Measures cases in interpreters and writes every answer into a journal.

    ``interpreters`` are by the name of their environment. A round goes over all of them, in
    random order, so that whatever changes on the machine meanwhile meets them alike.
    """

    def __init__(
        self,
        interpreter: Interpreter,
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
        """Cases that a diagnosis is left of when the rounds are over, and all that it is of."""
        self._standby = Standby(interpreter)
        self.asker = Asker(self._standby, settings, watcher)
        self._keeper = Keeper(journal, watcher, on_answer)
        self._diagnoser = Diagnoser(cases, self.asker, self._keeper)

    def run(self) -> None:
        """All rounds, or as many as the budget allows; at least one."""
        started = time.monotonic()
        paths = self._diagnoser.paths
        alone = len(self.cases) if self.settings.first_calls else 0
        self.watcher.start(len(self.cases) * self.settings.rounds + paths + alone)
        for round_ in range(self.settings.rounds):
            if round_ and self._over_budget(started):
                break
            last = round_ == self.settings.rounds - 1
            for group in self._groups(round_):
                late = not last or self._over_budget(started)
                diagnosed = set() if late else self._diagnoser.chosen()
                _exhaust(self._run_group(group, round_, diagnosed))
            self.rounds_done = round_ + 1
        self.out_of_time = self._over_budget(started)
        left = self._diagnoser.left()
        self.undiagnosed = len(left), paths
        if self.out_of_time or self.rounds_done < self.settings.rounds:
            return
        for group in self._groups(self.settings.rounds, left):
            self._diagnoser.diagnose(group)
        for _ in range(paths - len(self._diagnoser.done)):
            self.watcher.step()  # refused or crashed, or in the session that is finished
        if self.settings.first_calls:
            self._first_calls()

    def _first_calls(self) -> None:
        """The first call of each case in a process that makes no other."""
        for index, case in enumerate(self.cases):
            if not case.is_step and self._was_never_first(index):
                with self.asker.worker() as worker:
                    outcome = self.asker.ask(worker, case, self.settings.rounds, FIRST_CALL)
                self._keeper.record(index, self.settings.rounds, only_first_call(outcome))
            self.watcher.step()

    def _was_never_first(self, index: int) -> bool:
        """Whether a case works, and was the first of no process."""
        answers = [answer for _, answer in self.journal.answers(index)]
        firsts = (answer["parts"].get("first_call") for answer in answers)
        return all(answer["status"] in ("ok", INTERRUPTED) for answer in answers) and not any(
            first and not first["cases_before"] for first in firsts
        )

    def load(self, round_: int, only: set[int]) -> None:
        """Start the first worker of a round, and have it import what it needs meanwhile."""
        self._load(self._groups(round_, only), round_)

    def load_in_order(self, round_: int, order: Sequence[int]) -> None:
        """The same for :meth:`turns`."""
        self._load(self._in_order(round_, order), round_)

    def _load(self, groups: Iterable[Group], round_: int) -> None:
        for group in groups:
            first = group[0][1]
            self.watcher.case(first, round_, "import")
            self._standby.load([way(case) for _, case in group])
            return

    def wait(self) -> None:
        """Until the worker that :meth:`load` started has imported; one that died is forgotten."""
        self._standby.wait(self.settings.limit_s)

    def importing_s(self) -> float | None:
        """Processor time that the imports of that worker took; None where nobody knows."""
        return self._standby.processor_s()

    def round(self, round_: int, only: set[int]) -> None:
        """One round of some cases."""
        for group in self._groups(round_, only):
            _exhaust(self._run_group(group, round_, set()))
        self.rounds_done = max(self.rounds_done, round_ + 1)

    def turns(self, round_: int, order: Sequence[int], cpu: int | None) -> Round:
        """One round of some cases, measured in turns with another one; samples are on ``cpu``."""
        for group in self._in_order(round_, order):
            yield from self._run_group(group, round_, set(), {"cpu": cpu})
        self.rounds_done = max(self.rounds_done, round_ + 1)

    def diagnose(self, only: set[int]) -> None:
        """The diagnosis of some cases, for one who asks for single rounds."""
        for group in self._groups(self.settings.rounds, self._diagnoser.chosen() & only):
            self._diagnoser.diagnose(group)

    def close(self) -> None:
        """End a worker that was loaded and not used."""
        self._standby.close()

    def _over_budget(self, started: float) -> bool:
        budget = self.settings.budget_s
        return budget is not None and time.monotonic() - started > budget

    def _groups(self, round_: int, only: set[int] | None = None) -> Iterator[Group]:
        """The cases that this round still needs, grouped for one worker each, in random order."""
        order = range(len(self.cases)) if only is None else sorted(only)
        return shuffled(self._in_order(round_, order), self.settings.seed, round_)

    def _in_order(self, round_: int, order: Iterable[int]) -> list[Group]:
        """The same in an order that is given."""
        needed = []
        for index in order:
            if self.journal.needs(index, round_):
                needed.append((index, self.cases[index]))
            else:
                self.watcher.step()
        return grouped(needed, self.settings)

    def _run_group(
        self, group: Group, round_: int, diagnosed: set[int], turns: Turns | None = None
    ) -> Round:
        """One round of a group; its diagnosis as well, by the worker that is left at the end."""
        waiting = list(group)
        while waiting:
            yield Stop(waiting[0][0])  # before a process starts that would disturb the other round
            with self.asker.worker() as worker:
                served = 0
                while waiting:
                    if served:
                        yield Stop(waiting[0][0])
                    index, case = waiting.pop(0)
                    with self._keeper.if_stopped(index, round_, worker):
                        alone = len(group) == 1
                        outcome = yield from self.asker.in_turns(
                            worker, index, case, round_, turns, alone
                        )
                    if served and died_before(outcome):
                        waiting.insert(0, (index, case))
                        break
                    served += 1
                    if broke_in_company(outcome) and self.settings.together and not alone:
                        with self._keeper.if_alone_stopped(index, round_, outcome):
                            outcome = yield from self._alone(index, round_, outcome, turns)
                        self._keeper.keep(index, round_, outcome)
                        break
                    self._keeper.keep(index, round_, outcome)
                    if serves_no_more(outcome):
                        break
                else:
                    left = self._diagnoser.left_of(group, diagnosed)
                    self._diagnoser.diagnose(left, worker)

    def _alone(
        self, index: int, round_: int, broken: Outcome, turns: Turns | None
    ) -> Generator[Stop, int | None, Outcome]:
        """Try a case that broke a worker it shared with other pairs once more in its own."""
        case = self.cases[index]
        with self.asker.worker() as worker:
            outcome = yield from self.asker.in_turns(worker, index, case, round_, turns, alone=True)
        outcome.parts["in_company"] = company(broken)
        if outcome.alive:
            outcome.failures.append(
                {
                    "instrument": "after other conversions in the same process",
                    "reason": broken.reason or broken.status,
                }
            )
            outcome.output = broken.output
        return outcome


def _exhaust(round_: Round) -> None:
    """Run a round that takes no turns: nobody waits where it stops."""
    deque(round_, maxlen=0)
