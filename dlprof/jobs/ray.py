"""Ray as an engine: a job is a task with the resources of its machine kind."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from typing import Any

import ray
from ray.exceptions import RayError

from dlprof.errors import UsageError
from dlprof.jobs import node
from dlprof.jobs.engine import Progress, Task
from dlprof.jobs.plan import Machine
from dlprof.text.clean import first_line

LIMIT_S = 10.0
BEGUN = ""
"""What a task says before its answer."""


class Ray:
    """The tasks of one machine kind. They end with the process that submitted them."""

    poll_s = 0.5

    def __init__(self, machine: Machine) -> None:
        if not ray.is_initialized():
            try:
                _check(machine.address)
                ray.init(address=machine.address, log_to_driver=False, logging_level="error")
            except (OSError, ValueError, RuntimeError, RayError) as error:
                raise UsageError(f"cannot reach Ray: {first_line(str(error))}") from None
        self._remote: Any = ray.remote(_work).options(
            num_returns="streaming",
            num_cpus=machine.cpus,
            num_gpus=machine.gpus,
            resources=machine.resources or None,
            memory=machine.memory_gb and int(machine.memory_gb * 1e9),
            runtime_env=machine.runtime_env or None,
            max_retries=0,  # dlprof counts them, for every engine
        )
        self._running: dict[str, Any] = {}
        self._begun: set[str] = set()
        self._answers: dict[str, str] = {}

    def submit(self, tasks: Sequence[Task]) -> list[str]:
        for task in tasks:
            self._running[task.id] = self._remote.remote(task.text)
            self._begun.discard(task.id)
        return [task.id for task in tasks]

    def poll(self, handle: str) -> Progress:
        if handle in self._running and ray.wait([self._running[handle]], timeout=0)[0]:
            self._hear(handle)
        if handle in self._answers:
            return "ended"
        return "running" if handle in self._begun else "waiting"

    def fetch(self, handle: str) -> str:
        return self._answers.pop(handle)

    def cancel(self, handle: str) -> None:
        ray.cancel(self._running[handle], force=True)

    def _hear(self, handle: str) -> None:
        """Take the next word of a task: that it was begun, its answer, or why there is none."""
        try:
            said = ray.get(next(self._running[handle]))
        except RayError as error:
            said = node.lost(first_line(str(error)))
        except StopIteration:
            said = node.lost("it ended without an answer")
        if said == BEGUN:
            self._begun.add(handle)
        else:
            self._answers[handle] = said
            del self._running[handle]


def _check(address: str) -> None:
    """Raise OSError where nothing listens: Ray itself would wait for it for many minutes."""
    host, _, port = address.rpartition(":")
    if port.isdecimal() and "://" not in host:
        socket.create_connection((host, int(port)), LIMIT_S).close()


def _work(text: str) -> Iterator[str]:
    yield BEGUN
    yield node.call(text)
