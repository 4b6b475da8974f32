"""Run a reproducer in a child, in the interpreter that was measured, and keep what it printed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from dlprof.errors import UsageError
from dlprof.interpreter import child_environment

LIMIT_S = 180.0
MOST_OUTPUT = 6000
MEANINGS = {0: "gone", 1: "there", 125: "cannot tell"}


@dataclass(frozen=True)
class Ran:
    """How a reproducer ended: its exit code (None: stopped after ``LIMIT_S``) and its output."""

    code: int | None
    output: str

    @property
    def verdict(self) -> str:
        """``there``, ``gone``, ``cannot tell``, or how else it ended."""
        if self.code is None:
            return f"no end within {LIMIT_S:g} s"
        return MEANINGS.get(self.code, f"ended with exit code {self.code}")


def run(text: str, python: str, limit_s: float = LIMIT_S) -> Ran:
    """Run the script ``text`` under ``python``, in an empty folder, with all that it starts.

    Raises :class:`UsageError` where the interpreter cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="dlprof-") as folder:
        script, output = Path(folder) / "reproducer.py", Path(folder) / "output"
        script.write_text(text, encoding="utf-8")
        with output.open("wb") as file:
            code = _ended([python, str(script)], folder, file.fileno(), limit_s)
        with output.open("rb") as file:
            told = file.read(MOST_OUTPUT + 1).decode("utf-8", "replace")
    cut = "\n… (cut)" if len(told) > MOST_OUTPUT else ""
    return Ran(code, told[:MOST_OUTPUT].replace(f"{folder}/", "").rstrip() + cut)


def _ended(command: list[str], folder: str, output: int, limit_s: float) -> int | None:
    environment = child_environment(command[0], {})
    try:
        process = subprocess.Popen(  # noqa: S603 - the interpreter that was measured
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise UsageError(f"cannot start {command[0]}: {error.strerror}") from None
    try:
        return process.wait(limit_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
