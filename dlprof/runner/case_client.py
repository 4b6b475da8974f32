"""Ask a worker about a case, and keep its answer in the session file."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

from dlprof.protocol.messages import REFUSED
from dlprof.runner.evidence import Lost
from dlprof.runner.pairing import Case
from dlprof.runner.progress import Watcher
from dlprof.runner.request import Settings
from dlprof.runner.schedule import (
    EVERY_ROUND,
    FIRST_ROUND,
    FIRST_STEP,
    IN_LOOPS,
    IN_TURNS,
    STEP,
    SURVEY,
    UNTIMED,
    Entry,
    Stop,
)
from dlprof.runner.session_file import SessionFile
from dlprof.runner.worker_client import POLL_S, Outcome, WorkerClient

LEAST_BYTES_PER_S = 50e6
"""A case has a second more for each so many bytes: they are made, converted and compared."""

Turns = dict[str, int | None]
"""What a worker must know to take turns: see :class:`dlprof.worker.turns.Turns`."""


def imports_of(case: Case) -> dict[str, Any]:
    """Return what a worker must know to import for a case."""
    return {
        "producer": case.producer.reference,
        "consumer": case.consumer.reference,
        "export": case.path.export.name,
        "import": case.path.import_.name,
    }


def status_of(outcome: Outcome) -> str:
    """Return the status in the session: an error of the worker or of the probe is a crash, too."""
    return "crashed" if outcome.status in ("failed", "faulty") else outcome.status


def _as_refused(outcome: Outcome) -> Outcome:
    """Return the refusal if an experiment after it ended the worker: the conversion did not.

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


class CaseClient:
    """Asks workers about cases, and keeps their answers."""

    def __init__(self, settings: Settings, file: SessionFile, watcher: Watcher) -> None:
        self.settings = settings
        self.file = file
        self.watcher = watcher

    def ask(
        self,
        worker: WorkerClient,
        entry: Entry,
        round_: int,
        instruments: tuple[str, ...] = (),
        alone: bool = True,
        turns: Turns | None = None,
    ) -> Generator[Any, int | None, Outcome]:
        """Ask for ``instruments``, by default for those of the round.

        With ``turns`` it yields a :class:`Stop` before each sample, and blocks between these. Else
        it yields the worker while it waits for it. ``alone`` if the worker has converted nothing
        of another path.
        """
        case = entry.case
        request = self._request(case, round_, instruments, alone)
        if turns is not None:
            request["turns"] = turns
        limit_s = self.settings.limit_s + case.size_bytes / LEAST_BYTES_PER_S
        wait_s = 0.0 if turns is None else POLL_S
        worker.send(request)
        while True:
            outcome = worker.poll(
                limit_s, lambda stage: self.watcher.case(case, round_, stage), wait_s
            )
            if outcome is not None:
                return _as_refused(outcome)
            if turns is None:
                yield worker
            elif worker.turn:
                worker.go((yield Stop(entry.number, worker.turn, worker.calls)))

    def keep(self, entry: Entry, round_: int, outcome: Outcome) -> None:
        """Append the answer to the session file."""
        lost = outcome.lost
        if lost is None and outcome.status in ("crashed", "failed"):
            # By what it raised, where that would have ended the process.
            lost = Lost(how=outcome.reason, stage=outcome.stage)
        answer = {
            "status": status_of(outcome),
            "reason": outcome.reason,
            "stage": outcome.stage,
            "lost": None if lost is None else lost.model_dump(),
            "parts": outcome.parts,
            "failures": outcome.failures,
            "output": outcome.output,
        }
        self.file.add(entry.number, round_, answer)

    def _request(
        self, case: Case, round_: int, instruments: tuple[str, ...], alone: bool
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
            # What refusals leave behind shows only if nothing else was converted.
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
            return SURVEY
        if case.is_step:
            return STEP if round_ else FIRST_STEP
        if not self.settings.times:
            return UNTIMED
        later = IN_TURNS if self.settings.in_turns else EVERY_ROUND
        looped = IN_LOOPS if set(self.settings.placements) - {"convert"} else ()
        return (later if round_ else FIRST_ROUND) + looped
