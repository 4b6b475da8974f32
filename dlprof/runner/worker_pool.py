"""The next worker: a fresh one, or one that has imported its frameworks ahead of its first case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dlprof.runner import worker_client
from dlprof.runner.worker_client import WorkerClient


class WorkerPool:
    """Gives workers of one interpreter, with environment variables of its frameworks."""

    def __init__(self, python: str, variables: Mapping[str, str]) -> None:
        self._python = python
        self._variables = variables
        self._loaded: WorkerClient | None = None

    def worker(self) -> WorkerClient:
        """The worker that :meth:`load` started, or a fresh one. The caller closes it."""
        if self._loaded is not None:
            worker, self._loaded = self._loaded, None
            return worker
        return worker_client.start(self._python, self._variables)

    def load(self, imports: Sequence[Mapping[str, Any]]) -> None:
        """Start a worker that imports for these cases, and do not wait for it."""
        self.close()
        self._loaded = self.worker()
        self._loaded.send({"do": "load", "cases": imports})

    def wait(self, limit_s: float) -> None:
        """Wait until the loaded worker has imported. A worker that died or hung is dropped."""
        if self._loaded is not None and not self._loaded.wait(limit_s).alive:
            self.close()

    def close(self) -> None:
        """End a worker that was loaded and not used."""
        if self._loaded is not None:
            self._loaded.close()
            self._loaded = None
