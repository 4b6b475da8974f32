"""The rounds: fresh workers and shuffled cases; then the survey and the diagnosis."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

from dlprof.runner.case_client import CaseClient, Turns, imports_of
from dlprof.runner.diagnosis import Diagnosis, died_before
from dlprof.runner.isolation import (
    MOST_LOST,
    SPOILS,
    FreshProcesses,
    Suspect,
    by_path,
    compared,
    spoils,
    suspicion,
)
from dlprof.runner.pairing import Case
from dlprof.runner.parallel import Lane, finish, lanes, processors
from dlprof.runner.progress import Watcher
from dlprof.runner.request import Settings
from dlprof.runner.schedule import (
    OWN_PROCESS_BYTES,
    Group,
    Round,
    Stop,
    grouped,
    offset_of,
    process_of,
    shuffled,
)
from dlprof.runner.session_file import SessionFile
from dlprof.runner.survey import is_plainest
from dlprof.runner.worker_client import Outcome, WorkerClient, WorkerPool

Answered = Generator[Any, int | None, None]
"""In turns a :data:`~dlprof.runner.schedule.Round`, else a :data:`~dlprof.runner.parallel.Lane`."""


class Runner:
    """Measures cases in one interpreter, and keeps every answer in the session file ``file``.

    ``variables`` are environment variables of the frameworks. A round that the file holds already
    is not measured again.
    """

    def __init__(
        self,
        python: str,
        variables: Mapping[str, str],
        cases: Sequence[Case],
        settings: Settings,
        file: SessionFile,
        watcher: Watcher,
    ) -> None:
        self.cases = cases
        self.settings = settings
        self.file = file
        self.watcher = watcher
        self.rounds_done = 0
        self.out_of_time = False
        self.undiagnosed = 0, 0
        """Paths without a diagnosis when the time was over, and all paths."""
        self._pool = WorkerPool(python, variables)
        self._client = CaseClient(self._pool, settings, file, watcher)
        own = WorkerPool(python, variables)  # what is loaded ahead for another pair is not for it
        self._diagnosis = Diagnosis(cases, CaseClient(own, settings, file, watcher))

    def leave_out_traces(self) -> None:
        """CUPTI is missing: no worker is asked for a trace."""
        self._diagnosis.can_trace = False

    def run(self) -> None:
        """Measure all rounds, or as many as the budget allows, but at least one."""
        timed = [index for index, case in enumerate(self.cases) if not case.surveyed]
        surveyed = [index for index, case in enumerate(self.cases) if case.surveyed]
        started, rounds = time.monotonic(), self.settings.rounds if timed else 0
        paths = self._diagnosis.paths
        self.watcher.start(len(timed) * rounds + len(surveyed) + paths)
        for round_ in range(rounds):
            if round_ and self._over_budget(started):
                break
            groups = list(self._groups(round_, set(timed)))
            for place, group in enumerate(groups):
                after = groups[place + 1 : place + 2]
                if not after and len(groups) == 1 and round_ + 1 < rounds:
                    after = groups  # other cases of the same frameworks
                self._import_together([group, *after], round_)
                finish([self._share(group, round_)])
            self.rounds_done = round_ + 1
        self._pool.close()
        self.out_of_time = self._over_budget(started)
        if not self.out_of_time and self.rounds_done == rounds:
            self._look_wider(surveyed, lambda: self._over_budget(started))
        self.undiagnosed = len(self._diagnosis.left()), paths

    def round(self, round_: int, only: set[int]) -> None:
        """Measure one round of some cases."""
        for group in self._groups(round_, only):
            finish([self._share(group, round_)])
        self.rounds_done = max(self.rounds_done, round_ + 1)

    def turns(self, round_: int, order: Sequence[int], cpu: int | None) -> Round:
        """One round of some cases, in turns with another runner; samples are on ``cpu``."""
        for group in self._needed(round_, order):
            turns = {"cpu": cpu, "offset_bytes": offset_of(round_)}
            yield from self._share(group, round_, turns)
        self.rounds_done = max(self.rounds_done, round_ + 1)

    def diagnose(self, only: set[int], is_over: Callable[[], bool]) -> set[int]:
        """Diagnose the paths of some cases until the time ``is_over``. The cases that are left."""
        chosen = sorted(self._diagnosis.left() & only)
        groups = shuffled(self._grouped(chosen), self.settings.seed, self.settings.rounds)
        finish([self._diagnosis.lane(deque(groups), is_over)])
        return self._diagnosis.left() & only

    def look_again(self, only: set[int], instrument: str, look: int) -> None:
        """See :meth:`~dlprof.runner.diagnosis.Diagnosis.look_again`."""
        for group in self._grouped(sorted(only)):
            self._diagnosis.look_again(group, instrument, look)

    def measure_later(self, instruments: tuple[str, ...]) -> None:
        """Ask for these instruments in all rounds but the first."""
        self._client.later_rounds = instruments

    def load(self, round_: int, order: Sequence[int]) -> None:
        """Start the first worker of :meth:`turns`, which imports meanwhile."""
        self._pool.close()
        for group in self._needed(round_, order):
            self.watcher.case(group[0][1], round_, "import")
            self._load(group)
            return

    def wait(self) -> None:
        """Wait until the worker of :meth:`load` has imported. A worker that died is dropped."""
        self._pool.wait(self.settings.limit_s)

    def close(self) -> None:
        self._pool.close()

    def _share(self, group: Group, round_: int, turns: Turns | None = None) -> Answered:
        """Measure one round of cases that share a process; then its suspects, each path alone."""
        waiting, suspects = list(group), list[Suspect]()
        is_alone = len(group) == 1
        while waiting:
            if turns:  # before a process starts that would disturb the other side
                yield Stop(waiting[0][0])
            with self._pool.worker(process_of(*waiting[0], self.settings)) as worker:
                served = 0
                while waiting:
                    index, case = waiting[0]
                    if served and turns:
                        yield Stop(index)
                    outcome = yield from self._ask(worker, index, case, round_, turns, is_alone)
                    if served and died_before(outcome):
                        break
                    waiting.pop(0)
                    if served and suspicion(case, outcome):
                        suspects.append(Suspect(index, case, outcome))
                    else:
                        self._client.keep(index, round_, outcome)
                    served += 1
                    if spoils(outcome):
                        break
        with closing(FreshProcesses(self._pool)) as processes:
            for path in by_path(suspects):
                yield from self._isolate(path, round_, processes, turns)

    def _isolate(
        self,
        suspects: Sequence[Suspect],
        round_: int,
        processes: FreshProcesses,
        turns: Turns | None = None,
        lost: int = 0,
    ) -> Answered:
        """Ask for the suspects of one path in processes that have converted nothing else.

        In a survey each process converts the path's plain array first, unless that ends the
        process. ``lost`` is how many processes of its own the path ended or changed before.
        """
        waiting = list(suspects)
        plain = self._plain(suspects[0].case)
        while waiting and lost < MOST_LOST:
            if turns:
                yield Stop(waiting[0].number)
            worker = yield from processes.next()
            if plain is not None and not is_plainest(waiting[0].case):
                outcome = yield from self._client.beside(worker, plain, round_, alone=True)
                if spoils(outcome):
                    plain = None
                    continue
            served = 0
            while waiting:
                index, case, before = waiting[0]
                if served and turns:
                    yield Stop(index)
                outcome = yield from self._ask(worker, index, case, round_, turns, True)
                if served and died_before(outcome):
                    lost += case.surveyed
                    break
                waiting.pop(0)
                self._client.keep(index, round_, compared(case, outcome, before))
                served += 1
                if spoils(outcome):
                    lost += case.surveyed
                    break
        for index, _, _ in waiting:
            self._client.keep(index, round_, Outcome("skipped", SPOILS))

    def _plain(self, case: Case) -> Case | None:
        """The plain array of a case's path, in a survey."""
        if not case.surveyed:
            return None
        path = case.pair, case.path
        alike = (one for one in self.cases if (one.pair, one.path) == path)
        return next(filter(is_plainest, alike), None)

    def _ask(
        self,
        worker: WorkerClient,
        index: int,
        case: Case,
        round_: int,
        turns: Turns | None = None,
        alone: bool = False,
    ) -> Generator[Any, int | None, Outcome]:
        with self._client.kept_if_stopped(index, round_, f"round {round_ + 1}", worker.heard):
            return (yield from self._client.in_turns(worker, index, case, round_, turns, alone))

    def _look_wider(self, surveyed: Sequence[int], is_over: Callable[[], bool]) -> None:
        """Run the survey and the diagnosis. They take no times, so several workers run at once.

        Not on a device: there a worker tells by its queues whether a conversion waits.
        """
        left = sorted(self._diagnosis.left())
        for _ in range(self._diagnosis.paths - len(left)):
            self.watcher.step()  # refused, crashed, or diagnosed before the run was resumed
        on_host = all(self.cases[index].device == "cpu" for index in (*left, *surveyed))
        needed = [entry for group in self._needed(0, surveyed) for entry in group]
        paths = deque(by_path(Suspect(index, case, None) for index, case in needed))
        finish([self._survey(paths) for _ in range(lanes(len(needed)) if on_host else 1)])
        diagnoses = deque(shuffled(self._grouped(left), self.settings.seed, self.settings.rounds))
        count = lanes(len(left)) if on_host else 1
        finish([self._diagnosis.lane(diagnoses, is_over) for _ in range(count)])

    def _survey(self, paths: deque[list[Suspect]]) -> Lane:
        """Survey paths: those of a pair in one process, then its suspects, each path alone.

        The first answer of a process counts. Several lanes take from ``paths``.
        """
        while paths:
            pair = paths[0][0].case.pair
            of_pair = [(one.number, one.case) for path in paths for one in path]
            imports = {case.path: (index, case) for index, case in of_pair if case.pair == pair}
            suspects: list[tuple[list[Suspect], int]] = []
            with closing(FreshProcesses(self._pool, list(imports.values()))) as processes:
                worker = None
                while paths and paths[0][0].case.pair == pair:
                    path, found, lost = paths.popleft(), list[Suspect](), 0
                    for place, (index, case, _) in enumerate(path):
                        is_first = worker is None
                        worker = worker or (yield from processes.next())
                        outcome = yield from self._client.beside(worker, case, 0, alone=is_first)
                        if suspicion(case, outcome) and not is_first:
                            found.append(Suspect(index, case, outcome))
                        else:
                            self._client.keep(index, 0, outcome)
                        if spoils(outcome):
                            worker = None
                            lost += is_first
                            found += path[place + 1 :]
                            break
                    if found:
                        suspects.append((found, lost))
                for found, lost in suspects:
                    yield from self._isolate(found, 0, processes, lost=lost)

    def _import_together(self, groups: Sequence[Group], round_: int) -> None:
        """Have the worker of the first group import, and meanwhile that of the next, unless a
        worker for the first one is there. An import takes one processor, and no time is taken.

        A setup of the user's own may do anything, and runs in one process at a time.
        """
        index, case = groups[0][0]
        is_ready = self._pool.loaded(process_of(index, case, self.settings))
        of_all = [case for group in groups for _, case in group]
        fit = all(
            one.device == "cpu"
            and one.size_bytes < OWN_PROCESS_BYTES
            and not one.producer.source.startswith("code:")
            for one in of_all
        )
        if is_ready or not fit or len(groups) == 1 or processors() == 1:
            return
        self._pool.close()
        self.watcher.case(case, round_, "import")
        for group in groups:
            self._load(group)
        self.wait()

    def _load(self, group: Group) -> None:
        kind = process_of(*group[0], self.settings)
        self._pool.load(kind, [imports_of(case) for _, case in group])

    def _over_budget(self, started: float) -> bool:
        budget_s = self.settings.budget_s
        return budget_s is not None and time.monotonic() - started > budget_s

    def _groups(self, round_: int, only: set[int]) -> Iterator[Group]:
        """The cases that a round still needs, grouped for one worker each, in random order."""
        return shuffled(self._needed(round_, sorted(only)), self.settings.seed, round_)

    def _needed(self, round_: int, order: Iterable[int]) -> list[Group]:
        """The cases that a round still needs, grouped for one worker each."""
        needed = []
        for index in order:
            if self.file.needs(index, round_):
                needed.append(index)
            else:
                self.watcher.step()
        return self._grouped(needed)

    def _grouped(self, indices: Iterable[int]) -> list[Group]:
        return grouped(((index, self.cases[index]) for index in indices), self.settings)
