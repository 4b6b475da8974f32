"""Measure the cases of a run: timed rounds first, then the survey and the diagnosis.

Each timed round has fresh workers and another order. The survey converts many small arrays once.
The diagnosis runs instruments that may crash or hang, once per path, after all times are safe. Its
answers are in the round after the timed ones, and traces are in the round after that.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from itertools import groupby
from typing import Any

from dlprof.probes.base import CONTIGUOUS
from dlprof.protocol.messages import (
    AFTER_DROP,
    DIAGNOSIS,
    NO_CUPTI,
    OTHER_AFTER_DROP,
    SAME,
    SOURCE_AFTER_DROP,
    no_trace,
)
from dlprof.runner.case_client import (
    ALIGNMENT,
    TRACE,
    UNTIMED,
    CaseClient,
    Turns,
    can_fork,
    compared,
    imports_ahead,
    session_status,
    spoils,
    suspicion,
)
from dlprof.runner.pairing import Case
from dlprof.runner.progress import Watcher
from dlprof.runner.request import Settings
from dlprof.runner.schedule import (
    Entry,
    Group,
    Lane,
    Round,
    Stop,
    finish,
    lanes,
    page_offset,
    processors,
    shuffled,
)
from dlprof.runner.session import grouped
from dlprof.runner.session_file import SessionFile
from dlprof.runner.survey import is_plainest
from dlprof.runner.worker_client import Outcome, Processes, WorkerClient, Workers

MOST_LOST = 3
"""Processes of its own that a path may end or change before its other arrays are skipped."""
TIMED, SURVEYED, DIAGNOSED = 10, 1, 40
"""Costs of one case in a round, in the survey and in the diagnosis, for the estimate of the time
left: 0.45 s, 0.04 s and 2 s from PyTorch to NumPy on two busy cores."""
SPOILS = f"not tried: the path ended or changed {MOST_LOST} processes before"

BY_PATH = operator.attrgetter("path")

Steps = Generator[Any, int | None, None]
"""In turns a :data:`~dlprof.runner.schedule.Round`, else a :data:`~dlprof.runner.schedule.Lane`."""


class Runner:
    """Measures cases in one interpreter, if the session file lacks them. It closes the ``pool``.

    ``can_trace`` if CUPTI is installed.
    """

    def __init__(
        self,
        pool: Workers,
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
        entries = (Entry(index, case) for index, case in enumerate(cases))
        self._plain = {entry.path: entry for entry in entries if is_plainest(entry.case)}
        """Plain arrays of the survey, by path."""
        self._diagnosed = _diagnosed(cases, settings)
        self._can_trace = can_trace
        self._pool = pool
        self._client = CaseClient(settings, file, watcher)
        self._exiting: list[tuple[Group, WorkerClient]] = []

    def run(self) -> None:
        """Measure all rounds, the survey and the diagnosis."""
        timed = [index for index, case in enumerate(self.cases) if not case.surveyed]
        surveyed = [index for index, case in enumerate(self.cases) if case.surveyed]
        rounds = self.settings.rounds if timed else 0
        diagnosis = DIAGNOSED * len(self._diagnosed)
        total = TIMED * len(timed) * rounds + SURVEYED * len(surveyed) + diagnosis
        self.watcher.start(total, rounds=rounds)
        for round_ in range(rounds):
            groups = shuffled(self._needed_groups(round_, timed), round_)
            for place, group in enumerate(groups):
                self._import_ahead(groups, place, round_)
                finish([self._measure(group, round_)])
            if self.settings.diagnose:  # a run that was stopped may have kept the times alone
                look = self.settings.rounds + 2 + round_
                missed = {index for index in self._chosen() if self.file.needs(index, look)}
                self.look_again(missed, "lifetime", round_)
            self.rounds_done = round_ + 1
        self._look_wider(surveyed)
        finish([self._exits()])
        self.close()

    def turns(self, round_: int, order: Sequence[int], cpu: int | None) -> Round:
        """Run a round of some cases, in turns with another runner; samples are on ``cpu``.

        Before the first stop a worker begins to import, so that both sides import at once.
        """
        for group in self._needed_groups(round_, order):
            self._load(group, round_)
            yield Stop(group[0].number)
            self._pool.wait(self.settings.limit_s)
            turns = {"cpu": cpu, "offset_bytes": page_offset(round_)}
            yield from self._measure(group, round_, turns)
        self.rounds_done = max(self.rounds_done, round_ + 1)

    def diagnose(self, indices: set[int], is_over: Callable[[], bool]) -> set[int]:
        """Diagnose the paths of some cases until the time ``is_over``. Return the cases left."""
        groups = self._grouped(sorted(self._undiagnosed() & indices))
        finish([self._diagnose(deque(groups), is_over)])
        return self._undiagnosed() & indices

    def look_again(self, indices: set[int], instrument: str, look: int) -> None:
        """Run one instrument again for some cases, in a round of its own; ``look`` is from 0."""
        for group in self._grouped(sorted(indices)):
            round_ = self.settings.rounds + 2 + look
            finish([self._look(group, round_, (instrument,))])

    def close(self) -> None:
        for _, worker in self._exiting:
            worker.close()
        self._pool.close()

    def _measure(self, group: Group, round_: int, turns: Turns | None = None) -> Steps:
        """Measure one round of cases that share a process; then its suspects, each path alone."""
        with closing(Processes(self._pool, self._kind(group[0]))) as processes:
            suspects = yield from self._serve(group, round_, processes, turns)
            if self.settings.diagnose and not turns:
                yield from self._drop(group, round_, processes)
                if round_ + 1 == self.settings.rounds:
                    self._begin_exit(group, processes)
        refused = [
            entry for entry in suspects if entry.before and entry.before.status == "unsupported"
        ]
        if refused and turns:
            yield Stop(refused[0].number)
            finish([self._confirm(group, refused, round_)])
        elif refused:
            yield from self._confirm(group, refused, round_)
        remaining = [entry for entry in suspects if self.file.needs(entry.number, round_)]
        with closing(Processes(self._pool)) as processes:
            for path in grouped(remaining, BY_PATH).values():
                yield from self._serve(path, round_, processes, turns, alone=True)

    def _drop(self, group: Group, round_: int, processes: Processes) -> Lane:
        """Look at the lifetime of each path in this process too, after all of its times."""
        chosen, look = self._chosen(), self.settings.rounds + 2 + round_
        timed = (entry for entry in group if not self.file.needs(entry.number, round_))
        entries = [entry for entry in timed if entry.number in chosen]
        yield from self._look(entries, look, ("lifetime",), processes=processes)

    def _begin_exit(self, group: Group, processes: Processes) -> None:
        """Let the last process exit with results of all paths, while others are diagnosed."""
        chosen = self._chosen()
        if entries := [entry for entry in group if entry.number in chosen]:
            worker = processes.release() or self._pool.worker(self._kind(group[0]))
            self._client.begin_exit(worker, entries, converts=True)
            self._exiting.append((entries, worker))

    def _exits(self) -> Lane:
        """Wait for these processes. If one failed, let one exit for each of its paths.

        If the control fails too, which holds no result, the conversions are not the cause.
        """
        for entries, worker in self._exiting:
            failed = yield from self._client.failed_exit(worker)
            if failed and not (yield from self._exit(entries, converts=False)):
                for entry in entries:
                    if outcome := (yield from self._exit([entry], converts=True)):
                        self._client.keep(entry, 2 * self.settings.rounds + 2, outcome)

    def _exit(
        self, entries: Group, *, converts: bool
    ) -> Generator[Any, int | None, Outcome | None]:
        worker = self._pool.worker()
        self._client.begin_exit(worker, entries, converts=converts)
        return (yield from self._client.failed_exit(worker))

    def _confirm(self, group: Group, refused: Group, round_: int) -> Lane:
        """Convert refused cases in forks, which need no import, and keep those refused again.

        One that calls the same function and was refused alike has the process of the one before.
        """
        processes, worker, before = self._forks(group), None, None
        for entry in sorted(refused, key=_refusal):
            if worker is None or _refusal(entry) != before:
                worker = yield from processes.next()
            outcome = yield from self._client.ask(worker, entry, round_, UNTIMED)
            if outcome.status == "unsupported":
                self._keep(entry, round_, outcome)
            before = None if spoils(outcome) or outcome.status == "ok" else _refusal(entry)
        yield from processes.end()

    def _survey(self, entries: Group, lane: int) -> Lane:
        """Survey the paths of each pair in one process; then its suspects, each path alone."""
        for _, pair_entries in groupby(entries, key=lambda entry: entry.case.pair):
            group = list(pair_entries)
            processes = self._forks(group, lane)
            suspects = yield from self._serve(group, 0, processes)
            for path in grouped(suspects, BY_PATH).values():
                yield from self._serve(path, 0, processes, alone=True)
            yield from processes.end()

    def _serve(
        self,
        entries: Group,
        round_: int,
        processes: Processes,
        turns: Turns | None = None,
        alone: bool = False,
    ) -> Generator[Any, int | None, Group]:
        """Measure cases, in a new process after each that can serve no more. Return the suspects.

        The first answer of a process counts, and any of a path ``alone``.
        """
        waiting, suspects, losses, worker = list(entries), list[Entry](), 0, None
        is_limited = alone and entries[0].case.surveyed
        while waiting and not (is_limited and losses == MOST_LOST):
            entry = waiting[0]
            if turns:  # before a process starts that would disturb the other side
                yield Stop(entry.number)
            is_first, counts = worker is None, alone or worker is None
            worker = worker or (yield from self._next(processes, entry, round_, alone))
            outcome = yield from self._client.ask(worker, entry, round_, alone=counts, turns=turns)
            if spoils(outcome):
                yield from processes.end()
                worker, losses = None, losses + 1
            if not (is_first or outcome.alive) and outcome.stage == "start":
                continue  # it died before it began: the case before this one is the cause
            waiting.pop(0)
            if suspicion(entry.case, outcome) and not counts:
                suspects.append(entry._replace(before=outcome))
            else:
                self._keep(entry, round_, compared(entry.case, outcome, entry.before))
            if is_first and not outcome.alive and outcome.stage == "create":
                waiting = self._end_with(entry, waiting, round_, outcome)
            if worker is None and not alone:
                suspects += [other for other in waiting if other.path == entry.path]
                waiting = [other for other in waiting if other.path != entry.path]
        for entry in waiting:
            self._keep(entry, round_, Outcome("skipped", SPOILS))
        return suspects

    def _end_with(self, entry: Entry, waiting: Group, round_: int, outcome: Outcome) -> Group:
        """Keep the outcome for all cases whose source ends its process. Return the others."""
        array = operator.attrgetter("producer.name", "shape", "dtype", "layout", "device")
        same = [other for other in waiting if array(other.case) == array(entry.case)]
        for other in same:
            self._keep(other, round_, outcome)
        return [other for other in waiting if other not in same]

    def _next(
        self, processes: Processes, entry: Entry, round_: int, alone: bool
    ) -> Generator[Any, int | None, WorkerClient]:
        """Return the next process. For one path of a survey, it converts the plain array first."""
        worker = yield from processes.next()
        if alone and entry.case.surveyed and not is_plainest(entry.case):
            plain = self._plain.get(entry.path)
            if plain and spoils((yield from self._client.ask(worker, plain, round_))):
                worker = yield from processes.next()
        return worker

    def _keep(self, entry: Entry, round_: int, outcome: Outcome) -> None:
        self._client.keep(entry, round_, outcome)
        self.watcher.step(SURVEYED if entry.case.surveyed else TIMED)

    def _look_wider(self, surveyed: Sequence[int]) -> None:
        """Run the survey and the diagnosis. They take no times, so several workers run at once.

        Not on a device: there a worker tells by its queues whether a conversion waits.
        """
        undiagnosed = sorted(self._undiagnosed())
        for _ in range(len(self._diagnosed) - len(undiagnosed)):
            self.watcher.step(DIAGNOSED)  # refused, crashed, or diagnosed before
        entries = [entry for group in self._needed_groups(0, surveyed) for entry in group]
        on_host = all(self.cases[index].device == "cpu" for index in (*undiagnosed, *surveyed))
        count = lanes(len(entries) + len(undiagnosed)) if on_host else 1
        paths = [*grouped(entries, BY_PATH).values()]
        shares = [[entry for path in paths[lane::count] for entry in path] for lane in range(count)]
        finish([self._survey(share, lane) for lane, share in enumerate(shares)])
        groups = deque(shuffled(self._grouped(undiagnosed), self.settings.rounds))
        finish([self._diagnose(groups, lane=lane) for lane in range(count)])

    def _diagnose(
        self, groups: deque[Group], is_over: Callable[[], bool] = lambda: False, lane: int = 0
    ) -> Lane:
        """Diagnose ``groups`` until time ``is_over``. Lanes share them, and begin with others."""
        round_ = self.settings.rounds
        instruments = DIAGNOSIS if self.settings.diagnose else ALIGNMENT
        while not is_over() and (group := next(filter(None, groups), None)):
            groups.rotate(-1 - groups.index(group))
            entries = yield from self._look(group, round_, instruments, is_over, lane)
            traced = [entry for entry in entries if entry.case.device == "cuda"]
            if self._can_trace and traced:
                # CUPTI has one subscriber per process, so traces get a worker of their own.
                yield from self._look(traced, round_ + 1, TRACE)
            elif traced:  # a worker would take seconds to say so
                found = Outcome("ok", None, {"trace": no_trace(NO_CUPTI)})
                for entry in traced:
                    self._client.keep(entry, round_ + 1, found)

    def _look(
        self,
        waiting: Group,
        round_: int,
        instruments: tuple[str, ...],
        is_over: Callable[[], bool] = lambda: False,
        lane: int = 0,
        processes: Processes | None = None,
    ) -> Generator[Any, int | None, Group]:
        """Run ``instruments`` for the waiting cases, until time is over. Return the cases begun.

        They run in forks, or in the current one of ``processes``. A case whose worker dies after
        others is tried again in a new one. If it was the first, the instrument is lost.
        """
        entries: Group = []
        worker, own = None if processes is None else processes.current, processes is None
        processes = processes or self._forks(waiting, lane)
        while waiting and not is_over():
            entry = waiting.pop(0)
            entries.append(entry)
            if not self.file.needs(entry.number, round_):
                continue  # only its trace is left
            whole, remaining = Outcome("ok", None), instruments
            while remaining:
                is_first = worker is None
                worker = worker or (yield from processes.next())
                outcome = yield from self._client.ask(worker, entry, round_, remaining)
                if outcome.alive or is_first:
                    remaining = take_over(whole, outcome, remaining)
                if spoils(outcome):
                    worker = None
            self._client.keep(entry, round_, whole)
            if round_ == self.settings.rounds:
                self.watcher.step(DIAGNOSED)
        if own:
            yield from processes.end()
        return entries

    def _undiagnosed(self) -> set[int]:
        """Return the case of each path that was not refused and did not crash, if it is left."""
        needs, round_ = self.file.needs, self.settings.rounds
        return {
            index
            for index in self._chosen()
            if needs(index, round_)
            or (self.cases[index].device == "cuda" and needs(index, round_ + 1))
        }

    def _chosen(self) -> set[int]:
        """Return the first case of each path that was not refused and did not crash."""
        settled = self.file.settled
        chosen = (next((i for i in path if not settled(i)), None) for path in self._diagnosed)
        return {index for index in chosen if index is not None}

    def _import_ahead(self, groups: Sequence[Group], place: int, round_: int) -> None:
        """Import for this group and the next at once; with one group, for the next round.

        The first round of one group imports for the forks instead.
        """
        self._pool.wait(self.settings.limit_s)
        group, second, forks = groups[place], groups[place + 1 : place + 2], False
        kind = self._kind(group[0])
        if len(groups) == 1:
            forks = round_ == 0 and bool(self._diagnosed)
            second = [] if forks or round_ + 1 == self.settings.rounds else groups
        is_free = not self.settings.times or all(map(can_fork, (group, *second)))
        if not (is_free and (forks or second)) or self._pool.has_loaded(kind) or processors() == 1:
            return
        if forks:
            self._pool.load(("forks", kind), imports_ahead(group))
        for entries in (*second, group):
            self._load(entries, round_)
        self._pool.wait(self.settings.limit_s)

    def _load(self, group: Group, round_: int) -> None:
        self.watcher.case(group[0].case, round_)
        self._pool.load(self._kind(group[0]), imports_ahead(group))

    def _forks(self, group: Group, lane: int = 0) -> Processes:
        imports = imports_ahead(group) if can_fork(group) else []
        return self._pool.forks(("forks", self._kind(group[0])), imports, lane)

    def _kind(self, entry: Entry) -> tuple[str, ...]:
        """Return the same key for all cases that share a process."""
        return () if self.settings.together else entry.case.pair

    def _needed_groups(self, round_: int, order: Iterable[int]) -> list[Group]:
        """Return the cases that a round still needs, grouped for one worker each."""
        indices = []
        for index in order:
            if self.file.needs(index, round_):
                indices.append(index)
            else:
                self.watcher.step(SURVEYED if self.cases[index].surveyed else TIMED)
        return self._grouped(indices)

    def _grouped(self, indices: Iterable[int]) -> list[Group]:
        entries = (Entry(index, self.cases[index]) for index in indices)
        return [*grouped(entries, self._kind).values()]


def _refusal(entry: Entry) -> tuple[str, str]:
    """Return the function that refused a case, and its reason."""
    reason = entry.before.reason if entry.before else None
    return entry.case.path.import_.code.partition("(")[0], reason or ""


def _diagnosed(cases: Sequence[Case], settings: Settings) -> list[list[int]]:
    """Return the cases of each diagnosed path. The first that works counts; empty ones are last."""
    paths: dict[Any, list[int]] = {}
    for index, case in enumerate(cases):
        contiguous = case.device == "cpu" and case.layout in CONTIGUOUS
        is_wanted = settings.diagnose or (settings.alignment and contiguous)
        if is_wanted and not case.surveyed and not case.is_step:
            path = case.pair, case.path, case.dtype, case.layout, case.device
            paths.setdefault(path, []).append(index)
    return [sorted(path, key=lambda i: cases[i].size_bytes == 0) for path in paths.values()]


def take_over(whole: Outcome, outcome: Outcome, instruments: tuple[str, ...]) -> tuple[str, ...]:
    """Add a worker's answer to ``whole``. Return the instruments that have not run.

    The instrument that lost the worker has an answer, too.
    """
    whole.parts |= {name: part for name, part in outcome.parts.items() if name in instruments}
    whole.failures += outcome.failures
    whole.output = whole.output or (outcome.output if not outcome.alive else None)
    if outcome.alive and outcome.status == "ok":
        return ()
    instrument = outcome.stage.partition(" ")[0]  # such as "lifetime after drop"
    measured = outcome.alive and outcome.status == "invalid"  # all of it, on a disturbed device
    if measured or instrument not in instruments:
        reason = outcome.reason or outcome.status
        whole.failures.append({"instrument": "diagnosis", "reason": reason})
        return ()
    whole.parts[instrument] = _lost_verdict(outcome)
    answered = {*whole.parts, *(failure["instrument"] for failure in whole.failures)}
    return tuple(name for name in instruments if name not in answered)


def _lost_verdict(outcome: Outcome) -> dict[str, Any]:
    """Return the verdict of the instrument that lost the worker."""
    found, status = outcome.parts.get("after_drop", {}), session_status(outcome)
    evidence = {**found, "reason": outcome.reason or outcome.status, "worker": status}
    died = False
    if outcome.lost is not None:
        evidence["lost"] = outcome.lost.model_dump()
        is_read = outcome.stage in (AFTER_DROP, OTHER_AFTER_DROP, SOURCE_AFTER_DROP)
        died = is_read and outcome.lost.is_of_bad_memory
    is_source_lost = found.get("source_after_drop") not in (None, SAME)
    dangling = died or is_source_lost or found.get("changed_after_drop") is True
    return {"verdict": "dangling" if dangling else "unknown", "evidence": evidence}
