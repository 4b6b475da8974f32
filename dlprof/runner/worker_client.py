"""Start a worker process, send it requests, and survive its crashes and hangs."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import (
    Generator,
    Hashable,
    Iterable,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dlprof.errors import UsageError
from dlprof.protocol.messages import ending
from dlprof.runner.machine import oom_kills
from dlprof.simulated import environment as simulated
from dlprof.text import json_text
from dlprof.text.clean import sanitised

if TYPE_CHECKING:
    from typing_extensions import Self

    from dlprof.runner.evidence import Lost

MAIN = Path(__file__).parents[1] / "worker" / "__main__.py"
TAIL_BYTES = 16_000
IMPORT_LIMIT_S = 180.0
"""Frameworks may compile or initialize a device at import."""
IMPORTING = ("start", "import")
"""Stages with this limit."""
POLL_S = 0.05
FORK_LIMIT_S = 20.0
STACKS_LIMIT_S = 2.0
KILL_LIMIT_S = 5.0
DRAIN_READS = 64
"""Reads of the pipes of a dead worker: a process that it started may write forever."""


@dataclass
class Outcome:
    """A worker's answer to one request: a status, a reason, and its parts."""

    status: str
    reason: str | None
    parts: dict[str, Any] = field(default_factory=dict)
    failures: list[dict[str, str]] = field(default_factory=list)
    stage: str = "start"
    output: str | None = None
    alive: bool = True
    lost: Lost | None = None
    """The end of the worker; None if it lives, or if memory ran out."""


