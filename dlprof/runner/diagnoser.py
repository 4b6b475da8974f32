"""The diagnosis of some cases, after the timed rounds: the times are safe by then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dlprof.plan.groups import Group
from dlprof.plan.instruments import ALIGNMENT, TRACE
from dlprof.plan.pairing import Case
from dlprof.plan.settings import Settings
from dlprof.probes.base import CONTIGUOUS
from dlprof.protocol.messages import DIAGNOSIS
from dlprof.runner.asker import Asker
from dlprof.runner.interpreter import Outcome, Worker
from dlprof.runner.keeper import Keeper
from dlprof.runner.outcomes import died_before, serves_no_more, take_over
from dlprof.session.journal import INTERRUPTED


class Diagnoser:
    """Looks at one case of each path; its answers stand in the round after the timed ones."""

    def __init__(self, cases: Sequence[Case], asker: Asker, keeper: Keeper) -> None:
        self._asker = asker
        self._keeper = keeper
        self._round = asker.settings.rounds
        self._instruments = diagnosis_of(asker.settings)
        self._paths = diagnosed_paths(cases, asker.settings)
        self.done: set[int] = set()
        """The cases that it has looked at."""

    @property
    def paths(self) -> int:
        """Of so many paths there is one."""
        return len(self._paths)

    def chosen(self) -> set[int]:
        """The cases that stand for the paths, as far as is known by now."""
        return standing_for(self._paths, self._keeper.journal.settled)

    def left(self) -> set[int]:
        """Those of them that were not looked at."""
        return {index for index in self.chosen() if self._is_left(index)}

    def left_of(self, group: Group, chosen: set[int]) -> Group:
        return [(index, case) for index, case in group if index in chosen and self._is_left(index)]

    def diagnose(self, group: Group, worker: Worker | None = None) -> None:
        """Look at each case, first with ``worker``, which may have served others and is ended."""
        served = 0 if worker is None else 1
        worker = worker or self._asker.worker()
        try:
            for index, case in group:
                whole = self._found_before(index)
                left = tuple(name for name in self._instruments if name not in whole.parts)
                while left:
                    with self._keeper.if_diagnosis_stopped(
                        index, self._round, worker, whole, self._instruments
                    ):
                        # Nobody tries it again, so that it has the whole of its time.
                        outcome = self._asker.ask(worker, case, self._round, left, alone=True)
                    if not (served and died_before(outcome)):
                        left = take_over(whole, outcome, left)
                    served += 1
                    if serves_no_more(outcome):
                        worker.close()
                        worker = self._asker.worker()
                        served = 0
                self._keeper.keep(index, self._round, whole)
                self.done.add(index)
        finally:
            worker.close()
        self._trace(group)

    def _is_left(self, index: int) -> bool:
        return self._keeper.journal.needs(index, self._round)

    def _found_before(self, index: int) -> Outcome:
        """What was found of a case before its diagnosis was interrupted."""
        whole = Outcome("ok", None)
        for round_, answer in self._keeper.journal.answers(index):
            if round_ == self._round and answer["status"] == INTERRUPTED:
                whole.parts |= answer["parts"]
        return whole

    def _trace(self, group: Group) -> None:
        """CUPTI has one subscriber per process, so traces get a worker of their own."""
        traced = [(index, case) for index, case in group if case.device == "cuda"]
        if not traced:
            return
        worker = self._asker.worker()
        try:
            for index, case in traced:
                found = Outcome("ok", None)
                outcome = self._asker.ask(worker, case, self._round, TRACE, alone=True)
                take_over(found, outcome, TRACE)
                self._keeper.record(index, self._round, found)
                if not outcome.alive:
                    worker.close()
                    worker = self._asker.worker()
        finally:
            worker.close()


def diagnosis_of(settings: Settings) -> tuple[str, ...]:
    """All instruments of the diagnosis, or what is looked at without one."""
    return DIAGNOSIS if settings.diagnose else ALIGNMENT


def diagnosed_paths(cases: Sequence[Case], settings: Settings) -> list[list[int]]:
    """The cases of each path, by their places, in the order in which they may stand for it: the
    answers know no shape, but an array without elements has none.
    """
    paths: dict[Any, list[int]] = {}
    for index, case in enumerate(cases):
        if not case.is_step and _is_asked(case, settings):
            what = case.pair, case.path, case.dtype, case.layout, case.device
            paths.setdefault(what, []).append(index)
    return [sorted(path, key=lambda index: cases[index].size_bytes == 0) for path in paths.values()]


def standing_for(paths: Sequence[Sequence[int]], settled: Callable[[int], bool]) -> set[int]:
    """The first of each path that was not refused and did not crash."""
    found = (next((index for index in path if not settled(index)), None) for path in paths)
    return {index for index in found if index is not None}


def _is_asked(case: Case, settings: Settings) -> bool:
    if settings.diagnose:
        return True
    return settings.alignment and case.device == "cpu" and case.layout in CONTIGUOUS
