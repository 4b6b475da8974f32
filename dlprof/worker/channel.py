"""JSON lines between a worker and its parent, over pipes of their own.

Frameworks and probes write to stdout and stderr as they like; none of that gets in here. Only the
worker's own process may send: a fork by a probe must not answer in its name. While a conversion is
measured, a child ends at once. Else both processes would run the loop.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dlprof.probes.base import Unsupported
from dlprof.protocol.messages import DIAGNOSIS, unknown
from dlprof.worker.refusal import Refusal, attempt

WITH_VERDICT = ("values", "ownership", "fresh_source", "reuse", *DIAGNOSIS)


class Channel:
    def __init__(self, requests_fd: int, replies_fd: int) -> None:
        for fd in (requests_fd, replies_fd):
            os.set_inheritable(fd, False)
        self._requests = os.fdopen(requests_fd, encoding="utf-8")
        self._replies_fd = replies_fd
        self._owner = os.getpid()
        self.measuring = False
        """Whether a conversion runs: a child that it forks is ended at once."""
        os.register_at_fork(after_in_child=lambda: self.measuring and os._exit(0))

    def requests(self) -> Iterator[dict[str, Any]]:
        for line in self._requests:
            request = json.loads(line)
            if "go" not in request:  # else it answers a request that has already ended
                yield request

    def turn(self, identity: int, name: str, calls: int) -> int | None:
        """Wait for the turn to sample ``calls`` calls of ``name``.

        Returns the number of calls that the parent wants instead, if any.
        """
        self.send({"id": identity, "turn": name, "calls": calls})
        line = self._requests.readline()
        if not line:
            os._exit(0)  # the parent is gone
        wanted: int | None = json.loads(line).get("calls")
        return wanted

    def send(self, message: dict[str, Any]) -> None:
        """Send one line. Raises TypeError for values that JSON does not have."""
        if os.getpid() != self._owner:
            os._exit(0)  # a child that a probe forked has come back into our code
        view = memoryview(f"{json.dumps(_finite(message))}\n".encode())
        while view:
            view = view[os.write(self._replies_fd, view) :]

    def adopt(self) -> None:
        """Let this process answer from now on: a fork that was made on purpose."""
        self._owner = os.getpid()


def _finite(value: Any) -> Any:
    """Make ``value`` fit for JSON: NaN and infinity become null, lone surrogates are escaped."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {_finite(str(key)): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value


class Reply:
    """The worker's messages for one request: stages, parts and failures."""

    def __init__(self, channel: Channel, identity: int, wanted: Sequence[str] = ()) -> None:
        self.channel = channel
        self.identity = identity
        self.wanted = wanted
        """Instruments."""
        self.last_stage = ""
        self.failures: dict[str, str] = {}
        """Reasons by instrument."""

    def stage(self, name: str) -> None:
        """Tell the parent what comes next, so that it can place a crash or a hang."""
        self.last_stage = name
        self.channel.send({"id": self.identity, "stage": name})

    def part(self, name: str, value: Any) -> None:
        self.channel.send({"id": self.identity, "part": name, "value": value})

    def failed(self, instrument: str, reason: str) -> None:
        self.failures[instrument] = reason
        self.part("failed", {"instrument": instrument, "reason": reason})

    def take(self, name: str, instrument: Callable[[], Any]) -> Any:
        """Run a wanted instrument and send its answer. If it fails, the others are not affected.

        One of :data:`WITH_VERDICT` cannot tell if it raises :class:`Unsupported`.
        """
        if name not in self.wanted:
            return None
        self.stage(name)

        def answered() -> Any:
            found = instrument()
            if found is not None:
                self.part(name, found)  # raises for what is no JSON, as an instrument does
            return found

        found = attempt(answered)
        if not isinstance(found, Refusal):
            return found
        if name in WITH_VERDICT and isinstance(found.error, Unsupported):
            self.part(name, unknown(str(found.error)))
        else:
            self.failed(name, found.reason)
        return None
