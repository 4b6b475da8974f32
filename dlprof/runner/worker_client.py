"""A worker process, seen from the parent: start it, ask it, and outlive it."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from dlprof.errors import BadInterpreter
from dlprof.plan.catalog import same_interpreter
from dlprof.session.machine import oom_kills

if TYPE_CHECKING:
    from typing_extensions import Self

MAIN = Path(__file__).parents[1] / "worker" / "__main__.py"
TAIL_BYTES = 16_000
IMPORT_LIMIT_S = 180.0
"""Frameworks may compile or initialize a device at import."""
POLL_S = 0.05
STACKS_LIMIT_S = 2.0
KILL_LIMIT_S = 5.0
DRAIN_READS = 64
"""Reads of what a dead worker left in its pipes. A process that it started may still write."""

OnStage = Callable[[str], None]


@dataclass
class Outcome:
    """A worker's answer to one request: a status, a reason, and the parts that came before."""

    status: str
    reason: str | None
    parts: dict[str, Any] = field(default_factory=dict)
    failures: list[dict[str, str]] = field(default_factory=list)
    stage: str = "start"
    output: str | None = None
    alive: bool = True


class WorkerClient(Protocol):
    """What serves requests: a :class:`Worker`, or a recording (``dlprof.runner.replay``)."""

    turn: str
    calls: int

    def ask(
        self,
        request: Mapping[str, Any],
        limit_s: float,
        on_stage: OnStage | None = None,
        import_limit_s: float | None = None,
    ) -> Outcome: ...
    def send(self, request: Mapping[str, Any]) -> None: ...
    def wait(
        self, limit_s: float, on_stage: OnStage | None = None, import_limit_s: float | None = None
    ) -> Outcome: ...
    def until_turn(self, limit_s: float, on_stage: OnStage | None = None) -> Outcome | None: ...
    def go(self, calls: int | None = None) -> None: ...
    def heard(self) -> Outcome: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...


