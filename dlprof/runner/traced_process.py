"""A program in dlprof's place: it gets the signals that are sent to dlprof, each once.

A signal to the whole process group, such as Ctrl-C in a terminal, reaches the program by itself and
is not passed on. To tell that, a process of the group sleeps with its signals blocked: they stay
pending, and Linux lists them.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

STOPS = (signal.SIGKILL, signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
"""Signals that end a process at once, or stop it."""
PASSED_ON = signal.valid_signals() - {*STOPS, signal.SIGCONT, signal.SIGCHLD}
PENDING = re.compile(r"ShdPnd:\s*([0-9a-f]+)")
APART_S = 0.01
"""Between the signals to two processes of a group, if they are sent one after the other."""


def run(words: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a program to its end; the exit code, negative for a signal that ended it."""
    waited = {*PASSED_ON, signal.SIGCHLD}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    group = Group()
    # If it is ignored, Linux does not tell the end of a process. A handler of Python's would
    # complain if another thread got the signal. Set later, it would lose a signal that waits.
    before = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        # As subprocess does, but with the signals blocked that dlprof was started with.
        program = os.posix_spawn(
            words[0],
            [*words],
            environment,
            setsigmask=[*mask],
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
        )
        while True:
            found = signal.sigwaitinfo(waited)
            if found.si_signo != signal.SIGCHLD:
                has_got = group.has_got(found.si_signo)
                is_elsewhere = os.getpgid(program) != os.getpgrp()
                if (is_elsewhere or not has_got) and found.si_pid != program:
                    os.kill(program, found.si_signo)
            ended, status = os.waitpid(program, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
    finally:
        group.end()
        signal.signal(signal.SIGCHLD, before)
        while signal.sigtimedwait(PASSED_ON, 0) is not None:
            pass  # it was for the program, which has ended: the trace is not lost
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


class Group:
    """The process group of dlprof and its program. It is made while signals are blocked."""

    def __init__(self) -> None:
        self._member = _member()
        self._pending: set[int] = set()
        """Of members before."""

    def has_got(self, number: int) -> bool:
        """Whether a signal that dlprof got was sent to the whole group; to be asked for each."""
        if number in self._pending:
            self._pending.remove(number)
            return True
        member = _member()  # for signals from now on
        time.sleep(APART_S)
        pending = _pending(self._member.pid)
        if number not in pending:
            _end(member)
            return False
        _end(self._member)
        self._member = member
        self._pending |= pending - {number}
        return True

    def end(self) -> None:
        _end(self._member)


def _member() -> Any:
    """A process that does nothing until dlprof has ended, however that happens."""
    words = ["cat"] if shutil.which("cat") else [sys.executable, "-ISc", "input()"]
    return subprocess.Popen(  # noqa: S603 - fixed words
        words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def _end(member: Any) -> None:
    member.kill()
    member.stdin.close()
    member.wait()


def _pending(pid: int) -> set[int]:
    """The signals that wait for a process; none where ``/proc`` does not list them."""
    with suppress(OSError):
        found = PENDING.search(Path(f"/proc/{pid}/status").read_text(encoding="utf-8"))
        bits = int(found[1], 16) if found else 0
        return {at + 1 for at in range(bits.bit_length()) if bits >> at & 1}
    return set()
