"""Send cases to workers, decide whether an answer counts, and keep it in the session file.

A refusal or a crash after other conversions is measured once more in a process that has converted
nothing else. So is an answer of the survey that would become a finding. The new answer counts.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

from dlprof.protocol.messages import AT_EXIT, REFUSED
from dlprof.protocol.statement import UserCode, leading_imports
from dlprof.runner.evidence import Lost
from dlprof.runner.pairing import Case
from dlprof.runner.progress import Watcher
from dlprof.runner.request import Settings
from dlprof.runner.schedule import Entry, Stop
from dlprof.runner.session_file import SessionFile
from dlprof.runner.worker_client import POLL_S, Outcome, WorkerClient

EVERY_ROUND = (
    "settings",
    "warnings",
    "first_call",
    "ownership",
    "values",
    "host_time",
    "ready_time",
    "device_time",
    "copy_cost",
)
FIRST_ROUND = (*EVERY_ROUND, "recipe", "handshake", "fresh_source")

IN_TURNS = ("host_time", "ready_time", "device_time")
"""Later rounds of a gate: the first has given the verdicts."""

UNTIMED = ("settings", "warnings", "first_call", "ownership", "values", "handshake", "recipe")
"""A round without times."""

IN_LOOPS = ("placement",)
"""Added to every round if a placement other than ``convert`` is requested."""

STEP = ("host_time", "ready_time", "versus", "shape_change", "values", "reuse")
FIRST_STEP = (*STEP, "allocations")
"""A step of inference, which converts nothing. Counting takes long, so one round does it."""

ALIGNMENT = ("alignment",)
"""The diagnosis without ``--diagnose``: the addresses that processes had are few."""

TRACE = ("trace",)

SURVEY = ("recipe", "settings", "warnings", "values", "ownership", "refusal")
"""The survey, which converts once."""

IN_COMPANY = "after other conversions in the same process"

LEAST_BYTES_PER_S = 50e6
"""The time limit of a case grows with its bytes, which are made, converted and compared."""

HELD_BYTES, EXIT_LIMIT_S = 64 << 10, 20.0
"""TensorFlow takes 3 s to exit on a busy machine. An exit that hangs is no finding."""

Turns = dict[str, int | None]
"""The fields of :class:`dlprof.worker.turns.Turns` that the parent decides."""


class CaseClient:
    """Sends cases to workers, and keeps their answers."""

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
        """Run ``instruments``, by default those of the round.

        With ``turns`` it yields a :class:`Stop` before each sample, else the worker that it waits
        for. ``alone`` if the worker has converted nothing of another path.
        """
        case = entry.case
        request = self._request(case, round_, instruments, alone)
        if turns is not None:
            request["turns"] = turns
        limit_s = self.settings.limit_s + case.size_bytes / LEAST_BYTES_PER_S
        wait_s = 0.0 if turns is None else POLL_S
        self.watcher.case(case, round_)
        worker.send(request)
        while True:
            if (outcome := worker.poll(limit_s, wait_s)) is not None:
                return _as_measured(_as_refused(outcome))
            if turns is None:
                yield worker
            elif worker.turn:
                worker.go((yield Stop(entry.number, worker.turn, worker.calls)))

    def begin_exit(self, worker: WorkerClient, entries: Sequence[Entry], *, converts: bool) -> None:
        """Let a worker exit with the sources of these cases, and their results if it converts."""
        cases = [self._request(entry.case, 0, (AT_EXIT,), alone=True) for entry in entries]
        cases = [{**case, "largest_bytes": HELD_BYTES} for case in cases]
        worker.send({"do": AT_EXIT, "cases": cases, "converts": converts})

    def failed_exit(self, worker: WorkerClient) -> Generator[Any, int | None, Outcome | None]:
        """Wait for the end of a worker. Return an answer if it failed in its exit."""
        while (outcome := worker.poll(EXIT_LIMIT_S)) is None:
            yield worker
        worker.close()
        lost = outcome.lost
        if lost is None or lost.stage != AT_EXIT or not (lost.signal or lost.exit_code):
            return None
        found = {"verdict": "fails", "evidence": {"lost": lost.model_dump()}}
        return Outcome("ok", None, {AT_EXIT: found}, output=outcome.output)

    def keep(self, entry: Entry, round_: int, outcome: Outcome) -> None:
        """Append the answer to the session file."""
        lost = outcome.lost
        if lost is None and outcome.status in ("crashed", "failed"):
            # It raised what would have ended the process.
            lost = Lost(how=outcome.reason, stage=outcome.stage)
        answer = {
            "status": session_status(outcome),
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
            **import_names(case),
            "shape": case.shape,
            "size_bytes": case.size_bytes,
            "dtype": case.dtype,
            "layout": case.layout,
            "device": case.device,
            "corners": case.surveyed,
            # What refusals leave behind shows only if nothing else was converted.
            "alone": alone or not case.surveyed,
            "instruments": instruments or self._instruments(case, round_),
            "brief": round_ > settings.rounds,
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
        looped = IN_LOOPS if set(self.settings.placements) - {"convert"} else ()
        if not self.settings.times:
            return UNTIMED + looped
        later = IN_TURNS if self.settings.in_turns else EVERY_ROUND
        return (later if round_ else FIRST_ROUND) + looped


def import_names(case: Case) -> dict[str, Any]:
    """Return the names by which a worker imports for a case."""
    return {
        "producer": case.producer.reference,
        "consumer": case.consumer.reference,
        "export": case.path.export.name,
        "import": case.path.import_.name,
    }


def can_fork(entries: Sequence[Entry]) -> bool:
    """Whether these cases may run in forks: a fork cannot use its parent's device."""
    return sys.platform == "linux" and all(entry.case.device == "cpu" for entry in entries)