class WorkerClient:
    """A worker that serves one request at a time: a :class:`Worker`, or a recording."""

    turn = ""
    """The series of the next sample if the worker waits for its turn, else empty."""
    calls = 0
    """Calls of that sample."""
    pipes: Iterable[int] = ()
    """File descriptors that are readable when the worker says something."""
    has_ended = False

    def ask(self, request: Mapping[str, Any], limit_s: float) -> Outcome:
        """Send a request and wait for its end."""
        self.send(request)
        return self.wait(limit_s)

    def wait(self, limit_s: float) -> Outcome:
        """Wait for the end of the last request.

        Imports have a limit of their own; ``limit_s`` starts after them. A worker that died, hung
        or answered rubbish is killed, and ``alive`` is false. Every turn is given at once.
        """
        while (outcome := self.poll(limit_s, POLL_S)) is None:
            if self.turn:
                self.go()
        return outcome

    def send(self, request: Mapping[str, Any]) -> None:
        """Send a request and do not wait. The request before it is forgotten."""
        raise NotImplementedError

    def poll(self, limit_s: float, wait_s: float = 0.0) -> Outcome | None:
        """Return the outcome of the last request; None while it runs or waits for :meth:`go`."""
        raise NotImplementedError

    def go(self, calls: int | None = None) -> None:
        """Let a worker take its turn, with a sample of ``calls`` calls; None if it may choose."""

    def close(self) -> None:
        """End the worker and all processes that it started."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Worker(WorkerClient):
    """A child process under ``python``.

    ``variables`` are set for it unless the user has set them. Raises :class:`UsageError`
    if the interpreter cannot be started.
    """

    def __init__(self, python: str, variables: Mapping[str, str]) -> None:
        requests_read, self._requests = os.pipe()
        self._replies, replies_write = os.pipe()
        self._output, output_write = os.pipe()
        try:
            self.process = subprocess.Popen(  # noqa: S603 - the interpreter the user named
                [python, str(MAIN), str(requests_read), str(replies_write)],
                stdin=subprocess.DEVNULL,
                stdout=output_write,
                stderr=output_write,
                pass_fds=(requests_read, replies_write),
                env=child_environment(python, variables),
                start_new_session=True,
            )
        except (OSError, ValueError) as error:  # ValueError: a null byte in the name
            for fd in (self._requests, self._replies, self._output):
                os.close(fd)
            why = getattr(error, "strerror", None) or error
            raise UsageError(f"cannot start the interpreter {python}: {why}") from None
        finally:
            for fd in (requests_read, replies_write, output_write):
                os.close(fd)
        self._selector = selectors.DefaultSelector()
        for fd in (self._replies, self._output):
            self._selector.register(fd, selectors.EVENT_READ)
        self._tail = b""
        self._pending = b""
        self._last_id = 0
        self._oom_kills = 0
        self._outcome = Outcome("crashed", None)
        self._limit_s = IMPORT_LIMIT_S
        self._deadline = 0.0
        self._is_closed = False

    def send(self, request: Mapping[str, Any]) -> None:
        self._outcome = Outcome("crashed", None)
        self._last_id += 1
        self._tail = b""
        self._oom_kills = oom_kills()
        self.turn = ""
        self._begin_limit(IMPORT_LIMIT_S)
        self._write({**request, "id": self._last_id})

    def poll(self, limit_s: float, wait_s: float = 0.0) -> Outcome | None:
        has_ended = self.has_ended
        for message in self._last_messages() if has_ended else self._messages(wait_s):
            if "done" in message:
                self._outcome.status = str(message["done"])
                self._outcome.reason = message.get("reason")
                return self._outcome
            is_importing = self._outcome.stage in IMPORTING
            self._record(message)
            if is_importing and self._outcome.stage not in IMPORTING:
                self._begin_limit(limit_s)
        if has_ended:
            return self._crash_outcome()
        if not self.turn and time.monotonic() > self._deadline:
            return self._timeout_outcome()
        return None

    def go(self, calls: int | None = None) -> None:
        self.turn = ""
        self._begin_limit(self._limit_s)  # the wait for a turn counts towards no limit
        self._write({"go": self._last_id, "calls": calls})

    @property
    def has_ended(self) -> bool:  # type: ignore[override]
        return self.process.poll() is not None

    @property
    def pipes(self) -> Iterable[int]:  # type: ignore[override]
        return [key.fd for key in self._selector.get_map().values()]

    def close(self) -> None:
        if not self._is_closed:
            end(self.process)
            self._selector.close()
            for fd in (self._requests, self._replies, self._output):
                os.close(fd)
            self._is_closed = True

    def _write(self, message: Mapping[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError):  # it has ended, or will meet its limit
            os.write(self._requests, (json.dumps(message) + "\n").encode())

    def _begin_limit(self, limit_s: float) -> None:
        self._limit_s, self._deadline = limit_s, time.monotonic() + limit_s

    def _record(self, message: Mapping[str, Any]) -> None:
        """Note a stage, a turn, a part, or a failure."""
        if "stage" in message:
            self._outcome.stage = str(message["stage"])
        if "turn" in message:
            self.turn, self.calls = str(message["turn"]), int(message.get("calls") or 0)
        value = message.get("value")
        if message.get("part") == "failed" and isinstance(value, dict):
            self._outcome.failures.append(value)
        elif "part" in message and value is not None:
            self._outcome.parts[str(message["part"])] = value

    def _messages(self, wait_s: float = POLL_S) -> list[dict[str, Any]]:
        """Return the messages about the current request since the last look."""
        for key, _ in self._selector.select(wait_s):
            data = os.read(key.fd, 1 << 16)
            if not data:
                self._selector.unregister(key.fd)
            elif key.fd == self._replies:
                self._pending += data
            else:
                self._tail = (self._tail + data)[-TAIL_BYTES:]
        *lines, self._pending = self._pending.split(b"\n")
        messages = [_message(line) for line in lines]
        return [message for message in messages if message.get("id") == self._last_id]

    def _last_messages(self) -> list[dict[str, Any]]:
        """Return all messages that a dead worker left."""
        return [message for _ in range(DRAIN_READS) for message in self._messages(0)]

    def _crash_outcome(self) -> Outcome:
        code = self.process.wait()
        if code == -signal.SIGKILL and oom_kills() > self._oom_kills:
            self._outcome.status = "skipped"
            self._outcome.reason = f"killed: out of memory during {self._outcome.stage}"
            return self._lost_outcome({})
        return self._lost_outcome(_ending(code))

    def _timeout_outcome(self) -> Outcome:
        self._outcome.status = "timeout"
        # The faulthandler of the worker writes where each of its threads is.
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGABRT)
        deadline = time.monotonic() + STACKS_LIMIT_S
        while not self.has_ended and time.monotonic() < deadline:
            self._messages()
        limit_s = round(self._limit_s, 1)
        return self._lost_outcome({"how": f"no answer within {limit_s:g} s", "limit_s": limit_s})

    def _lost_outcome(self, ending: Mapping[str, Any]) -> Outcome:
        from dlprof.runner.evidence import Lost  # 'dlprof --help' must not pay for pydantic

        outcome = self._outcome
        if ending:
            outcome.lost = Lost(**ending, stage=outcome.stage)
            outcome.reason = str(outcome.lost)
        end(self.process)
        self._last_messages()
        lines = self._tail.decode("utf-8", "replace").splitlines()
        # Not the faulthandler's long list of extension modules.
        lines = [line for line in lines if not line.startswith("Extension modules: ")]
        outcome.output = sanitised("\n".join(lines).strip()) or None
        outcome.alive = False
        return outcome


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process that leads a group; its supervisor ends what has left the group."""
    if sys.platform == "linux":
        process.terminate()
        # A process that waits for a lost driver or file server cannot be killed.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(KILL_LIMIT_S)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(KILL_LIMIT_S)


