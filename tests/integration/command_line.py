"""Run dlprof as a user does: in this process, in another, or on recorded answers of workers."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from recordings import NUMPY_TORCH
from replay import replayed

from dlprof import cli
from dlprof.errors import SessionError
from dlprof.measuring.judged import load
from dlprof.runner import machine
from dlprof.runner.session_file import document

PROBE_FILES = Path(__file__).parent.parent / "probe_files"
FAKE = str(PROBE_FILES / "fake.py")
COMMAND = (sys.executable, "-m", "dlprof")
INTERRUPTIBLE = (
    sys.executable,
    "-c",
    # A test run in the background has SIGINT ignored, one under nohup SIGHUP, and its children would
    # inherit that.
    (
        "from signal import *; signal(SIGINT, default_int_handler); signal(SIGHUP, SIG_DFL);"
        " from dlprof.cli import main; main()"
    ),
)
QUICK = ("--quick", "--shape", "16")
RUN_FAKE = ("run", "fake", "fake", "--probe", FAKE, *QUICK)
RUN_RECORDED = ("run", "numpy", "torch", "--shape", "64", "--no-survey")
"""A command for :func:`replay`."""
LIMIT_S = 280
"""The longest wait of a test."""


@dataclass(frozen=True)
class Finished:
    """A finished dlprof."""

    code: int
    out: str
    err: str

    @property
    def sentences(self) -> list[str]:
        """The lines of stderr, without the session's place."""
        lines = self.err.splitlines()
        return [line for line in lines if line.strip() and not line.startswith("session: ")]

    def sentence(self) -> str:
        """The only sentence on stderr."""
        assert len(self.sentences) == 1, self.err
        return self.sentences[0]

    @property
    def said(self) -> str:
        """The text of stdout on one line."""
        return " ".join(self.out.split())


UNWANTED = ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "PYTHONPATH", "GITHUB_ACTIONS", "PY_COLORS")


def environment(**changes: object) -> dict[str, str]:
    """Return this process's environment without variables that change output. None drops one."""
    found = {**dict.fromkeys(UNWANTED), **changes}
    kept = {name: value for name, value in os.environ.items() if name not in found}
    return kept | {name: str(value) for name, value in found.items() if value is not None}


def dlprof(*words: object, **variables: object) -> Finished:
    """Run to the end in this process."""
    out, err = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        for name, value in {**dict.fromkeys(UNWANTED), **variables}.items():
            patch.delenv(name, raising=False) if value is None else patch.setenv(name, str(value))
        patch.setattr(cli, "stop_in_order", lambda: None)
        patch.setattr(sys, "argv", ["dlprof", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
    return Finished(ended.value.code or 0, out.getvalue(), err.getvalue())


def replay(*words: object, recording: Path = NUMPY_TORCH, **variables: object) -> Finished:
    """Run on recorded answers, without a framework or another process."""
    with replayed(recording), pytest.MonkeyPatch.context() as patch:
        # Other programs cannot change recorded times.
        patch.setattr(machine, "busy_s", lambda: None)
        return dlprof(*words, **variables)


def process(
    *words: object, command: tuple[str, ...] = COMMAND, stdout: Any = subprocess.PIPE,
    cwd: Path | None = None, **variables: object,
) -> Finished:  # fmt: skip
    """Run to the end in another process. A traceback is a failure."""
    done = subprocess.run(
        [*command, *map(str, words)],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        cwd=cwd,
        env=environment(**variables),
        timeout=LIMIT_S,
        check=False,
    )
    return finished(done.returncode, done.stdout or b"", done.stderr)


def finished(code: int, out: bytes, err: bytes) -> Finished:
    found = Finished(code, out.decode(), err.decode())
    assert "Traceback" not in found.out + found.err, found.out + found.err
    return found


@contextlib.contextmanager
def running(*words: object, **variables: object) -> Iterator[subprocess.Popen[bytes]]:
    """A running dlprof, killed at the end."""
    started = subprocess.Popen(
        [*INTERRUPTIBLE, *map(str, words)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(**variables),
        start_new_session=True,
    )
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


def ended(running: subprocess.Popen[bytes]) -> Finished:
    """Wait for a running dlprof."""
    out, err = running.communicate(timeout=LIMIT_S)
    return finished(running.returncode, out, err)


def wait_until(condition: Callable[[], Any], what: str) -> Any:
    """Poll until ``condition`` is true, and return what it returned."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError(f"waited in vain until {what}")


def alive(pid: int) -> bool:
    """Whether a process runs. A zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def signal_group(running: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Signal a running dlprof and its process group, as a terminal does."""
    os.killpg(running.pid, number)


def content(path: Path) -> dict[str, Any]:
    """Read a session file with its results and findings, or another JSON document."""
    try:
        found: dict[str, Any] = json.loads(document(load(path)))
    except SessionError:
        found = json.loads(path.read_text(encoding="utf-8"))
    return found


def by_import(session: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the results of a session with one pair, by import."""
    return {result["case"]["import"]: result for result in session["results"]}
