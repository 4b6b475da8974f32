"""The diagnosis: instruments that may crash or hang, once per path, when all times are safe.

Its answers are in the round after the timed ones; traces are in the round after that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import Any

from dlprof.probes.base import CONTIGUOUS
from dlprof.protocol.messages import (
    AFTER_DROP,
    DIAGNOSIS,
    NO_CUPTI,
    SAME,
    SOURCE_AFTER_DROP,
    no_trace,
)
from dlprof.runner.case_client import CaseClient, status_of
from dlprof.runner.isolation import Forks, spoils
from dlprof.runner.pairing import Case
from dlprof.runner.schedule import ALIGNMENT, TRACE, Group, Lane
from dlprof.runner.worker_client import Outcome


class Diagnosis:
    """Which case stands for each path, and what a worker is asked about it."""

    def __init__(
        self, cases: Sequence[Case], client: CaseClient, forks: Forks, can_trace: bool
    ) -> None:
        settings = client.settings
        self._client = client
        self._forks = forks
        self._can_trace = can_trace
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

    @property
    def paths(self) -> int:
        return len(self._paths)

    def left(self) -> set[int]:
        """Return the case of each path that was not refused and did not crash, if it is left."""
        settled, needs = self._client.file.settled, self._client.file.needs
        first = (next((i for i in path if not settled(i)), None) for path in self._paths.values())
        return {
            index
            for index in first
            if index is not None
            and (
                needs(index, self._round)
                or (index in self._traced and needs(index, self._round + 1))
            )
        }

    def lane(self, groups: deque[Group], is_over: Callable[[], bool], lane: int = 0) -> Lane:
        """Diagnose the cases of ``groups`` until the time ``is_over``.

        Several lanes may share them: each begins with another group, and helps with one that is
        left.
        """
        while not is_over() and (group := next(filter(None, groups), None)):
            groups.rotate(-1 - groups.index(group))
            taken = yield from self.look(group, self._round, self._instruments, is_over, lane)
            traced = [entry for entry in taken if entry.number in self._traced]
            if self._can_trace and traced:
                # CUPTI has one subscriber per process, so traces get a worker of their own.
                yield from self.look(traced, self._round + 1, TRACE)
            elif traced:  # a worker would take seconds to say so
                found = Outcome("ok", None, {"trace": no_trace(NO_CUPTI)})
                for entry in traced:
                    self._client.keep(entry, self._round + 1, found)

    def look(
        self,
        waiting: Group,
        round_: int,
        instruments: tuple[str, ...],
        is_over: Callable[[], bool] = lambda: False,
        lane: int = 0,
    ) -> Generator[Any, int | None, Group]:
        """Ask ``instruments`` of the cases that wait. Return those that were taken.

        A worker that dies after other cases says nothing: a new one is asked. One that dies of its
        first case costs the instrument in which it died.
        """
        taken: Group = []
        processes = self._forks.processes(waiting, lane)
        worker = None
        while waiting and not is_over():
            entry = waiting.pop(0)
            taken.append(entry)
            if not self._client.file.needs(entry.number, round_):
                continue  # only its trace is left
            whole, left = Outcome("ok", None), instruments
            while left:
                is_first = worker is None
                worker = worker or (yield from processes.next())
                outcome = yield from self._client.ask(worker, entry, round_, left)
                if outcome.alive or is_first:
                    left = take_over(whole, outcome, left)
                if spoils(outcome):
                    worker = None
            self._client.keep(entry, round_, whole)
            if round_ == self._round:
                self._client.watcher.step()
        yield from processes.end()
        return taken


def take_over(whole: Outcome, outcome: Outcome, asked: tuple[str, ...]) -> tuple[str, ...]:
    """Add a worker's answer to ``whole``. Return the instruments that it did not get to.

    A worker that was lost costs the instrument in which it was lost, and that is an answer: a
    process that dies while it reads a result without its source proves that the result dangled.
    """
    whole.parts |= {name: part for name, part in outcome.parts.items() if name in asked}
    whole.failures += outcome.failures
    whole.output = whole.output or (outcome.output if not outcome.alive else None)
    if outcome.alive and outcome.status == "ok":
        return ()
    instrument = outcome.stage.partition(" ")[0]  # of the stage "lifetime after drop"
    measured = outcome.alive and outcome.status == "invalid"  # all of it, on a disturbed device
    if measured or instrument not in asked:
        reason = outcome.reason or outcome.status
        whole.failures.append({"instrument": "diagnosis", "reason": reason})
        return ()
    whole.parts[instrument] = _lost_in(outcome)
    answered = {*whole.parts, *(failure["instrument"] for failure in whole.failures)}
    return tuple(name for name in asked if name not in answered)


def _lost_in(outcome: Outcome) -> dict[str, Any]:
    """Return the verdict of the instrument in which a worker was lost."""
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