def imports_ahead(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Return the imports of these cases; of a user's own setup, those at its start."""
    cases = {entry.path: entry.case for entry in entries}.values()
    return [
        {"statements": leading_imports(case.path.import_.setup)}
        if case.producer.source.startswith(UserCode.PREFIX)
        else import_names(case)
        for case in cases
    ]


def session_status(outcome: Outcome) -> str:
    """Return the status for the session: an error of the worker or of a probe is a crash, too."""
    return "crashed" if outcome.status in ("failed", "faulty") else outcome.status


def suspicion(case: Case, outcome: Outcome) -> str:
    """Return the reason to distrust an answer of a shared process; empty if it counts.

    In timed rounds several processes convert in different orders, so their verdicts stand.
    """
    if outcome.status not in ("ok", "invalid"):
        return outcome.reason or outcome.status
    if not case.surveyed:
        return ""
    if _verdict(outcome, "settings") == "changed":
        return "it changed a setting"
    if _verdict(outcome, "values") == "wrong":
        changed = outcome.parts["values"].get("evidence", {}).get("changed") or {}
        if changed.get("dtype") != [case.dtype, case.consumer.narrows.get(case.dtype)]:
            return "its values were wrong"
    owned, promise = _verdict(outcome, "ownership"), case.path.promise
    if promise and {owned, promise} == {"view", "copy"}:
        return f"it was a {owned}, though a {promise} is documented"
    return ""


def compared(case: Case, outcome: Outcome, before: Outcome | None) -> Outcome:
    """Return the answer of a case alone. If it works only alone, note what happened before."""
    if before is None or suspicion(case, outcome):
        return outcome
    reason = suspicion(case, before)
    outcome.failures.append({"instrument": IN_COMPANY, "reason": reason})
    outcome.parts["in_company"] = {"status": session_status(before), "reason": reason}
    outcome.output = outcome.output or before.output
    return outcome


def spoils(outcome: Outcome) -> bool:
    """Whether a process must serve no other case: it is gone, or a setting was changed."""
    return (
        not outcome.alive
        or _verdict(outcome, "settings") == "changed"
        or _verdict(outcome, "refusal") == "broken"
    )


def _verdict(outcome: Outcome, instrument: str) -> str:
    found = outcome.parts.get(instrument)
    return str(found.get("verdict", "")) if isinstance(found, dict) else ""


def _as_measured(outcome: Outcome) -> Outcome:
    """Return the times if a later instrument took too long: the conversion has returned."""
    is_timed = "host_time" in outcome.parts and outcome.stage != "ready_time"
    if outcome.status != "timeout" or not is_timed:
        return outcome
    ended = {"instrument": outcome.stage, "reason": f"the worker was lost: {outcome.reason}"}
    failures = [*outcome.failures, ended]
    return replace(outcome, status="ok", reason=None, failures=failures, lost=None)


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
