"""A child whose output is read as it comes: so much of it, for so long, and no more."""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from dataclasses import dataclass

MOST_BYTES = 1 << 20
"""Of stdout, and of stderr. A reproducer prints a few lines."""
POLL_S = 0.1
STREAMS = ("out", "err")


@dataclass(frozen=True)
class Ended:
    """``code`` is None for a child that was not waited for any longer; ``why`` then says why."""

    code: int | None
    out: str
    err: str
    why: str = ""


def watch(process: subprocess.Popen[bytes], limit_s: float) -> Ended:
    """Read stdout and stderr, both pipes, until the child ends, or one of its limits is reached.

    Ending it then is the caller's.
    """
    found = {name: bytearray() for name in STREAMS}
    deadline = time.monotonic() + limit_s
    why = _read(process, found, deadline)
    out, err = (found[name].decode("utf-8", "replace") for name in STREAMS)
    try:
        code = None if why else process.wait(max(deadline - time.monotonic(), 0))
    except subprocess.TimeoutExpired:
        code, why = None, _late(limit_s)
    return Ended(code, out, err, why.format(limit=_late(limit_s)))


def _read(process: subprocess.Popen[bytes], found: dict[str, bytearray], deadline: float) -> str:
    """Fill ``found`` until both streams end; why it was given up, empty if it was not."""
    with selectors.DefaultSelector() as selector:
        for name, stream in zip(STREAMS, (process.stdout, process.stderr), strict=True):
            if stream is not None:
                selector.register(stream, selectors.EVENT_READ, name)
        while selector.get_map():
            left = deadline - time.monotonic()
            if left <= 0:
                return "{limit}"
            ready = selector.select(min(left, POLL_S))
            for key, _ in ready:
                data = os.read(key.fd, 1 << 16)
                found[key.data] += data
                if not data:
                    selector.unregister(key.fileobj)
                elif len(found[key.data]) > MOST_BYTES:
                    return f"stopped after it had written {MOST_BYTES >> 20} MiB"
            if not ready and process.poll() is not None:
                return ""  # what it started may hold the pipes for ever
    return ""


def _late(limit_s: float) -> str:
    return f"no end within {limit_s:g} s"
