"""Fork: does a conversion return in a forked child, after its parent has converted?

Data loaders fork, and so does :mod:`multiprocessing`. A child has none of its parent's threads, and
a lock that one of them held stays locked. A child hangs if it sleeps, and its processor time stands
still. The array begins off an aligned address, where more paths copy: views need no thread.

Verdicts: ``returns`` (also with an error), ``hangs``, ``unknown``.
"""

from __future__ import annotations

import mmap
import os
import signal
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from dlprof.protocol.messages import unknown, verdict
from dlprof.worker.channel import Channel
from dlprof.worker.refusal import Refusal, attempt
from dlprof.worker.subject import Subject

ASLEEP_S, LIMIT_S, LOOK_S = 2.0, 20.0, 0.005
BUSY = "the child neither returned nor slept"
RETURNED = 65
"""The exit code of a child whose conversion has returned."""


def measure(subject: Subject, channel: Channel | None = None) -> dict[str, Any]:
    """Return the verdict. The ``channel`` must not end this child at once, as it ends others."""
    if {subject.spec.device, subject.result_device} != {"cpu"}:
        return verdict("unknown", {"moot": True}, "a fork cannot use its parent's device")
    unaligned = attempt(partial(_unaligned, subject))
    subject = subject if isinstance(unaligned, Refusal) else unaligned
    subject.wait_for(subject.convert())
    if channel is not None:
        channel.measuring = False
    shared = mmap.mmap(-1, 1)
    child = os.fork()
    if child == 0:
        attempt(partial(_convert, subject, shared), BaseException)
        os._exit(RETURNED)
    word = _watch(child)
    if word in ("hangs", BUSY):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    if word not in ("hangs", "returns"):
        return unknown(word)
    returned = {"returned": True} if word == "hangs" and shared[0] else {}
    return verdict(word, {**subject.array_evidence(), **returned})


def _convert(subject: Subject, shared: mmap.mmap) -> None:
    """Convert, tell the parent that the call returned, and wait for the result."""
    result = subject.convert()
    shared[0] = 1
    subject.wait_for(result)


def _unaligned(subject: Subject) -> Subject:
    """Return the conversion of an unaligned array. Raises what the framework raises."""
    if subject.spec.layout != "C" or subject.is_one_array:
        return subject
    found = subject.subject(replace(subject.spec, layout="sliced"))
    found.wait_for(found.convert())
    return found


def _watch(child: int) -> str:
    """Return ``returns`` or ``hangs``, else a reason."""
    begin = still_since = time.monotonic()
    before: tuple[str, ...] = ()
    while time.monotonic() - begin < LIMIT_S:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            code = os.waitstatus_to_exitcode(status)
            return "returns" if code == RETURNED else f"the child ended with exit code {code}"
        state = _state(child)
        if state != before or state[0] != "S":
            before, still_since = state, time.monotonic()
        elif time.monotonic() - still_since > ASLEEP_S:
            return "hangs"
        time.sleep(LOOK_S)
    return BUSY


def _state(child: int) -> tuple[str, ...]:
    """Return the state of a process and its processor times: proc(5), ``/proc/[pid]/stat``."""
    words = Path(f"/proc/{child}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return words[0], words[11], words[12]
