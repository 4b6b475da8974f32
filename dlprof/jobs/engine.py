"""What an engine is: it takes tasks, says how far they are, and gives their answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

Progress = Literal["waiting", "running", "ended"]


@dataclass(frozen=True)
class Task:
    """A job for an engine: ``text`` is what :func:`dlprof.jobs.node.call` takes."""

    id: str
    text: str = field(repr=False)
    may_share: bool = False
    """Whether it may run beside another on one machine."""


class Engine(Protocol):
    """Runs tasks somewhere. A handle is its own name for a task."""

    poll_s: float
    """How long to wait between two looks."""

    def submit(self, tasks: Sequence[Task]) -> list[str]: ...
    def poll(self, handle: str) -> Progress: ...
    def fetch(self, handle: str) -> str:
        """The answer of a task that has ended."""
        ...

    def cancel(self, handle: str) -> None: ...
