"""Show the progress of a run: the current case, and how much is left."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from dlprof.runner.axes import shape_text
from dlprof.runner.pairing import Case

if TYPE_CHECKING:
    from typing_extensions import Self


class Watcher:
    """Receives the progress of a run, and shows nothing."""

    def start(self, total: int, limit_s: float | None = None) -> None:
        """Expect ``total`` steps, or with a limit of time as many as fit."""

    def case(self, case: Case, round_: int, stage: str) -> None: ...
    def step(self) -> None: ...


class Bar(Watcher):
    """Draws a bar on stderr if that is a terminal."""

    def __init__(self, description: str = "starting") -> None:
        from rich.console import Console  # imported late: most commands draw no bar
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeRemainingColumn,
        )

        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=16),
            MofNCompleteColumn(),
            TimeRemainingColumn(compact=True),
            console=Console(stderr=True),
            transient=True,
            disable=not sys.stderr.isatty(),  # rich takes FORCE_COLOR for a terminal
        )
        self._ends_by_time = False
        self._task = self._progress.add_task(description, total=None)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def start(self, total: int, limit_s: float | None = None) -> None:
        self._ends_by_time = limit_s is not None
        self._progress.reset(self._task, total=total if limit_s is None else round(limit_s))

    def case(self, case: Case, round_: int, stage: str) -> None:
        name = f"{case.code} {shape_text(case.shape)} {case.dtype}"
        question = stage.replace("_", " ")
        self._progress.update(
            self._task, description=f"round {round_ + 1}: {name[:38]:38} {question[:12]:12}"
        )

    def step(self) -> None:
        if self._ends_by_time:  # seconds are its steps
            passed_s = self._progress.tasks[self._task].elapsed or 0.0
            self._progress.update(self._task, completed=round(passed_s))
        else:
            self._progress.advance(self._task)
