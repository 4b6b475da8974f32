"""Keep what came of a case: in the journal, whole, or what there was when the user had enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from dlprof.runner.asker import Watcher
from dlprof.runner.interpreter import Outcome, Worker
from dlprof.runner.outcomes import interrupted, interrupted_diagnosis, status_of
from dlprof.session.interrupts import uninterrupted
from dlprof.session.journal import Journal


class Keeper:
    """Writes answers into a journal. ``on_answer`` is called after each case."""

    def __init__(
        self, journal: Journal, watcher: Watcher, on_answer: Callable[[], None] = lambda: None
    ) -> None:
        self.journal = journal
        self.watcher = watcher
        self.on_answer = on_answer

    def keep(self, index: int, round_: int, outcome: Outcome) -> None:
        """Record it, and say that a case is over."""
        self.record(index, round_, outcome)
        self.watcher.step()
        self.on_answer()

    def record(self, index: int, round_: int, outcome: Outcome) -> None:
        self.journal.add(
            index,
            round_,
            {
                "status": status_of(outcome),
                "reason": outcome.reason,
                "parts": outcome.parts,
                "failures": outcome.failures,
                "output": outcome.output,
            },
        )

    @contextmanager
    def if_stopped(self, index: int, round_: int, worker: Worker) -> Iterator[None]:
        """Keep what had come of a case where the user does not wait for the rest of it."""
        with self._last(index, round_, lambda: interrupted(worker.heard(), f"round {round_ + 1}")):
            yield

    @contextmanager
    def if_diagnosis_stopped(
        self, index: int, round_: int, worker: Worker, before: Outcome, asked: tuple[str, ...]
    ) -> Iterator[None]:
        """The same of a diagnosis that is to look at ``asked``, with what it had found before."""
        with self._last(
            index, round_, lambda: interrupted_diagnosis(worker.heard(), before, asked)
        ):
            yield

    @contextmanager
    def if_alone_stopped(self, index: int, round_: int, broken: Outcome) -> Iterator[None]:
        """The same of a case that is tried again alone: what it had said beside others."""

        def said() -> Outcome:
            kept = interrupted(broken, f"round {round_ + 1}")
            kept.parts["in_company"] = company(broken)
            return kept

        with self._last(index, round_, said):
            yield

    @contextmanager
    def _last(self, index: int, round_: int, heard: Callable[[], Outcome]) -> Iterator[None]:
        try:
            yield
        except (KeyboardInterrupt, GeneratorExit):  # the latter where the other round was stopped
            with uninterrupted():
                kept = heard()
                if kept.parts:
                    self.record(index, round_, kept)
            raise


def company(broken: Outcome) -> dict[str, Any]:
    """What became of a case beside others."""
    return {"status": status_of(broken), "reason": broken.reason or broken.status}
