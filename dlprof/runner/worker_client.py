"""A worker process, seen from the parent: start it, ask it, and outlive it."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dlprof.errors import BadInterpreter
from dlprof.runner.catalog import same_interpreter
from dlprof.runner.evidence import Lost
from dlprof.runner.machine import oom_kills, waited_s
from dlprof.simulated import environment as simulated
from dlprof.text import json_text
from dlprof.text.clean import sanitised

if TYPE_CHECKING:
    from typing_extensions import Self

MAIN = Path(__file__).parents[1] / "worker" / "__main__.py"
TAIL_BYTES = 16_000
IMPORT_LIMIT_S = 180.0
"""Frameworks may compile or initialize a device at import."""
POLL_S = 0.05
STACKS_LIMIT_S = 2.0
KILL_LIMIT_S = 5.0
MOST_STRETCH = 10
"""A limit leaves out the time for which a worker waited for a processor. With that it becomes at
most so many times as long: threads that wait by turning would wait for ever."""
COUNTED = 0.8
"""The last part of a limit, in which a worker's waiting is counted: it took 4 ms with JAX."""
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
    lost: Lost | None = None
    """How the worker ended, if it did; not if memory ran out, which other programs can cause."""


class WorkerClient:
    """What serves requests, one at a time: a :class:`Worker`, or a recording.

    ``turn`` is the series of which the worker waits for its turn to take a sample, and ``calls``
    the number of calls that this sample is to have.
    """

    turn = ""
    calls = 0

    def ask(
        self, request: Mapping[str, Any], limit_s: float, on_stage: OnStage | None = None
    ) -> Outcome:
        """Send a request and wait for its end; see :meth:`wait`."""
        self.send(request)
        return self.wait(limit_s, on_stage)

    def wait(self, limit_s: float, on_stage: OnStage | None = None) -> Outcome:
        """Wait for the end of the last request. Every turn that it asks for is given at once.

        Imports have a limit of their own; ``limit_s`` starts after them. A worker that died, hung
        or answered rubbish is killed, and ``alive`` is false.
        """
        while (outcome := self.until_turn(limit_s, on_stage)) is None:
            self.go()
        return outcome

    def send(self, request: Mapping[str, Any]) -> None:
        """Send a request and do not wait. The request before it is forgotten."""
        raise NotImplementedError

    def until_turn(self, limit_s: float, on_stage: OnStage | None = None) -> Outcome | None:
        """As :meth:`wait`, but None as soon as the worker waits for its :attr:`turn`."""
        raise NotImplementedError

    def poll(self, limit_s: float, on_stage: OnStage | None = None) -> Outcome | None:
        """As :meth:`wait`, but None at once where there is no end yet."""
        raise NotImplementedError

    @property
    def pipes(self) -> Iterable[int]:
        """The file descriptors of what the worker says."""
        return ()

    def go(self, calls: int | None = None) -> None:
        """Let a worker that waits for its turn go on. Its waiting counts towards no limit.

        ``calls`` is the number of calls of its sample; None if the worker is to choose it.
        """

    @property
    def has_ended(self) -> bool:
        """Whether it can be asked nothing any more."""
        return False

    def is_at(self, instrument: str) -> bool:
        """Whether it runs an instrument for its request, or has its answer, as far as it was
        read.
        """
        raise NotImplementedError

    def heard(self) -> Outcome:
        """The answer so far to a request that was not waited for."""
        return Outcome("crashed", None)

    def close(self) -> None:
        """End the worker and all processes that it started."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Worker(WorkerClient):
    """A child process under ``python``.

    ``variables`` are set for it unless the user has set them. Raises :class:`BadInterpreter`
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
            raise BadInterpreter(f"cannot start the interpreter {python}: {why}") from None
        finally:
            for fd in (requests_read, replies_write, output_write):
                os.close(fd)
        self._selector = selectors.DefaultSelector()
        for fd in (self._replies, self._output):
            os.set_blocking(fd, False)
            self._selector.register(fd, selectors.EVENT_READ)
        self._tail = b""
        self._pending = b""
        self._last_id = 0
        self._is_deaf = False
        self._is_closed = False
        self._oom_kills = 0
        self._peak_bytes = 0
        self._asked_bytes = 0
        self._heard = Outcome("crashed", None)
        self._deadline = self._last_deadline = 0.0
        self._waited_s: float | None = None
        self._limit_s = IMPORT_LIMIT_S
        self._is_importing = True
        self._stopped_at: float | None = None

    def send(self, request: Mapping[str, Any]) -> None:
        # First: an interruption from here on must not keep the parts of the request before.
        self._heard = Outcome("crashed", None)
        self._last_id += 1
        self._tail = b""
        self._oom_kills = oom_kills()
        self._asked_bytes = request.get("size_bytes", 0)
        self._begin_limit(IMPORT_LIMIT_S)
        self._is_importing = True
        self._stopped_at = None
        self._write({**request, "id": self._last_id})

    def until_turn(self, limit_s: float, on_stage: OnStage | None = None) -> Outcome | None:
        while True:
            outcome = self._look(limit_s, on_stage, POLL_S)
            if outcome is not None or self._stopped_at is not None:
                return outcome

    def poll(self, limit_s: float, on_stage: OnStage | None = None) -> Outcome | None:
        outcome = self._look(limit_s, on_stage, 0.0)
        if outcome is None and self._stopped_at is not None:
            self.go()
        return outcome

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    @property
    def pipes(self) -> Iterable[int]:
        return [key.fd for key in self._selector.get_map().values()]

    def _look(self, limit_s: float, on_stage: OnStage | None, wait_s: float) -> Outcome | None:
        """The outcome, if the request has ended; and what the worker said until then is noted."""
        ended = self._is_deaf or self.process.poll() is not None
        for message in self._rest() if ended else self._messages(wait_s):
            if "done" in message:
                outcome, self._heard = self._heard, Outcome("crashed", None)
                outcome.status, outcome.reason = str(message["done"]), message.get("reason")
                return outcome
            self._record(message)
            if "stage" in message:
                if on_stage is not None:
                    on_stage(self._heard.stage)
                self._start_limit(limit_s)
        if ended:
            return self._died(self._heard)
        if self._stopped_at is None and self._is_over():
            return self._timed_out(self._heard)
        return None

    def go(self, calls: int | None = None) -> None:
        if self._stopped_at is not None:
            stopped_s = time.monotonic() - self._stopped_at
            self._deadline += stopped_s
            self._last_deadline += stopped_s
        self._stopped_at = None
        self._write({"go": self._last_id, "calls": calls})

    def is_at(self, instrument: str) -> bool:
        return self._heard.stage == instrument or instrument in self._heard.parts

    def heard(self) -> Outcome:
        for message in self._rest():
            self._record(message)
        return self._heard

    def close(self) -> None:
        if not self._is_closed:
            end(self.process)
            self._selector.close()
            for fd in (self._requests, self._replies, self._output):
                os.close(fd)
            self._is_closed = True

    def _write(self, message: Mapping[str, Any]) -> None:
        try:
            os.write(self._requests, (json.dumps(message) + "\n").encode())
        except BrokenPipeError:
            self._is_deaf = True

    def _start_limit(self, limit_s: float) -> None:
        """Start the limit of the case with the first stage after the import."""
        if self._is_importing and self._heard.stage != "import":
            self._is_importing = False
            self._begin_limit(limit_s)

    def _begin_limit(self, limit_s: float) -> None:
        now = time.monotonic()
        self._limit_s, self._deadline = limit_s, now + limit_s
        self._last_deadline = now + MOST_STRETCH * limit_s
        self._waited_s = None

    def _is_over(self) -> bool:
        """Whether the limit is over. What other programs kept the worker from its processors for
        is given again, counted from when a part of the limit is over: most answers come before.
        """
        left_s = self._deadline - time.monotonic()
        if self._waited_s is None and left_s < COUNTED * self._limit_s:
            self._waited_s = waited_s(self.process.pid)
        if left_s > 0:
            return False
        before, self._waited_s = self._waited_s or 0.0, waited_s(self.process.pid)
        starved_s = max(self._waited_s - before, 0.0)
        self._deadline = min(self._deadline + starved_s, self._last_deadline)
        return time.monotonic() > self._deadline

    def _record(self, message: Mapping[str, Any]) -> None:
        """Note a stage, a part, a failure, or a stop."""
        if "stage" in message:
            self._heard.stage = str(message["stage"])
        if "turn" in message:
            self.turn, self._stopped_at = str(message["turn"]), time.monotonic()
            self.calls = int(message.get("calls") or 0)
        value = message.get("value")
        if message.get("part") == "failed" and isinstance(value, dict):
            self._heard.failures.append(value)
        elif "part" in message and value is not None:
            self._heard.parts[str(message["part"])] = value

    def _messages(self, wait_s: float = POLL_S) -> list[dict[str, Any]]:
        """The messages about the current request since the last look."""
        for key, _ in self._selector.select(wait_s):
            self._read(key.fd)
        *lines, self._pending = self._pending.split(b"\n")
        messages = [_message(line) for line in lines]
        for message in messages:
            if message.get("id") is None and isinstance(message.get("peak_bytes"), int):
                self._peak_bytes = message["peak_bytes"]  # of the supervisor, which knows no id
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
            end(self.process)
            code = self.process.poll()
        if code == -signal.SIGKILL and oom_kills() > self._oom_kills:
            outcome.status = "skipped"
            self._rest()
            outcome.reason = f"killed: out of memory during {outcome.stage}{self._sizes()}"
            return self._ended(outcome)
        return self._ended(outcome, _ending(code))

    def _sizes(self) -> str:
        sizes = {"the array has": self._asked_bytes, "the process held": self._peak_bytes}
        said = [
            f"{what} " + (f"{size:,} bytes" if size < 1 << 20 else f"{size / 2**20:,.1f} MiB")
            for what, size in sizes.items()
            if size
        ]
        return f" ({', '.join(said)})" if said else ""

    def _timed_out(self, outcome: Outcome) -> Outcome:
        outcome.status = "timeout"
        # The faulthandler of the worker writes where each of its threads is.
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGABRT)
        deadline = time.monotonic() + STACKS_LIMIT_S
        while self.process.poll() is None and time.monotonic() < deadline:
            self._messages()
        limit_s = round(self._limit_s, 1)
        return self._ended(outcome, Lost(how=f"no answer within {limit_s:g} s", limit_s=limit_s))

    def _ended(self, outcome: Outcome, lost: Lost | None = None) -> Outcome:
        if lost is not None:
            outcome.lost = lost.model_copy(update={"stage": outcome.stage})
            outcome.reason = str(outcome.lost)
        end(self.process)
        self._rest()
        lines = self._tail.decode("utf-8", "replace").splitlines()
        # Not the faulthandler's long list of extension modules.
        kept = [line for line in lines if not line.startswith("Extension modules: ")]
        outcome.output = sanitised("\n".join(kept).strip()) or None
        outcome.alive = False
        return outcome


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process that leads a group, and all that it started, wherever that is now.

    Its supervisor ends what has left the group (:mod:`dlprof.worker.supervisor`).
    """
    if sys.platform == "linux":
        process.terminate()
        # A process that waits for a lost driver or file server cannot be killed.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(KILL_LIMIT_S)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(KILL_LIMIT_S)


class WorkerPool:
    """Gives workers of one interpreter: fresh ones, or those that have imported ahead.

    ``variables`` are environment variables of its frameworks. Of one ``kind`` are workers that
    serve the same cases.
    """

    def __init__(self, python: str, variables: Mapping[str, str]) -> None:
        self._python = python
        self._variables = variables
        self._loaded: list[tuple[Hashable, WorkerClient]] = []

    def worker(self, kind: Hashable = None) -> WorkerClient:
        """A worker that :meth:`load` started for it, or a fresh one. The caller closes it."""
        for one in [one for one in self._loaded if one[0] == kind]:
            self._loaded.remove(one)
            if not one[1].has_ended:
                return one[1]
            one[1].close()  # while it waited, for want of memory: no conversion is to blame
        return start(self._python, self._variables)

    def load(self, kind: Hashable, imports: Sequence[Mapping[str, Any]]) -> None:
        """Start a worker that imports for these cases, and do not wait for it."""
        worker = start(self._python, self._variables)
        self._loaded.append((kind, worker))
        worker.send({"do": "load", "cases": imports})

    def loaded(self, kind: Hashable) -> int:
        """How many workers of this kind :meth:`load` has started that nobody has taken."""
        return sum(of == kind for of, _ in self._loaded)

    def wait(self, limit_s: float) -> None:
        """Wait until all loaded workers have imported. A worker that died or hung is dropped."""
        for one in [*self._loaded]:
            if not one[1].wait(limit_s).alive:
                self._loaded.remove(one)
                one[1].close()

    def close(self) -> None:
        """End the workers that were loaded and not used."""
        while self._loaded:
            self._loaded.pop()[1].close()


Start = Callable[[str, Mapping[str, str]], WorkerClient]
"""Starts a worker under an interpreter, with environment variables of its frameworks."""

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
    are dropped. Raises :class:`MissingDevice` if ``variables`` ask for the simulated driver and it
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
    """One line from a worker; empty if another program wrote into the pipe.

    Here its text is made harmless: all that a framework says comes this way.
    """
    try:
        message = json_text.loads(line.decode())
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _ending(code: int | None) -> Lost:
    if code is None:
        return Lost(how="a process that cannot be killed")
    if code >= 0:
        return Lost(how=f"the process ended with exit code {code}", exit_code=code)
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    words = signal.strsignal(-code) or "unknown signal"
    return Lost(how=f"killed by {name} ({words})", signal=name)
