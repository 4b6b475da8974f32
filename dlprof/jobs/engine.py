"""What an engine is: it takes tasks, says how far they are, and gives their answers.

The own machine is one: it runs one process after the other, as times disturb each other.
"""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import IO, Literal, Protocol

from dlprof.jobs import node

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


STOP_S = 40.0


class Local:
    """``parallel`` tasks at once, of those that may share the machine.

    ``cancelled`` has tasks that are not started. They wait until they are cancelled.
    """

    poll_s = 0.1

    def __init__(self, parallel: int, cancelled: Callable[[], set[str]]) -> None:
        self._parallel = parallel
        self._cancelled = cancelled
        self._queue: deque[Task] = deque()
        self._started: dict[str, tuple[Task, subprocess.Popen[bytes], IO[bytes]]] = {}

    def submit(self, tasks: Sequence[Task]) -> list[str]:
        self._queue.extend(tasks)
        return [task.id for task in tasks]

    def poll(self, handle: str) -> Progress:
        self._start()
        if handle not in self._started:
            return "waiting"
        return "running" if self._started[handle][1].poll() is None else "ended"

    def fetch(self, handle: str) -> str:
        _, process, output = self._started.pop(handle)
        with output:
            output.seek(0)
            text = output.read().decode("utf-8", "replace")
        return text or node.lost(f"its process ended with exit code {process.returncode}")

    def cancel(self, handle: str) -> None:
        self._queue = deque(task for task in self._queue if task.id != handle)
        if handle in self._started:
            process = self._started[handle][1]
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_S)
            process.kill()

    def _start(self) -> None:
        """Start the next tasks: beside each other only those that may share the machine."""
        at_work = [task for task, process, _ in self._started.values() if process.poll() is None]
        while self._queue and (
            not at_work
            or (
                len(at_work) < self._parallel
                and all(task.may_share for task in (*at_work, self._queue[0]))
            )
        ):
            task = self._queue.popleft()
            if task.id in self._cancelled():
                continue
            output = tempfile.TemporaryFile()  # noqa: SIM115 - fetch closes it
            process = subprocess.Popen(  # noqa: S603
                node.COMMAND, stdin=subprocess.PIPE, stdout=output, start_new_session=True
            )
            with contextlib.suppress(BrokenPipeError), process.stdin or output as stdin:
                stdin.write(task.text.encode())  # a broken pipe: it died, and poll says so
            self._started[task.id] = (task, process, output)
            at_work.append(task)
