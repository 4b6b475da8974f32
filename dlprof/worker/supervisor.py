"""The parent of a worker: when the worker ends, it ends every process that conversions started.

A child that calls ``setsid`` or forks twice leaves its process group and its parent. It stays below
the nearest *subreaper* (prctl(2)), and that is this process. Linux only. As a script,
``supervisor.py SCRIPT`` runs another script in the same way.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import os
import resource
import signal
import sys
import time

SET_PARENT_DEATH_SIGNAL, SET_CHILD_SUBREAPER = 1, 36
"""Numbers of ``linux/prctl.h``."""
WATCHED = (signal.SIGCHLD, signal.SIGTERM, signal.SIGABRT)
LIMIT_S, LOOK_S = 3.0, 0.001
"""A process that waits for a lost driver or file server cannot be killed."""
FORK_ENDED = 64
"""The exit code of a fork that its parent ended."""
FIRST_TO_GO = "1000"
"""If memory runs out, the kernel ends this process before any other (proc_pid_oom_score_adj(5))."""


def supervise() -> None:
    """Return in a child. This process stays until the child has ended, and ends as it did.

    SIGTERM, or the end of its parent, makes it end the child. SIGABRT is passed on.
    """
    libc = ctypes.CDLL(None)
    if libc.prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        return
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # the parent of dlprof may have ignored it
    signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    child = os.fork()
    if child == 0:
        libc.prctl(SET_PARENT_DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, WATCHED)
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123
            file.write(FIRST_TO_GO)
        return
    libc.prctl(SET_PARENT_DEATH_SIGNAL, int(signal.SIGTERM), 0, 0, 0)
    _close_all()
    status = _wait(child)
    _end_all()
    _end_as(status)


def fork() -> bool:
    """Fork: return True in the child. Here wait for its end, and end as it did unless planned."""
    child = os.fork()
    if child == 0:
        faulthandler.disable()  # the handler of another signal may have replaced its own
        faulthandler.enable()
        return True
    # The child says where it hangs.
    before = signal.signal(signal.SIGABRT, lambda *_: os.kill(child, signal.SIGABRT))
    _, status = os.waitpid(child, 0)
    signal.signal(signal.SIGABRT, before or signal.SIG_DFL)
    if os.waitstatus_to_exitcode(status) != FORK_ENDED:
        _end_as(status)
    return False


def _close_all() -> None:
    """Close all pipes: their readers wait for the last writer."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    os.closerange(3, most if most != resource.RLIM_INFINITY else 1 << 20)


def _wait(child: int) -> int:
    """Return the status of the child; SIGKILL if it is to end."""
    while True:
        number = signal.sigwait(WATCHED)
        if number == signal.SIGTERM:
            return int(signal.SIGKILL)
        if number == signal.SIGABRT:
            os.kill(child, signal.SIGABRT)
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == child:
                return status
            if not pid:
                break


def _end_all() -> None:
    """Kill all children until there are none: their own children come to this process."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        for pid in _children():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(LOOK_S)


def _children() -> list[int]:
    own, found = str(os.getpid()).encode(), []
    for name in os.listdir("/proc"):  # noqa: PTH208 - no more modules than needed
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                if file.read().rpartition(b")")[2].split()[1] == own:
                    found.append(int(name))
    return found


def _end_as(status: int) -> None:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the worker has written its own
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status))


if __name__ == "__main__":
    supervise()
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])  # noqa: S606 - what the user named
