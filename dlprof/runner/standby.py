"""The next worker: one that has imported ahead of its first case, or a fresh one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dlprof.runner.interpreter import Worker
from dlprof.session.machine import processor_s

QUIET_LIMIT_S = 20.0
"""Whoever wants a quiet machine waits so long for an import, and no longer."""


@dataclass(frozen=True)
class Interpreter:
    """What workers are started with: a Python, and variables of its frameworks."""

    python: str
    variables: Mapping[str, str]


class Standby:
    """Gives workers of one interpreter."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._interpreter = interpreter
        self._next: Worker | None = None

    def load(self, ways: Sequence[Mapping[str, Any]]) -> None:
        """Start a worker and have it import what ``ways`` need, without waiting for it."""
        self._start().send({"do": "load", "cases": ways})

    def wait(self, limit_s: float) -> None:
        """Until the loaded worker has imported; one that died or hung is forgotten."""
        if self._next is not None and not self._next.wait(limit_s).alive:
            self.close()

    def processor_s(self) -> float | None:
        """Processor time of the worker that was started; None where nobody knows."""
        return None if self._next is None else processor_s(self._next.process.pid)

    def begin(self, request: Mapping[str, Any]) -> None:
        """Start a worker with its first case, which stops after its imports until it is asked."""
        self._start().begin(request)

    def settle(self) -> None:
        """Until a case that was begun has imported, or failed to; at most QUIET_LIMIT_S."""
        if self._next is not None:
            self._next.settle(QUIET_LIMIT_S)

    def worker(self) -> Worker:
        """The worker that was started; else a fresh one."""
        if self._next is not None:
            worker, self._next = self._next, None
            return worker
        return Worker(self._interpreter.python, self._interpreter.variables)

    def close(self) -> None:
        """End a worker that was started and not used."""
        if self._next is not None:
            self._next.close()
            self._next = None

    def _start(self) -> Worker:
        self.close()
        self._next = worker = self.worker()
        return worker
