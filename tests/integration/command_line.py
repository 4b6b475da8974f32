"""Run dlprof as a user does: a process with its own state folder, and what it left behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
LIMIT_S = 280
"""No test waits longer; none is expected to come near it."""


@dataclass(frozen=True)
class Finished:
    """A dlprof that has ended."""

    code: int
    out: str
    err: str

    @property
    def sentences(self) -> list[str]:
        """What was said on stderr, without where the session is."""
        lines = self.err.splitlines()
        return [line for line in lines if line.strip() and not line.startswith("session: ")]

    def sentence(self) -> str:
        """The only thing said on stderr."""
        assert len(self.sentences) == 1, self.err
        return self.sentences[0]


def environment(state: Path, **changes: str | None) -> dict[str, str]:
    """This process's environment without what changes output; None drops a variable."""
    unwanted = ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "PYTHONPATH", "GITHUB_ACTIONS", "PY_COLORS")
    found = {name: value for name, value in os.environ.items() if name not in unwanted}
    found["XDG_STATE_HOME"] = str(state)
    for name, value in changes.items():
        found.pop(name, None)
        if value is not None:
            found[name] = value
    return found


def dlprof(
    *words: object, state: Path, command: tuple[str, ...] = COMMAND, **changes: Any
) -> Finished:
    """Run to the end. No run of any test may end in a traceback."""
    options = {name: changes.pop(name) for name in ("stdout", "cwd") if name in changes}
    done = subprocess.run(
        [*command, *map(str, words)],
        stdin=subprocess.DEVNULL,
        stdout=options.pop("stdout", subprocess.PIPE),
        stderr=subprocess.PIPE,
        env=environment(state, **changes),
        timeout=LIMIT_S,
        check=False,
        **options,
    )
    finished = Finished(done.returncode, (done.stdout or b"").decode(), done.stderr.decode())
    assert "Traceback" not in finished.out + finished.err, finished.out + finished.err
    return finished


@contextmanager
def running(*words: object, state: Path, **changes: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A dlprof that is still at work; killed at the end if it is alive then."""
    process = subprocess.Popen(
        [*INTERRUPTIBLE, *map(str, words)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(state, **changes),
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def ended(process: subprocess.Popen[bytes]) -> Finished:
    """Wait for a running dlprof."""
    out, err = process.communicate(timeout=LIMIT_S)
    finished = Finished(process.returncode, out.decode(), err.decode())
    assert "Traceback" not in finished.out + finished.err, finished.out + finished.err
    return finished


def wait_until(condition: Callable[[], Any], what: str) -> Any:
    """Poll until ``condition`` is true, and return what it returned."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError(f"waited in vain until {what}")


def children(pid: int) -> list[int]:
    """The living children of a process."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    except OSError:
        return []
    return [int(word) for word in text.split()]


def alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be reaped does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def kill_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Signal a running dlprof and all that a terminal would signal with it."""
    os.killpg(process.pid, number)


def content(path: Path) -> dict[str, Any]:
    """A session file as strict JSON: no NaN, no infinity."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{path} holds {word}, which is not JSON")

    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
    return found


def by_import(session: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The results of a session with one pair, by the way in."""
    return {result["case"]["import"]: result for result in session["results"]}


ANSI = re.compile(r"\x1b\[")
