"""Isolation: which answers of a shared process are asked again, and in which processes.

Whatever would become a finding, and whatever was refused or crashed after other conversions, is
asked once more in a process that has converted nothing else. That answer counts.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Hashable, Mapping, Sequence
from typing import Any

from dlprof.protocol.statement import UserCode, leading_imports
from dlprof.runner.case_client import imports_of, status_of
from dlprof.runner.pairing import Case
from dlprof.runner.request import Settings
from dlprof.runner.schedule import Entry, process_of
from dlprof.runner.worker_client import Outcome, WorkerClient, WorkerPool

IN_COMPANY = "after other conversions in the same process"
FORK_LIMIT_S = 20.0

BLAMED: Mapping[tuple[str, str], str] = {
    ("values", "wrong"): "its values were wrong",
    ("settings", "changed"): "it changed a setting",
}
"""Verdicts that a rule would turn into a finding, by instrument, in words."""


def suspicion(case: Case, outcome: Outcome) -> str:
    """Return why an answer from a shared process is asked again; empty if it counts.

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
    """Return the answer of a case alone. If it works only alone, it says what happened before."""
    if before is None or suspicion(case, outcome):
        return outcome
    reason = suspicion(case, before)
    outcome.failures.append({"instrument": IN_COMPANY, "reason": reason})
    outcome.parts["in_company"] = {"status": status_of(before), "reason": reason}
    outcome.output = outcome.output or before.output
    return outcome


def spoils(outcome: Outcome) -> bool:
    """Whether a process must serve no other case after this answer.

    It is gone, or a setting was changed.
    """
    return (
        not outcome.alive
        or _verdict(outcome, "settings") == "changed"
        or _verdict(outcome, "refusal") == "broken"
    )


def died_before(outcome: Outcome) -> bool:
    """Whether a worker died before it began: then the case before this one is the cause."""
    return not outcome.alive and outcome.stage == "start"


def _changed_dtype(outcome: Outcome) -> Any:
    """Return the dtypes of source and result, if wrong values are due to these."""
    evidence = outcome.parts.get("values", {}).get("evidence") or {}
    return (evidence.get("changed") or {}).get("dtype")


def _verdict(outcome: Outcome, instrument: str) -> str:
    found = outcome.parts.get(instrument)
    return str(found.get("verdict", "")) if isinstance(found, dict) else ""


class Processes:
    """Processes that have converted nothing, one after another.

    With ``forks``, each is a fork of a process that has imported for these cases and done nothing
    else: an import takes seconds, and a fork takes milliseconds. No times are taken in forks.
    """

    def __init__(
        self, pool: WorkerPool, kind: Hashable = None, forks: Sequence[Entry] = ()
    ) -> None:
        self._pool = pool
        self._kind = kind
        self._imports = imports_for(forks) if can_fork(forks) else []
        self._worker: WorkerClient | None = None
        self._is_idle = False
        """Whether the process has imported, and has no fork."""

    def next(self) -> Generator[Any, Any, WorkerClient]:
        """Return a process that has converted nothing. The one before it ends."""
        yield from self.end()
        if self._worker is not None and (yield from self._fork(self._worker)):
            return self._worker
        self.close()
        self._worker = self._pool.worker(self._kind)
        if self._imports and not (yield from self._fork(self._worker)):
            self.close()
            self._imports = []  # an import ended it or started threads
            self._worker = self._pool.worker()
        return self._worker

    def end(self) -> Generator[Any, Any, None]:
        """End the last process. One that has imported for forks is kept."""
        last = self._worker
        if last is None or self._is_idle:
            return
        if self._imports and not last.has_ended:
            self._is_idle = yield from self._answers(last, {"do": "end fork"})
        if not self._is_idle:
            self.close()

    def close(self) -> None:
        if self._worker is not None:
            self._worker.close()
        self._worker = None

    def _fork(self, worker: WorkerClient) -> Generator[Any, Any, bool]:
        self._is_idle = False
        return (yield from self._answers(worker, {"do": "fork", "cases": self._imports}))

    @staticmethod
    def _answers(worker: WorkerClient, request: Mapping[str, Any]) -> Generator[Any, Any, bool]:
        worker.send(request)
        while (outcome := worker.poll(FORK_LIMIT_S)) is None:
            yield worker
        return outcome.status == "ok"


class Forks:
    """One :class:`Processes` for each lane, kept while its cases are of the same frameworks.

    What takes no times shares the import of these: untimed answers, the survey, the diagnosis.
    """

    def __init__(self, pool: WorkerPool, settings: Settings) -> None:
        self._pool = pool
        self._settings = settings
        self._kept: dict[int, tuple[Hashable, Processes]] = {}

    def processes(self, entries: Sequence[Entry], lane: int = 0) -> Processes:
        """Return the processes of a lane for these cases."""
        kind = self._kind(entries)
        kept, processes = self._kept.get(lane, (None, None))
        if processes is None or kept != kind:
            if processes is not None:
                processes.close()
            processes = Processes(self._pool, kind, entries)
            self._kept[lane] = kind, processes
        return processes

    def load(self, entries: Sequence[Entry]) -> None:
        """Start the process of the first lane, and do not wait for it."""
        if can_fork(entries):
            self._pool.load(self._kind(entries), imports_for(entries))

    @property
    def lanes(self) -> int:
        return len(self._kept)

    def close(self) -> None:
        for _, processes in self._kept.values():
            processes.close()
        self._kept.clear()

    def _kind(self, entries: Sequence[Entry]) -> Hashable:
        return "forks", process_of(entries[0].case, self._settings)


def can_fork(entries: Sequence[Entry]) -> bool:
    """Whether these cases may run in forks: a fork cannot use its parent's device."""
    return sys.platform == "linux" and all(entry.case.device == "cpu" for entry in entries)


def imports_for(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Return what a worker imports ahead for these cases.

    A user's own setup runs for its case alone. Only the imports that it begins with run ahead.
    """
    return list({entry.path: _imports_ahead(entry.case) for entry in entries}.values())


def _imports_ahead(case: Case) -> dict[str, Any]:
    if case.producer.source.startswith(UserCode.PREFIX):
        return {"statements": leading_imports(case.path.import_.setup)}
    return imports_of(case)
