"""The rounds: fresh workers and shuffled cases; then the survey and the diagnosis."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import groupby
from typing import Any

from dlprof.runner.case_client import CaseClient, Turns
from dlprof.runner.diagnosis import Diagnosis
from dlprof.runner.isolation import (
    Forks,
    Processes,
    compared,
    died_before,
    imports_for,
    spoils,
    suspicion,
)
from dlprof.runner.pairing import Case
from dlprof.runner.progress import Watcher
from dlprof.runner.request import Settings
from dlprof.runner.schedule import (
    UNTIMED,
    Entry,
    Group,
    Lane,
    Round,
    Stop,
    by_path,
    finish,
    grouped,
    lanes,
    offset_of,
    process_of,
    processors,
    shuffled,
)
from dlprof.runner.session_file import SessionFile
from dlprof.runner.survey import is_plainest
from dlprof.runner.worker_client import Outcome, WorkerClient, WorkerPool

MOST_LOST = 3
"""A path that ended or changed so many processes of its own is tried with no other array."""
SPOILS = f"not tried: the path ended or changed {MOST_LOST} processes before"

Steps = Generator[Any, int | None, None]
"""In turns a :data:`~dlprof.runner.schedule.Round`, else a :data:`~dlprof.runner.schedule.Lane`."""


class Runner:
    """Measures cases in one interpreter, and keeps every answer in the session file ``file``.

    ``variables`` are environment variables of the frameworks. What the file holds already is not
    measured again. ``can_trace`` if CUPTI is installed.
    """

    def __init__(
        self,
        python: str,
        variables: Mapping[str, str],
        cases: Sequence[Case],
        settings: Settings,
        file: SessionFile,
        watcher: Watcher,
        can_trace: bool = True,
    ) -> None:
        self.cases = cases
        self.settings = settings
        self.file = file
        self.watcher = watcher
        self.rounds_done = 0
        self.out_of_time = False
        self.undiagnosed = 0, 0
        """Paths without a diagnosis when the time was over, and all paths."""
        entries = (Entry(index, case) for index, case in enumerate(cases))
        self._plain = {entry.path: entry for entry in entries if is_plainest(entry.case)}
        """The plain array of each path in the survey."""
        self._pool = WorkerPool(python, variables)
        self._client = CaseClient(settings, file, watcher)
        self._forks = Forks(self._pool, settings)
        self._diagnosis = Diagnosis(cases, self._client, self._forks, can_trace)

    def run(self) -> None:
        """Measure all rounds, or as many as the budget allows, but at least one."""
        timed = [index for index, case in enumerate(self.cases) if not case.surveyed]
        surveyed = [index for index, case in enumerate(self.cases) if case.surveyed]
        started, rounds = time.monotonic(), self.settings.rounds if timed else 0
        paths = self._diagnosis.paths

        def is_over() -> bool:
            budget_s = self.settings.budget_s
            return budget_s is not None and time.monotonic() - started > budget_s

        self.watcher.start(len(timed) * rounds + len(surveyed) + paths)
        for round_ in range(rounds):
            if round_ and is_over():
                break
            groups = list(self._shuffled(self._needed(round_, timed), round_))
            for place, group in enumerate(groups):
                following = groups[place + 1 : place + 2]
                forks = len(groups) == 1 and round_ == 0 and paths > 0
                if len(groups) == 1 and round_ + 1 < rounds and not forks:
                    following = groups  # the next round needs the same frameworks
                self._import_ahead([group, *following], round_, forks)
                finish([self._measure(group, round_)])
            self.rounds_done = round_ + 1
        self.out_of_time = is_over()
        if not self.out_of_time and self.rounds_done == rounds:
            self._look_wider(surveyed, is_over)
        self.close()
        self.undiagnosed = len(self._diagnosis.left()), paths

    def turns(self, round_: int, order: Sequence[int], cpu: int | None) -> Round:
        """Run a round of some cases, in turns with another runner; samples are on ``cpu``.

        Before the first stop a worker begins to import, so that both sides import at once.
        """
        for group in self._needed(round_, order):
            self._load(group, round_)
            yield Stop(group[0].number)
            self._pool.wait(self.settings.limit_s)
            turns = {"cpu": cpu, "offset_bytes": offset_of(round_)}
            yield from self._measure(group, round_, turns)
        self.rounds_done = max(self.rounds_done, round_ + 1)

    def diagnose(self, only: set[int], is_over: Callable[[], bool]) -> set[int]:
        """Diagnose the paths of some cases until the time ``is_over``. Return the cases left."""
        groups = self._grouped(sorted(self._diagnosis.left() & only))
        finish([self._diagnosis.lane(deque(groups), is_over)])
        return self._diagnosis.left() & only

    def look_again(self, only: set[int], instrument: str, look: int) -> None:
        """Ask one instrument once more of some cases: a race shows only now and then.

        ``look`` counts from 0. Each look is kept as a round of its own, after all others.
        """
        for group in self._grouped(sorted(only)):
            round_ = self.settings.rounds + 2 + look
            finish([self._diagnosis.look(group, round_, (instrument,))])

    def close(self) -> None:
        self._forks.close()
        self._pool.close()

    def _measure(self, group: Group, round_: int, turns: Turns | None = None) -> Steps:
        """Measure one round of cases that share a process; then its suspects, each path alone."""
        kind = process_of(group[0].case, self.settings)
        with closing(Processes(self._pool, kind)) as processes:
            suspects = yield from self._shared(group, round_, processes, turns)
        if turns is None:
            suspects = yield from self._without_refused(group, suspects, round_)
        with closing(Processes(self._pool)) as processes:
            for path in by_path(suspects):
                yield from self._alone(path, round_, processes, turns)

    def _survey(self, entries: Group, lane: int) -> Lane:
        """Survey paths: those of a pair in one process; then its suspects, each path alone."""
        for _, of_pair in groupby(entries, key=lambda entry: entry.case.pair):
            group = list(of_pair)
            processes = self._forks.processes(group, lane)
            suspects = yield from self._shared(group, 0, processes)
            for path in by_path(suspects):
                yield from self._alone(path, 0, processes)
            yield from processes.end()

    def _shared(
        self, entries: Group, round_: int, processes: Processes, turns: Turns | None = None
    ) -> Generator[Any, int | None, Group]:
        """Ask for cases of several paths. Return those to be asked again alone."""
        waiting, suspects = list(entries), list[Entry]()
        while waiting:
            if turns:  # before a process starts that would disturb the other side
                yield Stop(waiting[0].number)
            worker = yield from processes.next()
            suspects += yield from self._serve(worker, waiting, round_, turns)
        return suspects

    def _alone(
        self, path: Group, round_: int, processes: Processes, turns: Turns | None = None
    ) -> Steps:
        """Ask for cases of one path.

        In a survey each process converts the plain array first, unless that ends the process.
        """
        waiting, lost = list(path), 0
        plain = self._plain.get(path[0].path) if path[0].case.surveyed else None
        while waiting and lost < MOST_LOST:
            if turns:
                yield Stop(waiting[0].number)
            worker = yield from processes.next()
            if plain is not None and not is_plainest(waiting[0].case):
                outcome = yield from self._client.ask(worker, plain, round_)
                if spoils(outcome):
                    plain = None
                    continue
            yield from self._serve(worker, waiting, round_, turns, alone=True)
            lost += path[0].case.surveyed
        for entry in waiting:
            self._keep(entry, round_, Outcome("skipped", SPOILS))

    def _serve(
        self,
        worker: WorkerClient,
        waiting: Group,
        round_: int,
        turns: Turns | None,
        alone: bool = False,
    ) -> Generator[Any, int | None, Group]:
        """Ask for the cases that wait, until the worker can serve no more. Return the suspects.

        The first answer of a process counts, and any answer of a path ``alone``. A path that ends
        or changes a shared process is asked alone from then on.
        """
        suspects, served = list[Entry](), 0
        while waiting:
            entry = waiting[0]
            if served and turns:
                yield Stop(entry.number)
            counts = alone or not served
            outcome = yield from self._client.ask(worker, entry, round_, alone=counts, turns=turns)
            if served and died_before(outcome):
                break
            waiting.pop(0)
            if suspicion(entry.case, outcome) and not counts:
                suspects.append(entry._replace(before=outcome))
            else:
                self._keep(entry, round_, compared(entry.case, outcome, entry.before))
            served += 1
            if spoils(outcome):
                if not alone:
                    suspects += [one for one in waiting if one.path == entry.path]
                    waiting[:] = [one for one in waiting if one.path != entry.path]
                break
        return suspects

    def _without_refused(
        self, group: Group, suspects: Group, round_: int
    ) -> Generator[Any, int | None, Group]:
        """Keep the suspects of a group that a fork refuses, too. Return the others.

        A process of its own takes seconds to import, and is needed for times alone.
        """
        refused = [one for one in suspects if one.before and one.before.status == "unsupported"]
        left = [one for one in suspects if one not in refused]
        if not refused:
            return left
        processes = self._forks.processes(group)
        for entry in refused:
            worker = yield from processes.next()
            outcome = yield from self._client.ask(worker, entry, round_, UNTIMED)
            if outcome.status == "unsupported":
                self._keep(entry, round_, outcome)
            else:
                left.append(entry)
        yield from processes.end()
        return left

    def _keep(self, entry: Entry, round_: int, outcome: Outcome) -> None:
        self._client.keep(entry, round_, outcome)
        self.watcher.step()

    def _look_wider(self, surveyed: Sequence[int], is_over: Callable[[], bool]) -> None:
        """Run the survey and the diagnosis. They take no times, so several workers run at once.

        Not on a device: there a worker tells by its queues whether a conversion waits.
        """
        left = sorted(self._diagnosis.left())
        for _ in range(self._diagnosis.paths - len(left)):
            self.watcher.step()  # refused, crashed, or diagnosed before the run was resumed
        on_host = all(self.cases[index].device == "cpu" for index in (*left, *surveyed))
        needed = [entry for group in self._needed(0, surveyed) for entry in group]
        paths, count = by_path(needed), lanes(len(needed)) if on_host else 1
        shares = [[one for path in paths[lane::count] for one in path] for lane in range(count)]
        finish([self._survey(share, lane) for lane, share in enumerate(shares)])
        diagnoses = deque(self._shuffled(self._grouped(left), self.settings.rounds))
        count = max(lanes(len(left)), self._forks.lanes) if on_host else 1
        finish([self._diagnosis.lane(diagnoses, is_over, lane) for lane in range(count)])

    def _import_ahead(self, groups: Sequence[Group], round_: int, forks: bool) -> None:
        """Let the workers of these groups import at once, unless that of the first is there.

        With ``forks``, so does the process that the diagnosis forks.

        An import takes one processor, and no time is taken meanwhile.
        """
        fit = all(entry.case.device == "cpu" for group in groups for entry in group)
        is_ready = self._pool.has_loaded(process_of(groups[0][0].case, self.settings))
        if is_ready or not fit or len(groups) + forks == 1 or processors() == 1:
            return
        if forks:
            self._forks.load(groups[0])
        for group in reversed(groups):
            self._load(group, round_)
        self._pool.wait(self.settings.limit_s)

    def _load(self, group: Group, round_: int) -> None:
        self.watcher.case(group[0].case, round_, "import")
        kind = process_of(group[0].case, self.settings)
        self._pool.load(kind, imports_for(group))

    def _shuffled(self, groups: list[Group], round_: int) -> Iterator[Group]:
        return shuffled(groups, self.settings.seed, round_)

    def _needed(self, round_: int, order: Iterable[int]) -> list[Group]:
        """Return the cases that a round still needs, grouped for one worker each."""
        needed = []
        for index in order:
            if self.file.needs(index, round_):
                needed.append(index)
            else:
                self.watcher.step()
        return self._grouped(needed)

    def _grouped(self, indices: Iterable[int]) -> list[Group]:
        return grouped((Entry(index, self.cases[index]) for index in indices), self.settings)
