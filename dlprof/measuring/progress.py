"""The progress bar on stderr: what runs, how much is left and how long."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
)

from dlprof.plan.axes import shape_text
from dlprof.plan.pairing import Case

if TYPE_CHECKING:
    from typing_extensions import Self


class Bar:
    """A :class:`dlprof.runner.asker.Watcher` that draws; silent where stderr is no terminal."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=16),
            MofNCompleteColumn(),
            TimeRemainingColumn(compact=True),
            console=console,
            transient=True,
            disable=not sys.stderr.isatty(),  # rich takes FORCE_COLOR for a terminal
        )
        self._task = self._progress.add_task("starting", total=None)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def start(self, total: int) -> None:
        self._progress.update(self._task, total=total, completed=0)

    def case(self, case: Case, round_: int, stage: str) -> None:
        what = f"{case.path.name} {shape_text(case.shape)} {case.dtype}"
        self._progress.update(
            self._task, description=f"round {round_ + 1}: {what[:38]:38} {stage[:12]:12}"
        )

    def step(self) -> None:
        self._progress.advance(self._task)
