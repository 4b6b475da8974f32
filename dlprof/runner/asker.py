"""Ask a worker for a case: what for, how long it may take, and whether in turns."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, Protocol

from dlprof.plan.instruments import EVERY_ROUND, FIRST_ROUND, FIRST_STEP, IN_LOOPS, STEP
from dlprof.plan.pairing import Case
from dlprof.plan.settings import OWN_PROCESS_BYTES, Settings
from dlprof.plan.turns import Stop
from dlprof.runner.interpreter import Outcome, Worker
from dlprof.runner.standby import Standby

TOGETHER_LIMIT_S = 15.0
LEAST_BYTES_PER_S = 50e6
"""A case has a second more for each so many bytes: they are made, converted and compared."""


def request_of(case: Case, settings: Settings, instruments: tuple[str, ...]) -> dict[str, Any]:
    return {
        "do": "step" if case.is_step else "case",
        **way(case),
        "shape": case.shape,
        "dtype": case.dtype,
        "layout": case.layout,
        "device": case.device,
        "instruments": instruments,
        "setup": settings.setup,
        "placements": settings.placements,
        "budget_ns": settings.sample_ns,
        "largest_bytes": settings.largest_bytes,
    }


def way(case: Case) -> dict[str, Any]:
    """What a worker must know to import what a case needs."""
    return {
        "producer": case.producer.reference,
        "consumer": case.consumer.reference,
        "export": case.path.export.name,
        "import": case.path.import_.name,
    }


def limit_of(case: Case, settings: Settings, alone: bool) -> float:
    """In seconds, once its frameworks are imported."""
    limit_s = settings.limit_s
    # Who hangs among others is tried again alone, with the whole of its time.
    if settings.together and not alone:
        limit_s = min(limit_s, TOGETHER_LIMIT_S)
    return limit_s + case.size_bytes / LEAST_BYTES_PER_S


Turns = Mapping[str, int | None]
"""What a worker is told of them: its processor."""


class Watcher(Protocol):
    """Is told what runs; see ``dlprof.measuring.progress``."""

    def start(self, total: int) -> None: ...
    def case(self, case: Case, round_: int, stage: str) -> None: ...
    def step(self) -> None: ...


class Asker:
    """Asks the workers that ``standby`` gives. ``later_rounds`` is what all rounds but the first
    ask for.
    """

    def __init__(self, standby: Standby, settings: Settings, watcher: Watcher) -> None:
        self.standby = standby
        self.settings = settings
        self.watcher = watcher
        self.later_rounds: tuple[str, ...] = EVERY_ROUND

    def worker(self) -> Worker:
        return self.standby.worker()

    def ask(
        self,
        worker: Worker,
        case: Case,
        round_: int,
        instruments: tuple[str, ...] = (),
        alone: bool = False,
    ) -> Outcome:
        """What becomes of ``instruments``, or else of those of the round."""
        most_s = limit_of(case, self.settings, alone)
        request = self.request(case, round_, instruments)
        return worker.ask(request, most_s, self._told(case, round_))

    def in_turns(
        self,
        worker: Worker,
        index: int,
        case: Case,
        round_: int,
        turns: Turns | None,
        alone: bool = False,
    ) -> Generator[Stop, int | None, Outcome]:
        """Ask for the times of a case; stops before each sample where they are taken in turns."""
        # Two such large ones at once would be refused for want of memory.
        if turns is None or case.size_bytes >= OWN_PROCESS_BYTES:
            return self.ask(worker, case, round_, alone=alone)
        worker.send({**self.request(case, round_), "turns": turns})
        most_s = limit_of(case, self.settings, alone)
        while (outcome := worker.until_turn(most_s, self._told(case, round_))) is None:
            calls = yield Stop(index, worker.turn, worker.calls)
            worker.go(calls)
        return outcome

    def request(self, case: Case, round_: int, instruments: tuple[str, ...] = ()) -> dict[str, Any]:
        return request_of(case, self.settings, instruments or self._instruments(case, round_))

    def _told(self, case: Case, round_: int) -> Callable[[str], None]:
        return lambda stage: self.watcher.case(case, round_, stage)

    def _instruments(self, case: Case, round_: int) -> tuple[str, ...]:
        if case.is_step:
            return STEP if round_ else FIRST_STEP
        looped = IN_LOOPS if set(self.settings.placements) - {"convert"} else ()
        return (self.later_rounds if round_ else FIRST_ROUND) + looped
