"""Run a reproducer in a child, in the interpreter that was measured, and keep what it printed."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from dlprof.errors import UsageError
from dlprof.runner.interpreter import child_environment
from dlprof.session.files import temporary_folder

LIMIT_S = 180.0
MOST_OUTPUT = 6000
END = 1000
"""Characters of the end that stay at most where the middle is cut out: the answer stands there."""
ANSWERS = {0: "the problem is gone", 1: "the problem is there"}
MEANINGS = {0: "gone", 1: "there", 2: "cannot tell"}
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "GLOG_minloglevel": "3"}
"""What a framework says of itself is no output of the script."""


@dataclass(frozen=True)
class Ran:
    """How a reproducer ended: its exit code (None: stopped, ``why`` says why) and its output.

    ``errors`` is the end of what stderr held, where it did not end as reproducers do.
    """

    code: int | None
    output: str
    errors: str = ""
    why: str = f"no end within {LIMIT_S:g} s"
    where: str = "in the interpreter that was measured"

    @property
    def verdict(self) -> str:
        """``there``, ``gone``, ``cannot tell``, or how else it ended.

        An exit code is taken at its word only with the last line that a reproducer prints before:
        a Python that fails to start ends with 1 as well.
        """
        if self.code is None:
            return self.why
        answer = ANSWERS.get(self.code)
        if answer is not None and not self.output.endswith(answer):
            return f"ended with exit code {self.code}, and did not say {answer!r}"
        return MEANINGS.get(self.code, f"ended with exit code {self.code}")

    @property
    def told(self) -> str:
        """The line before the answer: what the script saw."""
        lines = self.output.splitlines()
        return lines[-2] if len(lines) > 1 else ""


def run(text: str, python: str, limit_s: float = LIMIT_S) -> Ran:
    """Run the script ``text`` under ``python``, in an empty folder, with all that it starts.

    Raises :class:`UsageError` where the interpreter cannot be started.
    """
    with temporary_folder("the script is run") as folder:
        script = Path(folder) / "reproducer.py"
        try:
            script.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"the script cannot be written: {error.strerror}") from None
        ended = _ended([python, str(script)], folder, limit_s)
    out, err = (text.replace(f"{folder}/", "").rstrip() for text in (ended.out, ended.err))
    ran = Ran(ended.code, _cut(out), why=ended.why)
    if ran.verdict in MEANINGS.values():
        return ran
    return Ran(ended.code, _cut(out), _end(err), ended.why)


def _cut(text: str) -> str:
    if len(text) <= MOST_OUTPUT:
        return text
    begin = text[: MOST_OUTPUT - END]
    begin = begin.rpartition("\n")[0] or begin.rpartition(" ")[0]
    end = _end(text)
    left_out = len(text) - len(begin) - len(end)
    return f"{begin}\n… ({left_out:,} characters cut)\n{end}".lstrip("\n")


def _end(text: str) -> str:
    """Whole lines, or words: of half a path or a name nobody could tell that it is one."""
    if len(text) <= END:
        return text
    end = text[-END:]
    return end.partition("\n")[2] or end.partition(" ")[2]


def _ended(command: list[str], folder: str, limit_s: float) -> Ended:
    environment = child_environment(command[0], {}) | QUIET
    try:
        process = subprocess.Popen(  # noqa: S603 - the interpreter that was measured
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise UsageError(f"cannot start {command[0]}: {error.strerror}") from None
    with process:
        try:
            return watch(process, limit_s)
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


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