class Processes:
    """Processes that have converted nothing, one after another.

    With ``imports``, each is a fork of a process that has imported and done nothing else: an import
    takes seconds, and a fork takes milliseconds. No times are taken in forks.
    """

    def __init__(
        self, pool: Workers, kind: Hashable = None, imports: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        self._pool = pool
        self._kind = kind
        self._imports = imports
        self._worker: WorkerClient | None = None
        self._is_used = False

    def next(self) -> Generator[WorkerClient, Any, WorkerClient]:
        """Return the next process, once the one before it has ended."""
        yield from self.end()
        worker = self._worker = self._worker or self._pool.worker(self._kind)
        fork = {"do": "fork", "cases": self._imports}
        if self._imports and not (yield from _succeeds(worker, fork)):
            self.close()
            self._imports = ()  # an import ended the process or started threads
            worker = self._worker = self._pool.worker()
        self._is_used = True
        return worker

    @property
    def current(self) -> WorkerClient | None:
        """The last process, if it lives."""
        worker = self._worker
        return worker if worker is not None and self._is_used and not worker.has_ended else None

    def release(self) -> WorkerClient | None:
        """Return the last process, if it lives. The caller closes it."""
        if worker := self.current:
            self._worker = None
        return worker

    def end(self) -> Generator[WorkerClient, Any, None]:
        """End the last process. One that has imported for forks is kept."""
        worker = self._worker
        if worker is None or not self._is_used:
            return
        self._is_used = False
        can_fork = self._imports and not worker.has_ended
        if not (can_fork and (yield from _succeeds(worker, {"do": "end fork"}))):
            self.close()

    def close(self) -> None:
        if self._worker is not None:
            self._worker.close()
        self._worker = None


def _succeeds(
    worker: WorkerClient, request: Mapping[str, Any]
) -> Generator[WorkerClient, Any, bool]:
    worker.send(request)
    while (outcome := worker.poll(FORK_LIMIT_S)) is None:
        yield worker
    return outcome.status == "ok"


class Workers:
    """All workers of one interpreter. Workers of one ``kind`` serve the same cases.

    ``variables`` are environment variables of its frameworks.
    """

    def __init__(self, python: str, variables: Mapping[str, str]) -> None:
        self._python = python
        self._variables = variables
        self._importing: list[tuple[Hashable, WorkerClient]] = []
        self._imported: list[tuple[Hashable, WorkerClient]] = []
        self._forks: dict[int, tuple[Hashable, Processes]] = {}

    def worker(self, kind: Hashable = None) -> WorkerClient:
        """Return a worker that has imported for its cases, or a new one. The caller closes it."""
        for place, (imported, worker) in enumerate(self._imported):
            if imported == kind:
                del self._imported[place]
                return worker
        return start(self._python, self._variables)

    def load(self, kind: Hashable, imports: Sequence[Mapping[str, Any]]) -> None:
        """Start a worker that imports for its cases, and do not wait for it."""
        worker = start(self._python, self._variables)
        self._importing.append((kind, worker))
        worker.send({"do": "load", "cases": imports})

    def wait(self, limit_s: float) -> None:
        """Wait until all workers have imported. A worker that died or hung is dropped."""
        while self._importing:
            kind, worker = self._importing[0]
            if worker.wait(limit_s).alive:
                self._imported.append((kind, worker))
            else:
                worker.close()
            del self._importing[0]

    def has_loaded(self, kind: Hashable) -> bool:
        return any(imported == kind for imported, _ in self._imported)

    def forks(
        self, kind: Hashable, imports: Sequence[Mapping[str, Any]], lane: int = 0
    ) -> Processes:
        """Return the forks of a lane. They share one import while the ``kind`` stays the same."""
        current, forks = self._forks.get(lane, (None, None))
        if forks is None or current != kind:
            if forks is not None:
                forks.close()
            forks = Processes(self, kind, imports)
            self._forks[lane] = kind, forks
        return forks

    def close(self) -> None:
        """End all workers that the pool holds."""
        for _, forks in self._forks.values():
            forks.close()
        for _, worker in (*self._importing, *self._imported):
            worker.close()
        self._importing, self._imported, self._forks = [], [], {}


def start(python: str, variables: Mapping[str, str]) -> WorkerClient:
    """Start a worker under an interpreter, with environment variables of its frameworks.

    Every worker of dlprof starts here: the tests put a recording in its place.
    """
    return Worker(python, variables)


def child_environment(python: str, variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a process under ``python``.

    Another interpreter must not see the packages of this one, so variables that lead there are
    dropped. Raises :class:`Unmeasured` if ``variables`` ask for the simulated driver and it
    cannot be built.
    """
    environment = {**variables, **os.environ}
    if simulated.DEVICES in variables:
        environment[simulated.DEVICES] = variables[simulated.DEVICES]
        environment = simulated.on_simulated_device(environment, python)
    if not same_interpreter(python):
        for name in ("PYTHONPATH", "PYTHONHOME", "__PYVENV_LAUNCHER__"):
            environment.pop(name, None)
    return environment


def _message(line: bytes) -> dict[str, Any]:
    """Parse a line from a worker and sanitize its text; empty if another program wrote it."""
    try:
        message = json_text.loads(line.decode())
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _ending(code: int) -> dict[str, Any]:
    how = ending(code)
    if code >= 0:
        return {"how": f"the process {how}", "exit_code": code}
    return {"how": how, "signal": how.removeprefix("killed by ").partition(" (")[0]}


def same_interpreter(python: str) -> bool:
    return os.path.abspath(python) == os.path.abspath(sys.executable)  # noqa: PTH100 - resolving would leave the venv