class Worker:
    """A child process under ``python`` that serves requests one at a time.

    ``variables`` are set for it unless the user has set them. Raises :class:`BadInterpreter`
    if the interpreter cannot be started.
    """

    def __init__(self, python: str, variables: Mapping[str, str]) -> None:
        requests_read, requests_write = os.pipe()
        replies_read, replies_write = os.pipe()
        output_read, output_write = os.pipe()
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
            for fd in (requests_write, replies_read, output_read):
                os.close(fd)
            why = getattr(error, "strerror", None) or error
            raise BadInterpreter(f"cannot start the interpreter {python}: {why}") from None
        finally:
            for fd in (requests_read, replies_write, output_write):
                os.close(fd)
        self._requests = requests_write
        self._replies = replies_read
        self._output = output_read
        self._selector = selectors.DefaultSelector()
        for fd in (replies_read, output_read):
            os.set_blocking(fd, False)
            self._selector.register(fd, selectors.EVENT_READ)
        self._tail = b""
        self._pending = b""
        self._last_id = 0
        self._asked_at = 0.0
        self._deaf = False
        self._oom_kills = 0
        self._heard = Outcome("crashed", None)
        self._deadline: float | None = None
        self._importing = True
        self._stopped_at: float | None = None
        self.turn = ""
        """The series of which the worker waits for its turn to take a sample."""
        self.calls = 0
        """The number of calls that this sample is to have."""

    def ask(
        self,
        request: Mapping[str, Any],
        limit_s: float,
        on_stage: OnStage | None = None,
        import_limit_s: float | None = None,
    ) -> Outcome:
        """Send a request and wait for its end; see :meth:`wait`."""
        self.send(request)
        return self.wait(limit_s, on_stage, import_limit_s)

    def send(self, request: Mapping[str, Any]) -> None:
        """Send a request and do not wait. The request before it is forgotten."""
        # First: an interruption from here on must not keep the parts of the request before.
        self._heard = Outcome("crashed", None)
        self._last_id += 1
        self._tail = b""
        self._oom_kills = oom_kills()
        self._asked_at = time.monotonic()
        self._deadline = self._stopped_at = None
        self._importing = True
        self._write({**request, "id": self._last_id})

    def wait(
        self, limit_s: float, on_stage: OnStage | None = None, import_limit_s: float | None = None
    ) -> Outcome:
        """Wait for the end of the last request. Every turn that it asks for is given at once.

        Imports have a limit of their own; ``limit_s`` starts after them. A worker that died, hung
        or answered rubbish is killed, and ``alive`` is false.
        """
        while (outcome := self.until_turn(limit_s, on_stage, import_limit_s)) is None:
            self.go()
        return outcome

    def until_turn(
        self, limit_s: float, on_stage: OnStage | None = None, import_limit_s: float | None = None
    ) -> Outcome | None:
        """As :meth:`wait`, but None as soon as the worker waits for its :attr:`turn`."""
        outcome = self._heard
        import_limit_s = IMPORT_LIMIT_S if import_limit_s is None else import_limit_s
        self._deadline = self._deadline or self._asked_at + import_limit_s
        while True:
            ended = self._deaf or self.process.poll() is not None
            for message in self._rest() if ended else self._messages():
                if "done" in message:
                    outcome.status, outcome.reason = str(message["done"]), message.get("reason")
                    self._heard = Outcome("crashed", None)  # nothing yet of the next request
                    return outcome
                if self._record(message, outcome, on_stage):
                    self._start_limit(outcome.stage, limit_s)
            if ended:
                return self._died(outcome)
            if self._stopped_at is not None:
                return None
            if time.monotonic() > self._deadline:
                importing = outcome.stage in ("start", "import")
                return self._timed_out(outcome, import_limit_s if importing else limit_s)

    def go(self, calls: int | None = None) -> None:
        """Let a worker that waits for its turn go on. Its waiting counts towards no limit.

        ``calls`` is the number of calls of its sample; None if the worker is to choose it.
        """
        if self._deadline is not None and self._stopped_at is not None:
            self._deadline += time.monotonic() - self._stopped_at
        self._stopped_at = None
        self._write({"go": self._last_id, "calls": calls})

    def heard(self) -> Outcome:
        """The answer so far to a request that was not waited for."""
        for message in self._rest():
            self._record(message, self._heard, None)
        return self._heard

    def close(self) -> None:
        """End the worker and all processes that it started."""
        if self._requests >= 0:
            self._kill()
            self._selector.close()
            for fd in (self._requests, self._replies, self._output):
                os.close(fd)
            self._requests = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, message: Mapping[str, Any]) -> None:
        try:
            os.write(self._requests, (json.dumps(message) + "\n").encode())
        except BrokenPipeError:
            self._deaf = True

    def _start_limit(self, stage: str, limit_s: float) -> None:
        """Start the limit of the case with the first stage after the import."""
        if self._importing and stage != "import":
            self._deadline = time.monotonic() + limit_s
            self._importing = False

    def _record(self, message: dict[str, Any], outcome: Outcome, on_stage: OnStage | None) -> bool:
        """Note a stage, a part, or a stop; true for a stage."""
        if "stage" in message:
            outcome.stage = str(message["stage"])
            if on_stage is not None:
                on_stage(outcome.stage)
            return True
        if "turn" in message:
            self.turn, self._stopped_at = str(message["turn"]), time.monotonic()
            self.calls = int(message.get("calls") or 0)
        value = message.get("value")
        if message.get("part") == "failed" and isinstance(value, dict):
            outcome.failures.append(value)
        elif "part" in message and value is not None:
            outcome.parts[str(message["part"])] = value
        return False

    def _messages(self, wait_s: float = POLL_S) -> list[dict[str, Any]]:
        """The messages about the current request since the last look."""
        for key, _ in self._selector.select(wait_s):
            self._read(key.fd)
        *lines, self._pending = self._pending.split(b"\n")
        messages = [_message(line) for line in lines]
        return [message for message in messages if message.get("id") == self._last_id]

    def _rest(self) -> list[dict[str, Any]]:
        """All messages that a dead worker left."""
        return [message for _ in range(DRAIN_READS) for message in self._messages(0)]

    def _read(self, fd: int) -> None:
        try:
            data = os.read(fd, 1 << 16)
        except BlockingIOError:
            return
        if not data:
            self._selector.unregister(fd)
        elif fd == self._output:
            self._tail = (self._tail + data)[-TAIL_BYTES:]
        else:
            self._pending += data

    def _died(self, outcome: Outcome) -> Outcome:
        code: int | None
        try:
            code = self.process.wait(STACKS_LIMIT_S)
        except subprocess.TimeoutExpired:  # its pipe is closed, but one of its threads lives on
            self._kill()
            code = self.process.poll()
        outcome.reason = f"{_ending(code)} during {outcome.stage}"
        if code == -signal.SIGKILL and oom_kills() > self._oom_kills:
            # Not the framework's fault: other programs may have taken the memory.
            outcome.status = "skipped"
            outcome.reason = f"memory ran out during {outcome.stage}: the kernel ended the process"
        return self._lost(outcome)

    def _timed_out(self, outcome: Outcome, limit_s: float) -> Outcome:
        outcome.status = "timeout"
        limit = f"{limit_s:.3g}" if limit_s < 1000 else f"{limit_s:.0f}"  # noqa: PLR2004 - no exponent
        outcome.reason = f"no answer within {limit} s during {outcome.stage}"
        # The faulthandler of the worker writes where each of its threads is.
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGABRT)
        deadline = time.monotonic() + STACKS_LIMIT_S
        while self.process.poll() is None and time.monotonic() < deadline:
            self._messages()
        return self._lost(outcome)

    def _lost(self, outcome: Outcome) -> Outcome:
        self._kill()
        self._rest()
        outcome.output = _readable(self._tail)
        outcome.alive = False
        return outcome

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        # A process that waits for a lost driver or file server cannot be killed.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(KILL_LIMIT_S)


