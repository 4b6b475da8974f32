"""Show the progress of a run: its phase, and how much is left."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from dlprof.runner.pairing import Case

if TYPE_CHECKING:
    from typing_extensions import Self


class Watcher:
    """Receives the progress of a run, and shows nothing."""

    def start(self, total: float, limit_s: float | None = None, rounds: int = 0) -> None:
        """Expect work of ``total``, or what fits. Rounds after ``rounds`` are the diagnosis."""

    def case(self, case: Case, round_: int) -> None: ...
    def step(self, work: float = 1) -> None: ...


class Bar(Watcher):
    """Draws a bar on stderr if that is a terminal."""

    def __init__(self, description: str = "starting") -> None:
        from rich.console import Console  # imported late: most commands draw no bar
        from rich.progress import (
            BarColumn,
            Progress,
            SpinnerColumn,
            TaskProgressColumn,
            TextColumn,
            TimeRemainingColumn,
        )

        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=16),
            TaskProgressColumn(),
            TimeRemainingColumn(compact=True),
            console=Console(stderr=True),
            transient=True,
            speed_estimate_period=3600,  # phases are weighed: the whole run tells more than its end
            disable=not sys.stderr.isatty(),  # rich takes FORCE_COLOR for a terminal
        )
        self._ends_by_time, self._rounds = False, 0
        self._task = self._progress.add_task(description, total=None)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def start(self, total: float, limit_s: float | None = None, rounds: int = 0) -> None:
        self._ends_by_time, self._rounds = limit_s is not None, rounds
        self._progress.reset(self._task, total=total if limit_s is None else round(limit_s))

    def case(self, case: Case, round_: int) -> None:
        self._progress.update(self._task, description=self.phase(case, round_))

    def phase(self, case: Case, round_: int) -> str:
        """Return ``round 2 of 3``, ``survey`` or ``diagnosis``."""
        if case.surveyed:
            return "survey"
        if self._rounds and round_ >= self._rounds:
            return "diagnosis"
        total = f" of {self._rounds}" if self._rounds and not self._ends_by_time else ""
        return f"round {round_ + 1}{total}"

    def step(self, work: float = 1) -> None:
        if self._ends_by_time:  # seconds are its steps
            passed_s = self._progress.tasks[self._task].elapsed or 0.0
            self._progress.update(self._task, completed=round(passed_s))
        else:
            self._progress.advance(self._task, work)
