"""Isolation: which answers of a shared process are asked again, and in which processes.

Whatever would become a finding, and whatever was refused or crashed after other conversions, is
asked once more in a process that has converted nothing else. That answer counts.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterable, Mapping
from typing import Any, NamedTuple

from dlprof.runner.case_client import imports_of, status_of
from dlprof.runner.diagnosis import IN_COMPANY, serves_no_more
from dlprof.runner.pairing import Case
from dlprof.runner.schedule import Group
from dlprof.runner.worker_client import Outcome, WorkerClient, WorkerPool

MOST_LOST = 3
"""A path that ended or changed so many processes of its own is tried with no other array."""
FORK_LIMIT_S = 20.0
SPOILS = f"not tried: the path ended or changed {MOST_LOST} processes before"

BLAMED: Mapping[tuple[str, str], str] = {
    ("values", "wrong"): "its values were wrong",
    ("settings", "changed"): "it changed a setting",
}
"""Verdicts that a rule would turn into a finding, by instrument, in words."""


class Suspect(NamedTuple):
    """A case to be asked again alone. ``before`` is its answer from a shared process, if any."""

    number: int
    case: Case
    before: Outcome | None


def suspicion(case: Case, outcome: Outcome) -> str:
    """Why an answer from a shared process is asked again; empty if it counts.

    In timed rounds several processes convert in different orders, so their verdicts stand.
    """
    if outcome.status not in ("ok", "invalid"):
        return outcome.reason or outcome.status
    if not case.surveyed:
        return ""
    narrowed = [case.dtype, case.consumer.narrows.get(case.dtype)]
    for (instrument, word), reason in BLAMED.items():
        if _verdict(outcome, instrument) == word and _changed_dtype(outcome) != narrowed:
            return reason
    owned, promise = _verdict(outcome, "ownership"), case.path.promise
    if promise and {owned, promise} == {"view", "copy"}:
        return f"it was a {owned}, though a {promise} is documented"
    return ""


def compared(case: Case, outcome: Outcome, before: Outcome | None) -> Outcome:
    """The answer of a case alone. If it works only alone, it says what happened before."""
    if before is None or suspicion(case, outcome):
        return outcome
    reason = suspicion(case, before)
    outcome.failures.append({"instrument": IN_COMPANY, "reason": reason})
    outcome.parts["in_company"] = {"status": status_of(before), "reason": reason}
    outcome.output = outcome.output or before.output
    return outcome


def spoils(outcome: Outcome) -> bool:
    """Whether a process must serve no other case after this answer."""
    return serves_no_more(outcome) or _verdict(outcome, "refusal") == "broken"


def by_path(suspects: Iterable[Suspect]) -> list[list[Suspect]]:
    paths: dict[Any, list[Suspect]] = {}
    for suspect in suspects:
        paths.setdefault((suspect.case.pair, suspect.case.path), []).append(suspect)
    return list(paths.values())


def _changed_dtype(outcome: Outcome) -> Any:
    """The dtypes of source and result, if wrong values are due to these."""
    evidence = outcome.parts.get("values", {}).get("evidence") or {}
    return (evidence.get("changed") or {}).get("dtype")


def _verdict(outcome: Outcome, instrument: str) -> str:
    found = outcome.parts.get(instrument)
    return str(found.get("verdict", "")) if isinstance(found, dict) else ""


class FreshProcesses:
    """Processes that have converted nothing, one after another.

    With a ``group``, each is a fork of a process that has imported for its cases and done nothing
    else: an import takes seconds, and a fork takes milliseconds. No times are taken in forks.
    """

    def __init__(self, pool: WorkerPool, group: Group | None = None) -> None:
        cases = [case for _, case in group or ()]
        can_fork = sys.platform == "linux" and all(case.device == "cpu" for case in cases)
        self._pool = pool
        self._imports = [imports_of(case) for case in cases] if can_fork else []
        self._worker: WorkerClient | None = None

    def next(self) -> Generator[Any, Any, WorkerClient]:
        """A process that has converted nothing. The one before it ends."""
        fork = {"do": "fork", "cases": self._imports}
        last = self._worker
        if last is not None and self._imports and not last.has_ended:
            is_over = yield from self._answers(last, {"do": "end fork"})
            if is_over and (yield from self._answers(last, fork)):
                return last
        self.close()
        self._worker = self._pool.worker()
        if self._imports and not (yield from self._answers(self._worker, fork)):
            self.close()
            self._imports = []  # an import ended it or started threads
            self._worker = self._pool.worker()
        return self._worker

    def close(self) -> None:
        if self._worker is not None:
            self._worker.close()
        self._worker = None

    @staticmethod
    def _answers(worker: WorkerClient, request: Mapping[str, Any]) -> Generator[Any, Any, bool]:
        worker.send(request)
        while (outcome := worker.poll(FORK_LIMIT_S)) is None:
            yield worker
        return outcome.status == "ok"
