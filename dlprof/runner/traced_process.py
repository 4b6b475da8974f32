"""Run a program in dlprof's place: it gets the signals that are sent to dlprof."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence

STOPS = (signal.SIGKILL, signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
"""Signals that end a process at once, or stop it."""
PASSED_ON = signal.valid_signals() - {*STOPS, signal.SIGCONT, signal.SIGCHLD}


def run(words: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a program to its end; return the exit code, negative for a signal that ended it."""
    waited = {*PASSED_ON, signal.SIGCHLD}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    # If SIGCHLD is ignored, Linux does not report the end of a process.
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
            # A signal of the kernel, such as Ctrl-C, reaches the whole group by itself.
            is_of_process = found.si_code <= 0 and found.si_pid != program
            if found.si_signo != signal.SIGCHLD and is_of_process:
                os.kill(program, found.si_signo)
            ended, status = os.waitpid(program, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
    finally:
        signal.signal(signal.SIGCHLD, before)
        while signal.sigtimedwait(PASSED_ON, 0) is not None:
            pass  # it was for the program, which has ended: the trace is not lost
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
