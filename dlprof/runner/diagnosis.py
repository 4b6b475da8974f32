"""The diagnosis: instruments that may crash or hang, once per path, when all times are safe.

Its answers are in the round after the timed ones; traces are in the round after that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

from dlprof.probes.base import CONTIGUOUS
from dlprof.protocol.messages import (
    AFTER_DROP,
    DIAGNOSIS,
    NO_CUPTI,
    SAME,
    SOURCE_AFTER_DROP,
    no_trace,
    verdict,
)
from dlprof.runner.case_client import CaseClient, status_of
from dlprof.runner.pairing import Case
from dlprof.runner.parallel import Lane
from dlprof.runner.schedule import ALIGNMENT, TRACE, Group
from dlprof.runner.session import INTERRUPTED
from dlprof.runner.worker_client import Outcome, WorkerClient

IN_COMPANY = "after other conversions in the same process"


class Diagnosis:
    def __init__(self, cases: Sequence[Case], client: CaseClient) -> None:
        settings = client.settings
        self._client = client
        self.can_trace = True
        """Whether CUPTI is there. Else no worker is asked for a trace."""
        self._round = settings.rounds
        self._instruments = DIAGNOSIS if settings.diagnose else ALIGNMENT
        self._paths: dict[Any, list[int]] = {}
        """The cases of each path, in the order in which they may stand for it."""
        for index, case in enumerate(cases):
            contiguous = case.device == "cpu" and case.layout in CONTIGUOUS
            if case.surveyed:
                continue
            if not case.is_step and (settings.diagnose or (settings.alignment and contiguous)):
                path = case.pair, case.path, case.dtype, case.layout, case.device
                self._paths.setdefault(path, []).append(index)
        for path_cases in self._paths.values():  # an array without elements shows least
            path_cases.sort(key=lambda index: cases[index].size_bytes == 0)
        self._traced = {
            index for index, case in enumerate(cases) if case.device == "cuda" and not case.surveyed
        }
        self.done: set[int] = set()
        """The cases that were diagnosed in this run."""

    @property
    def paths(self) -> int:
        return len(self._paths)

    def chosen(self) -> set[int]:
        """The case that stands for each path: the first that was not refused and did not crash."""
        settled = self._client.file.settled
        first = (next((i for i in path if not settled(i)), None) for path in self._paths.values())
        return {index for index in first if index is not None}

    def left(self) -> set[int]:
        """Those of them that are not yet diagnosed."""
        return {index for index in self.chosen() if self._is_left(index)}

    def lane(self, groups: deque[Group], is_over: Callable[[], bool]) -> Lane:
        """Diagnose the cases of ``groups`` until the time ``is_over``.

        Other lanes may take from them too: each begins with another group, as long as there are so
        many, and helps with one that is left.
        """
        while not is_over() and (group := next(filter(None, groups), None)):
            groups.rotate(-1 - groups.index(group))
            yield from self._diagnose(group, is_over)

    def _diagnose(self, waiting: Group, is_over: Callable[[], bool]) -> Lane:
        """Diagnose those that wait, with one worker after another."""
        taken: Group = []
        worker, served = self._client.pool.worker(), 0
        try:
            while waiting and not is_over():
                index, case = waiting.pop(0)
                taken.append((index, case))
                if not self._client.file.needs(index, self._round):
                    continue  # only its trace is left
                whole, doubted = self._found_before(index), dict[str, str]()
                left = tuple(name for name in self._instruments if name not in whole.parts)
                while left:
                    outcome = yield from self._ask(worker, index, case, whole, left)
                    if served and not outcome.alive:  # a case before it may be the cause
                        left = take_answers(whole, outcome, left)
                        doubted[instrument_of(outcome)] = outcome.reason or outcome.status
                    else:
                        left = take_over(whole, outcome, left)
                    served += 1
                    if serves_no_more(outcome):
                        worker.close()
                        worker, served = self._client.pool.worker(), 0
                keep_doubts(whole, doubted)
                self._client.keep(index, self._round, whole)
                self.done.add(index)
        finally:
            worker.close()
        self._trace(taken)

    def look_again(self, group: Group, instrument: str, look: int) -> None:
        """Ask one instrument once more of each case, for what a race shows only now and then.

        ``look`` counts from 0; the answers of each are in a round of their own, after all others.
        """
        round_ = self._round + 2 + look
        worker = self._client.pool.worker()
        try:
            for index, case in group:
                found = Outcome("ok", None)
                outcome = self._client.ask(worker, case, round_, (instrument,))
                take_over(found, outcome, (instrument,))
                self._client.record(index, round_, found)
                if serves_no_more(outcome):
                    worker.close()
                    worker = self._client.pool.worker()
        finally:
            worker.close()

    def _ask(
        self,
        worker: WorkerClient,
        index: int,
        case: Case,
        whole: Outcome,
        instruments: tuple[str, ...],
    ) -> Generator[WorkerClient, None, Outcome]:
        def heard() -> Outcome:
            now = worker.heard()
            new = {name: part for name, part in now.parts.items() if name in self._instruments}
            failures = [*whole.failures, *now.failures]
            return Outcome(now.status, None, {**whole.parts, **new}, failures, now.stage)

        with self._client.kept_if_stopped(index, self._round, "the diagnosis", heard):
            # It is not tried again, so it has the whole limit.
            return (
                yield from self._client.beside(worker, case, self._round, instruments, alone=True)
            )

    def _is_left(self, index: int) -> bool:
        needs = self._client.file.needs
        return needs(index, self._round) or (
            index in self._traced and needs(index, self._round + 1)
        )

    def _found_before(self, index: int) -> Outcome:
        """The parts of a diagnosis that was interrupted."""
        whole = Outcome("ok", None)
        for round_, answer in self._client.file.answers(index):
            if round_ == self._round and answer["status"] == INTERRUPTED:
                whole.parts |= answer["parts"]
        return whole

    def _trace(self, group: Group) -> None:
        """CUPTI has one subscriber per process, so traces get a worker of their own."""
        traced = [(index, case) for index, case in group if index in self._traced]
        if not traced:
            return
        if not self.can_trace:  # a worker would take seconds to say so
            for index, _ in traced:
                found = Outcome("ok", None, {"trace": no_trace(NO_CUPTI)})
                self._client.record(index, self._round + 1, found)
            return
        worker = self._client.pool.worker()
        try:
            for index, case in traced:
                found = Outcome("ok", None)
                outcome = self._client.ask(worker, case, self._round, TRACE)
                take_over(found, outcome, TRACE)
                self._client.record(index, self._round + 1, found)
                if not outcome.alive:
                    worker.close()
                    worker = self._client.pool.worker()
        finally:
            worker.close()


def died_before(outcome: Outcome) -> bool:
    """Whether a worker died before it began: then the case before this one is the cause."""
    return not outcome.alive and outcome.stage == "start"


def serves_no_more(outcome: Outcome) -> bool:
    """Whether a worker is gone, or not as it was: it has too few file descriptors left for the next
    cases, or a conversion changed a setting, of whose effects the next would be accused.
    """
    return not outcome.alive or "left_open" in outcome.parts or changed_settings(outcome)


def changed_settings(outcome: Outcome) -> bool:
    return bool(outcome.parts.get("settings", {}).get("verdict") == "changed")


def take_answers(whole: Outcome, outcome: Outcome, asked: tuple[str, ...]) -> tuple[str, ...]:
    """Add what a worker answered before it was lost after other cases; returns what is to be asked
    of a new one.
    """
    whole.parts |= {name: part for name, part in outcome.parts.items() if name in asked}
    whole.failures += outcome.failures
    if not died_before(outcome):
        reason = outcome.reason or outcome.status
        whole.failures.append({"instrument": IN_COMPANY, "reason": reason})
    answered = {*whole.parts, *(failure["instrument"] for failure in whole.failures)}
    return tuple(name for name in asked if name not in answered)


def instrument_of(outcome: Outcome) -> str:
    """Where a worker was lost: ``lifetime`` of the stage ``lifetime after drop``."""
    return outcome.stage.partition(" ")[0]


def keep_doubts(whole: Outcome, doubted: Mapping[str, str]) -> None:
    """No path is safe by an instrument in which a process died, though others came before: memory
    that is gone may hold its values in the next process.
    """
    for name, reason in doubted.items():
        part = whole.parts.get(name, {})
        if part.get("verdict") == "safe":
            why = f"another process died there after other conversions: {reason}"
            whole.parts[name] = verdict("unknown", part["evidence"], why)


def take_over(whole: Outcome, outcome: Outcome, asked: tuple[str, ...]) -> tuple[str, ...]:
    """Add a worker's answer to ``whole``; returns the instruments that it did not get to.

    A worker that was lost costs the instrument in which it was lost, and that is an answer: a
    process that dies while it reads a result without its source proves that the result dangled.
    """
    whole.parts |= {name: part for name, part in outcome.parts.items() if name in asked}
    whole.failures += outcome.failures
    whole.output = whole.output or (outcome.output if not outcome.alive else None)
    if outcome.alive and outcome.status == "ok":
        return ()
    instrument = instrument_of(outcome)
    measured = outcome.alive and outcome.status == "invalid"  # all of it, on a disturbed device
    if measured or instrument not in asked:
        reason = outcome.reason or outcome.status
        whole.failures.append({"instrument": "diagnosis", "reason": reason})
        return ()
    whole.parts[instrument] = _lost_in(outcome)
    answered = {*whole.parts, *(failure["instrument"] for failure in whole.failures)}
    return tuple(name for name in asked if name not in answered)


def _lost_in(outcome: Outcome) -> dict[str, Any]:
    """The verdict of the instrument in which a worker was lost."""
    found = outcome.parts.get("after_drop", {})
    evidence = {**found, "reason": outcome.reason or outcome.status, "worker": status_of(outcome)}
    died = False
    if outcome.lost is not None:
        evidence["lost"] = outcome.lost.model_dump()
        is_read = outcome.stage in (AFTER_DROP, SOURCE_AFTER_DROP)
        died = is_read and outcome.lost.is_of_bad_memory
    lost_source = found.get("source_after_drop") not in (None, SAME)
    dangling = died or lost_source or found.get("changed_after_drop") is True
    return {"verdict": "dangling" if dangling else "unknown", "evidence": evidence}
