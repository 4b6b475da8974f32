"""Ask a worker about a case, and keep its answer in the session file."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from dlprof.protocol.messages import REFUSED
from dlprof.runner.evidence import Lost
from dlprof.runner.interrupts import uninterrupted
from dlprof.runner.pairing import Case
from dlprof.runner.progress import Watcher
from dlprof.runner.request import Settings
from dlprof.runner.schedule import (
    EVERY_ROUND,
    FIRST_ROUND,
    FIRST_STEP,
    IN_LOOPS,
    OWN_PROCESS_BYTES,
    STEP,
    SURVEY,
    SURVEY_ONCE,
    UNTIMED,
    Stop,
)
from dlprof.runner.session import INTERRUPTED
from dlprof.runner.session_file import SessionFile
from dlprof.runner.survey import is_looked_at_once
from dlprof.runner.worker_client import Outcome, WorkerClient, WorkerPool

TOGETHER_LIMIT_S = 15.0
LEAST_BYTES_PER_S = 50e6
"""A case has a second more for each so many bytes: they are made, converted and compared."""

Turns = dict[str, int | None]
"""What a worker must know to take turns: see :class:`dlprof.worker.turns.Turns`."""


def imports_of(case: Case) -> dict[str, Any]:
    """What a worker must know to import for a case."""
    return {
        "producer": case.producer.reference,
        "consumer": case.consumer.reference,
        "export": case.path.export.name,
        "import": case.path.import_.name,
    }


def status_of(outcome: Outcome) -> str:
    """The status in the session: an error of the worker or of the probe is a crash, too."""
    return "crashed" if outcome.status in ("failed", "faulty") else outcome.status


def _as_refused(outcome: Outcome) -> Outcome:
    """The refusal, if an experiment after it ended the worker: the conversion did not.

    A loop of refusals that crashes is the conversion's crash; one that takes too long is not.
    """
    reason = outcome.parts.get(REFUSED)
    ends = [("crashed", "handshake"), ("timeout", "handshake"), ("timeout", "refusal")]
    if reason is None or (outcome.status, outcome.stage) not in ends:
        return outcome
    ended = {"instrument": outcome.stage, "reason": f"the worker was lost: {outcome.reason}"}
    return replace(
        outcome,
        status="unsupported",
        reason=reason,
        parts={**outcome.parts, "refused_at": "first call"},
        failures=[*outcome.failures, ended],
        lost=None,
    )


def _lost(outcome: Outcome) -> dict[str, Any] | None:
    """How the conversion ended the worker; by what it raised where it would have ended it."""
    lost = outcome.lost
    if lost is None and outcome.status in ("crashed", "failed"):
        lost = Lost(how=outcome.reason, stage=outcome.stage)
    return None if lost is None else lost.model_dump()


class CaseClient:
    """Asks the workers of ``pool``, and keeps their answers.

    ``later_rounds`` are the instruments of all rounds but the first.
    """

    def __init__(
        self,
        pool: WorkerPool,
        settings: Settings,
        file: SessionFile,
        watcher: Watcher,
    ) -> None:
        self.pool = pool
        self.settings = settings
        self.file = file
        self.watcher = watcher
        self.later_rounds: tuple[str, ...] = EVERY_ROUND

    def ask(
        self, worker: WorkerClient, case: Case, round_: int, instruments: tuple[str, ...] = ()
    ) -> Outcome:
        """The outcome of ``instruments``, by default of those of the round, of a case alone."""
        request = self._request(case, round_, instruments)
        limit_s, on_stage = self._limit_s(case, True), self._on_stage(case, round_)
        return _as_refused(worker.ask(request, limit_s, on_stage))

    def beside(
        self,
        worker: WorkerClient,
        case: Case,
        round_: int,
        instruments: tuple[str, ...] = (),
        alone: bool = False,
    ) -> Generator[WorkerClient, Any, Outcome]:
        """As :meth:`ask`, in a lane."""
        worker.send(self._request(case, round_, instruments, alone))
        limit_s, on_stage = self._limit_s(case, alone), self._on_stage(case, round_)
        while (outcome := worker.poll(limit_s, on_stage)) is None:
            yield worker
        return _as_refused(outcome)

    def in_turns(
        self,
        worker: WorkerClient,
        index: int,
        case: Case,
        round_: int,
        turns: Turns | None,
        alone: bool = False,
    ) -> Generator[Any, int | None, Outcome]:
        """Ask for the answers of a round. With ``turns`` it stops before each sample."""
        if turns is None:
            return (yield from self.beside(worker, case, round_, alone=alone))
        # Two large cases at once may need more memory than there is.
        if case.size_bytes >= OWN_PROCESS_BYTES:
            return self.ask(worker, case, round_)
        worker.send({**self._request(case, round_, ()), "turns": turns})
        limit_s, on_stage = self._limit_s(case, alone), self._on_stage(case, round_)
        while (outcome := worker.until_turn(limit_s, on_stage)) is None:
            worker.go((yield Stop(index, worker.turn, worker.calls)))
        return _as_refused(outcome)

    def keep(self, index: int, round_: int, outcome: Outcome) -> None:
        self.record(index, round_, outcome)
        self.watcher.step()

    def record(self, index: int, round_: int, outcome: Outcome) -> None:
        answer = {
            "status": status_of(outcome),
            "reason": outcome.reason,
            "stage": outcome.stage,
            "lost": _lost(outcome),
            "parts": outcome.parts,
            "failures": outcome.failures,
            "output": outcome.output,
        }
        self.file.add(index, round_, answer)

    @contextmanager
    def kept_if_stopped(
        self, index: int, round_: int, what: str, heard: Callable[[], Outcome]
    ) -> Iterator[None]:
        """If the user stops the run inside, keep what was ``heard`` of ``what`` until then."""
        try:
            yield
        except (KeyboardInterrupt, GeneratorExit):  # the latter: the other side was stopped
            with uninterrupted():
                found = heard()
                if found.parts:
                    reason = f"{what} was interrupted during {found.stage}"
                    stopped = Outcome(INTERRUPTED, reason, found.parts, found.failures, found.stage)
                    self.record(index, round_, stopped)
            raise

    def _request(
        self, case: Case, round_: int, instruments: tuple[str, ...], alone: bool = True
    ) -> dict[str, Any]:
        settings = self.settings
        return {
            "do": "step" if case.is_step else "case",
            **imports_of(case),
            "shape": case.shape,
            "size_bytes": case.size_bytes,
            "dtype": case.dtype,
            "layout": case.layout,
            "device": case.device,
            "corners": case.surveyed,
            "again": not is_looked_at_once(case),
            # What refusals leave behind is looked at where nothing else was converted.
            "alone": alone or not case.surveyed,
            "instruments": instruments or self._instruments(case, round_),
            "setup": settings.setup,
            "placements": settings.placements,
            "budget_ns": settings.sample_ns,
            "largest_bytes": settings.largest_bytes,
            # Both sides of a gate meet the address that decides between a view and a copy.
            "at_boundary": settings.in_turns and case.layout == "C",
        }

    def _instruments(self, case: Case, round_: int) -> tuple[str, ...]:
        if case.surveyed:
            return SURVEY_ONCE if is_looked_at_once(case) else SURVEY
        if case.is_step:
            return STEP if round_ else FIRST_STEP
        if not self.settings.times:
            return UNTIMED
        looped = IN_LOOPS if set(self.settings.placements) - {"convert"} else ()
        return (self.later_rounds if round_ else FIRST_ROUND) + looped

    def _limit_s(self, case: Case, alone: bool) -> float:
        """The limit of a case after its imports."""
        limit_s = self.settings.limit_s
        # A case that hangs among others is tried again alone, with the whole limit.
        if (self.settings.together or case.surveyed) and not alone:
            limit_s = min(limit_s, TOGETHER_LIMIT_S)
        return limit_s + case.size_bytes / LEAST_BYTES_PER_S

    def _on_stage(self, case: Case, round_: int) -> Callable[[str], None]:
        return lambda stage: self.watcher.case(case, round_, stage)