class Start(Protocol):
    """Starts a worker under an interpreter, with environment variables of its frameworks."""

    def __call__(self, python: str, variables: Mapping[str, str]) -> WorkerClient: ...


_start: Start = Worker


def start(python: str, variables: Mapping[str, str]) -> WorkerClient:
    """Start a worker. Every worker of dlprof starts here, so that a recording can stand for it."""
    return _start(python, variables)


@contextlib.contextmanager
def started_by(replacement: Start) -> Iterator[None]:
    """Inside, ``replacement`` starts all workers."""
    global _start  # noqa: PLW0603 - the one seam between dlprof and its processes
    before, _start = _start, replacement
    try:
        yield
    finally:
        _start = before


def child_environment(python: str, variables: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process under ``python``.

    Another interpreter must not see the packages of this one: variables that would lead it there
    are dropped.
    """
    environment = {**variables, **os.environ}
    if not same_interpreter(python):
        for name in ("PYTHONPATH", "PYTHONHOME", "__PYVENV_LAUNCHER__"):
            environment.pop(name, None)
    return environment


def _readable(tail: bytes) -> str | None:
    """The last output, without the faulthandler's long list of extension modules."""
    lines = tail.decode("utf-8", "replace").splitlines()
    kept = [line for line in lines if not line.startswith("Extension modules: ")]
    return "\n".join(kept).strip() or None


def _message(line: bytes) -> dict[str, Any]:
    """One line from a worker; empty if another program wrote into the pipe."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _ending(code: int | None) -> str:
    if code is None:
        return "a process that cannot be killed"
    if code >= 0:
        return f"the process ended with exit code {code}"
    number = -code
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    return f"killed by {name} ({signal.strsignal(number) or 'unknown signal'})"
