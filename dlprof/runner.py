"""Run the rounds: fresh workers, shuffled cases, and survive whatever a framework does."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from dlprof.asking import LEAST_BYTES_PER_S as LEAST_BYTES_PER_S  # noqa: PLC0414
from dlprof.asking import limit_of, request_of
from dlprof.asking import way as way  # noqa: PLC0414
from dlprof.diagnosis import diagnosed_paths, diagnosis_of, standing_for
from dlprof.groups import Group, grouped, shuffled
from dlprof.instruments import DIAGNOSIS as DIAGNOSIS  # noqa: PLC0414 - callers find these here
from dlprof.instruments import EVERY_ROUND as EVERY_ROUND  # noqa: PLC0414
from dlprof.instruments import FIRST_CALL as FIRST_CALL  # noqa: PLC0414
from dlprof.instruments import FIRST_ROUND as FIRST_ROUND  # noqa: PLC0414
from dlprof.instruments import FIRST_STEP as FIRST_STEP  # noqa: PLC0414
from dlprof.instruments import IN_LOOPS as IN_LOOPS  # noqa: PLC0414
from dlprof.instruments import STEP as STEP  # noqa: PLC0414
from dlprof.instruments import TRACE as TRACE  # noqa: PLC0414
from dlprof.interpreter import Outcome, Worker
from dlprof.interrupts import uninterrupted
from dlprof.journal import INTERRUPTED, Journal
from dlprof.outcomes import (
    broke_in_company,
    died_before,
    interrupted,
    interrupted_diagnosis,
    only_first_call,
    serves_no_more,
    status_of,
    take_over,
)
from dlprof.plan import Case
from dlprof.settings import OWN_PROCESS_BYTES as OWN_PROCESS_BYTES  # noqa: PLC0414
from dlprof.settings import Settings as Settings  # noqa: PLC0414 - callers find it here
from dlprof.settings import process_of as process_of  # noqa: PLC0414
from dlprof.settings import sample_ns_for as sample_ns_for  # noqa: PLC0414
from dlprof.standby import Interpreter as Interpreter  # noqa: PLC0414
from dlprof.standby import Standby
from dlprof.turns import Round, Stop

Turns = Mapping[str, int | None]
"""What a worker is told of them: its processor."""


class Watcher(Protocol):
    """Is told what runs; see ``dlprof.cli.progress``."""

    def start(self, total: int) -> None: ...
    def case(self, case: Case, round_: int, stage: str) -> None: ...
    def step(self) -> None: ...


class Runner:
    """Measures cases in interpreters and writes every answer into a journal.

    ``interpreters`` are by the name of their environment. A round goes over all of them, in
    random order, so that whatever changes on the machine meanwhile meets them alike.
    """

    def __init__(
        self,
        interpreters: Mapping[str, Interpreter],
        cases: Sequence[Case],
        settings: Settings,
        journal: Journal,
        watcher: Watcher,
        on_answer: Callable[[], None] = lambda: None,
        on_round: Callable[[int, Callable[[], None]], None] = lambda _, __: None,
    ) -> None:
        self.interpreters = interpreters
        self.cases = cases
        self.settings = settings
        self.journal = journal
        self.watcher = watcher
        self.on_answer = on_answer
        self.on_round = on_round
        self.rounds_done = 0
        self.out_of_time = False
        self.undiagnosed = 0, 0
        """Cases that a diagnosis is left of when the rounds are over, and all that it is of."""
        self._diagnosed_here: set[int] = set()
        self._standby = Standby(interpreters)
        self.later_rounds: tuple[str, ...] = EVERY_ROUND
        self._diagnosis = diagnosis_of(settings)
        self._paths = diagnosed_paths(cases, settings)

    def run(self) -> None:
        """All rounds, or as many as the budget allows; at least one."""
        started = time.monotonic()
        paths = len(self._paths)
        alone = len(self.cases) if self.settings.first_calls else 0
        self.watcher.start(len(self.cases) * self.settings.rounds + paths + alone)
        for round_ in range(self.settings.rounds):
            if round_ and self._over_budget(started):
                break
            groups = list(self._groups(round_))
            if groups and not round_:
                self._begin(groups[0][0][1])
            self.on_round(round_, self._standby.settle)
            last = round_ == self.settings.rounds - 1
            for group in groups:
                late = not last or self._over_budget(started)
                _exhaust(self._run_group(group, round_, set() if late else self._diagnosed()))
            self.rounds_done = round_ + 1
        self.out_of_time = self._over_budget(started)
        rounds = self.settings.rounds
        left = {index for index in self._diagnosed() if self.journal.needs(index, rounds)}
        self.undiagnosed = len(left), paths
        if self.out_of_time or self.rounds_done < self.settings.rounds:
            return
        for group in self._groups(rounds, left):
            self._diagnose_group(group)
        for _ in range(paths - len(self._diagnosed_here)):
            self.watcher.step()  # refused or crashed, or in the session that is finished
        if self.settings.first_calls:
            self._first_calls()

    def _diagnosed(self) -> set[int]:
        return standing_for(self._paths, self.journal.settled)

    def _first_calls(self) -> None:
        """The first call of each case in a process that makes no other."""
        for index, case in enumerate(self.cases):
            if not case.is_step and self._was_never_first(index):
                with self._worker(case) as worker:
                    outcome = self._ask(worker, case, self.settings.rounds, FIRST_CALL)
                self._record(index, self.settings.rounds, only_first_call(outcome))
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
            self._standby.load(first.environment, [way(case) for _, case in group])
            return

    def _begin(self, case: Case) -> None:
        """Have the first worker import while the references are prepared."""
        if not case.is_step:
            self.watcher.case(case, 0, "import")
            self._standby.begin(case.environment, self._request(case, 0))

    def wait(self) -> None:
        """Until the worker that :meth:`load` started has imported; one that died is forgotten."""
        self._standby.wait(self.settings.limit_s)

    def importing_s(self) -> float | None:
        """Processor time that the imports of that worker took; None where nobody knows."""
        return self._standby.processor_s()

    def round(self, round_: int, only: set[int]) -> None:
        """One round of some cases."""
        self.on_round(round_, self._standby.settle)
        for group in self._groups(round_, only):
            _exhaust(self._run_group(group, round_, set()))
        self.rounds_done = max(self.rounds_done, round_ + 1)

    def turns(self, round_: int, order: Sequence[int], cpu: int | None) -> Round:
        """One round of some cases, measured in turns with another one; samples are on ``cpu``."""
        self.on_round(round_, self._standby.settle)
        for group in self._in_order(round_, order):
            yield from self._run_group(group, round_, set(), {"cpu": cpu})
        self.rounds_done = max(self.rounds_done, round_ + 1)

    def diagnose(self, only: set[int]) -> None:
        """The diagnosis of some cases, for one who asks for single rounds."""
        for group in self._groups(self.settings.rounds, self._diagnosed() & only):
            self._diagnose_group(group)

    def close(self) -> None:
        """End a worker that was loaded and not used."""
        self._standby.close()

    def _worker(self, case: Case) -> Worker:
        return self._standby.worker(case.environment)

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
            with self._worker(waiting[0][1]) as worker:
                served = 0
                while waiting:
                    if served:
                        yield Stop(waiting[0][0])
                    index, case = waiting.pop(0)
                    with self._kept_if_stopped(index, round_, worker):
                        alone = len(group) == 1
                        outcome = yield from self._asked(worker, index, round_, turns, alone)
                    if served and died_before(outcome):
                        waiting.insert(0, (index, case))
                        break
                    served += 1
                    if broke_in_company(outcome) and self.settings.together and not alone:
                        with self._kept_if_alone_stopped(index, round_, outcome):
                            outcome = yield from self._alone(index, round_, outcome, turns)
                        self._keep(index, round_, outcome)
                        break
                    self._keep(index, round_, outcome)
                    if serves_no_more(outcome):
                        break
                else:
                    self._diagnose_group(self._undiagnosed(group, diagnosed), worker)

    def _undiagnosed(self, group: Group, diagnosed: set[int]) -> Group:
        return [
            (index, case)
            for index, case in group
            if index in diagnosed and self.journal.needs(index, self.settings.rounds)
        ]

    def _diagnose_group(self, group: Group, worker: Worker | None = None) -> None:
        """The diagnosis of each case; the times are safe by then, whatever happens."""
        served = 0 if worker is None else 1  # one that is handed over served cases
        worker = worker or self._worker(group[0][1])
        try:
            for index, case in group:
                whole = self._diagnosed_before(index)
                left = tuple(name for name in self._diagnosis if name not in whole.parts)
                while left:
                    with self._kept_if_stopped(index, self.settings.rounds, worker, whole):
                        # Nobody tries it again, so that it has the whole of its time.
                        outcome = self._ask(worker, case, self.settings.rounds, left, alone=True)
                    if not (served and died_before(outcome)):
                        left = take_over(whole, outcome, left)
                    served += 1
                    if serves_no_more(outcome):
                        worker.close()
                        worker = self._worker(case)
                        served = 0
                self._keep(index, self.settings.rounds, whole)
                self._diagnosed_here.add(index)
        finally:
            worker.close()
        self._trace(group)

    def _diagnosed_before(self, index: int) -> Outcome:
        """What was found of a case before its diagnosis was interrupted."""
        whole = Outcome("ok", None)
        for round_, answer in self.journal.answers(index):
            if round_ == self.settings.rounds and answer["status"] == INTERRUPTED:
                whole.parts |= answer["parts"]
        return whole

    @contextmanager
    def _kept_if_alone_stopped(self, index: int, round_: int, broken: Outcome) -> Iterator[None]:
        """The same of a case that is tried again alone: what it had said beside others."""
        try:
            yield
        except (KeyboardInterrupt, GeneratorExit):
            with uninterrupted():
                kept = interrupted(broken, f"round {round_ + 1}")
                kept.parts["in_company"] = _company(broken)
                self._record(index, round_, kept)
            raise

    @contextmanager
    def _kept_if_stopped(
        self, index: int, round_: int, worker: Worker, before: Outcome | None = None
    ) -> Iterator[None]:
        """Keep what had come of a case where the user does not wait for the rest of it."""
        try:
            yield
        except (KeyboardInterrupt, GeneratorExit):  # the latter where the other round was stopped
            with uninterrupted():
                heard = worker.heard()
                if before is None:
                    kept = interrupted(heard, f"round {round_ + 1}")
                else:
                    kept = interrupted_diagnosis(heard, before, self._diagnosis)
                if kept.parts:
                    self._record(index, round_, kept)
            raise

    def _trace(self, group: Group) -> None:
        """CUPTI has one subscriber per process, so traces get a worker of their own."""
        traced = [(index, case) for index, case in group if case.device == "cuda"]
        if not traced:
            return
        worker = self._worker(traced[0][1])
        try:
            for index, case in traced:
                found = Outcome("ok", None)
                outcome = self._ask(worker, case, self.settings.rounds, TRACE, alone=True)
                take_over(found, outcome, TRACE)
                self._record(index, self.settings.rounds, found)
                if not outcome.alive:
                    worker.close()
                    worker = self._worker(case)
        finally:
            worker.close()

    def _alone(
        self, index: int, round_: int, broken: Outcome, turns: Turns | None
    ) -> Generator[Stop, int | None, Outcome]:
        """Try a case that broke a worker it shared with other pairs once more in its own."""
        with self._worker(self.cases[index]) as worker:
            outcome = yield from self._asked(worker, index, round_, turns, alone=True)
        outcome.parts["in_company"] = _company(broken)
        if outcome.alive:
            outcome.failures.append(
                {
                    "instrument": "after other conversions in the same process",
                    "reason": broken.reason or broken.status,
                }
            )
            outcome.output = broken.output
        return outcome

    def _asked(
        self,
        worker: Worker,
        index: int,
        round_: int,
        turns: Turns | None,
        alone: bool = False,
    ) -> Generator[Stop, int | None, Outcome]:
        """Ask for the times of a case; stops before each sample where they are taken in turns."""
        case = self.cases[index]
        # Two such large ones at once would be refused for want of memory.
        if turns is None or case.size_bytes >= OWN_PROCESS_BYTES:
            return self._ask(worker, case, round_, alone=alone)
        worker.send({**self._request(case, round_), "turns": turns})
        most_s = limit_of(case, self.settings, alone)
        while (outcome := worker.until_turn(most_s, self._told(case, round_))) is None:
            calls = yield Stop(index, worker.turn, worker.calls)
            worker.go(calls)
        return outcome

    def _ask(
        self,
        worker: Worker,
        case: Case,
        round_: int,
        instruments: tuple[str, ...] = (),
        alone: bool = False,
    ) -> Outcome:
        most_s = limit_of(case, self.settings, alone)
        request = self._request(case, round_, instruments)
        return worker.ask(request, most_s, self._told(case, round_))

    def _told(self, case: Case, round_: int) -> Callable[[str], None]:
        return lambda stage: self.watcher.case(case, round_, stage)

    def _request(
        self, case: Case, round_: int, instruments: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        return request_of(case, self.settings, instruments or self._instruments(case, round_))

    def _instruments(self, case: Case, round_: int) -> tuple[str, ...]:
        if case.is_step:
            return STEP if round_ else FIRST_STEP
        looped = IN_LOOPS if set(self.settings.placements) - {"convert"} else ()
        return (self.later_rounds if round_ else FIRST_ROUND) + looped

    def _keep(self, index: int, round_: int, outcome: Outcome) -> None:
        self._record(index, round_, outcome)
        self.watcher.step()
        self.on_answer()

    def _record(self, index: int, round_: int, outcome: Outcome) -> None:
        self.journal.add(
            index,
            round_,
            {
                "status": status_of(outcome),
                "reason": outcome.reason,
                "parts": outcome.parts,
                "failures": outcome.failures,
                "output": outcome.output,
            },
        )


def _company(broken: Outcome) -> dict[str, Any]:
    return {"status": status_of(broken), "reason": broken.reason or broken.status}


def _exhaust(round_: Round) -> None:
    """Run a round that takes no turns: nobody waits where it stops."""
    deque(round_, maxlen=0)
