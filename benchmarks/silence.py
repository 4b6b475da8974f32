"""Measuring without a progress bar."""

from __future__ import annotations

from dlprof.plan import Case


class Silent:
    """A watcher that says nothing."""

    def start(self, total: int) -> None: ...
    def case(self, case: Case, round_: int, stage: str) -> None: ...
    def step(self) -> None: ...
