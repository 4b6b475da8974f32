"""Run steps one after another, each within its own time and all of them within a total.

Each step is a process of its own. What it printed, how it ended and how long it took are kept in a
folder; nothing that a step does stops the next one.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

OK, FAILED, TIMED_OUT, NOTHING, NOT_RUN = "ok", "failed", "timed out", "nothing", "not run"
NO_TIME, STOPPED = "no time", "stopped"
GRACE_S = 10.0
"""What a step is given to write down what it has, once its time is up."""
TAIL_CHARACTERS = 4000
LONGEST_LINE = 100

Wait = Callable[["subprocess.Popen[bytes]", float], bool]
"""Whether a process ended within so many seconds."""


def last_line(log: Path) -> str:
    """What was said last."""
    lines = [line.strip() for line in tail(log).splitlines() if line.strip()]
    return lines[-1] if lines else ""


def nothing_against() -> str | None:
    """Say that a step can be run."""
    return None


@dataclass(frozen=True)
class Step:
    """A command with its time limit; with less than ``least_s`` left it is not begun.

    ``why_not`` is asked when its turn comes: the reason not to run it, or None. ``tell`` reads its
    result in one line from its log.
    """

    name: str
    command: tuple[str, ...]
    limit_s: float
    least_s: float = 5.0
    why_not: Callable[[], str | None] = nothing_against
    tell: Callable[[Path], str] = last_line
    nothing_rc: int | None = None
    """The exit code that says that there was nothing to do here."""


@dataclass(frozen=True)
class Done:
    """What became of a step; ``rc`` is negative where a signal ended it."""

    name: str
    outcome: str
    rc: int | None
    wall_s: float
    line: str
    command: tuple[str, ...]
    tail: str = ""


def ends(process: subprocess.Popen[bytes], limit_s: float) -> bool:
    """Wait for a process, and say whether it ended in time."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(limit_s)
    return process.returncode is not None


@dataclass(frozen=True)
class Runner:
    """Runs steps in ``cwd``; ``clock`` and ``wait`` are for tests."""

    folder: Path
    total_s: float
    cwd: Path
    environment: Mapping[str, str]
    clock: Callable[[], float] = time.monotonic
    wait: Wait = ends
    say: Callable[[str], Any] = print

    def run(self, steps: Iterable[Step]) -> list[Done]:
        """Run all that fit; what was done until then is on disk after each of them."""
        began = self.clock()
        done: list[Done] = []
        stopped = False
        for number, step in enumerate(steps):
            left_s = self.total_s - (self.clock() - began)
            try:
                one = not_run(step, STOPPED) if stopped else self._turn(number, step, left_s)
            except KeyboardInterrupt:
                stopped, one = True, not_run(step, STOPPED)
            done.append(one)
            self.say(f"{one.name}: {one.outcome} after {one.wall_s:.1f} s: {one.line}")
            self._keep(done)
        return done

    def _turn(self, number: int, step: Step, left_s: float) -> Done:
        reason = step.why_not()
        if reason is not None:
            return not_run(step, reason)
        limit_s = min(step.limit_s, left_s - GRACE_S)
        if limit_s < step.least_s:
            return not_run(step, NO_TIME)
        log = self.folder / "logs" / f"{number:02}-{step.name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        began = self.clock()
        outcome, rc = self._run(step, log, limit_s)
        wall_s = round(self.clock() - began, 2)
        return Done(step.name, outcome, rc, wall_s, _told(step, log), step.command, tail(log))

    def _run(self, step: Step, log: Path, limit_s: float) -> tuple[str, int | None]:
        with log.open("wb") as output:
            try:
                process = subprocess.Popen(
                    step.command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=self.cwd,
                    env=dict(self.environment),
                    start_new_session=True,  # so that all of it can be ended at once
                )
            except OSError as error:
                output.write(f"cannot be started: {error}\n".encode())
                return FAILED, None
        try:
            in_time = self.wait(process, limit_s)
            if not in_time:
                self._interrupt(process)
        finally:
            # What it left behind would be measured together with the next step.
            _kill(process, signal.SIGKILL)
            process.wait()
        if not in_time:
            return TIMED_OUT, process.returncode
        if process.returncode == step.nothing_rc:
            return NOTHING, process.returncode
        return (FAILED if process.returncode else OK), process.returncode

    def _interrupt(self, process: subprocess.Popen[bytes]) -> None:
        # dlprof and pytest write down what they have when they are interrupted.
        _kill(process, signal.SIGINT)
        self.wait(process, GRACE_S)

    def _keep(self, done: Sequence[Done]) -> None:
        content = {"total_s": self.total_s, "steps": [asdict(one) for one in done]}
        path = self.folder / "steps.json"
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def not_run(step: Step, reason: str) -> Done:
    """A step that was left out."""
    return Done(step.name, NOT_RUN, None, 0.0, reason, step.command)


def table(done: Sequence[Done]) -> str:
    """A line for each step: what became of it, in how many seconds, and what it found."""
    rows = [("step", "outcome", "s", "result"), *map(_row, done)]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "".join(
        f"{name:<{widths[0]}}  {outcome:<{widths[1]}}  {seconds:>{widths[2]}}  {line}".rstrip()
        + "\n"
        for name, outcome, seconds, line in rows
    )


def tail(log: Path) -> str:
    """The end of what a step printed; nothing where it printed nothing."""
    if not log.exists():
        return ""
    return log.read_bytes()[-4 * TAIL_CHARACTERS :].decode(errors="replace")[-TAIL_CHARACTERS:]


def _row(one: Done) -> tuple[str, str, str, str]:
    outcome = f"{one.outcome} ({one.rc})" if one.outcome == FAILED else one.outcome
    words = " ".join(one.line.split())
    cut = words if len(words) <= LONGEST_LINE else words[: LONGEST_LINE - 1] + "…"
    return one.name, outcome, f"{one.wall_s:.1f}", cut


def _told(step: Step, log: Path) -> str:
    try:
        return step.tell(log)
    except Exception as error:  # noqa: BLE001 - a step may write what it likes
        return f"its result cannot be read: {type(error).__name__}: {error}"


def _kill(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
