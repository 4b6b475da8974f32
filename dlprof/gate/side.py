"""One side of a gate: its cases, its workers, its session file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dlprof.compare.match import Key, key
from dlprof.measuring.measuring import Measurement
from dlprof.plan.pairing import Case
from dlprof.runner.asker import Watcher
from dlprof.runner.rounds import Runner
from dlprof.session.model import Result, Session

TIMERS: tuple[str, ...] = ("host_time", "ready_time", "device_time")
"""What later rounds measure: what a case is was seen in the first."""


@dataclass(frozen=True)
class Side:
    """``numbers`` are those of its cases, by what makes them the same on the other side."""

    name: str
    measurement: Measurement
    runner: Runner
    numbers: dict[Key, int]

    def results(self) -> list[Result]:
        """All of its cases, also those that were not measured yet."""
        return list(self.measurement.results())

    def session(self) -> Session:
        self.measurement.rounds_done = self.runner.rounds_done
        header = self.measurement.header().model_dump(by_alias=True)
        return Session.model_validate({**header, "results": self.results()})

    def settled(self, case: int) -> bool:
        return self.measurement.journal.settled(case)


@contextmanager
def opened(
    name: str, measurement: Measurement, later_rounds: tuple[str, ...] = TIMERS
) -> Iterator[Side]:
    """A side to be measured; its session file is written when it is closed, whatever happens."""
    with measurement.kept() as runner:
        runner.asker.later_rounds = later_rounds
        numbers = {key(result.case): place for place, result in enumerate(measurement.results())}
        try:
            yield Side(name, measurement, runner, numbers)
        finally:
            runner.close()
            measurement.rounds_done = runner.rounds_done


class Named:
    """A watcher that says which side it is, and leaves the counting to the gate."""

    def __init__(self, name: str, watcher: Watcher) -> None:
        self.name = name
        self.watcher = watcher

    def start(self, total: int) -> None:
        """The gate counts rounds."""

    def case(self, case: Case, round_: int, stage: str) -> None:

        self.watcher.case(case, round_, f"{self.name}: {stage}")

    def step(self) -> None:
        """The gate counts rounds."""
