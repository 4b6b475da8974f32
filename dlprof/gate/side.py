"""One side of a gate: its cases, its workers, and its session file."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from dlprof.compare.matching import Key, key
from dlprof.measuring.measure import running
from dlprof.plan.pairing import Case
from dlprof.plan.plan import plan
from dlprof.plan.request import Settings
from dlprof.plan.schedule import OWN_PROCESS_BYTES, sample_ns_for
from dlprof.runner.measurement import Measurement
from dlprof.runner.progress import Watcher
from dlprof.runner.rounds import Runner
from dlprof.scenario.request import Sweep
from dlprof.session.model import CaseRecord, Result, Session

TIMERS: tuple[str, ...] = ("host_time", "ready_time", "device_time")
"""What later rounds measure: what a case is was seen in the first."""


def cases_of(sweep: Sweep) -> list[CaseRecord]:
    """What a sweep measures. Raises :class:`~dlprof.errors.Unmeasured` if that is nothing."""
    return [CaseRecord.model_validate(case.record()) for case in _planned(sweep)]


def settings_of(sweep: Sweep, rounds: int) -> Settings:
    """How a gate of so many rounds measures a sweep, as its session will say."""
    settings = replace(sweep.request.settings, rounds=rounds)
    return replace(settings, sample_ns=sample_ns_for(settings, _planned(sweep)))


def has_large_arrays(sweep: Sweep) -> bool:
    """Whether some cases take no turns, since two of their arrays may not fit into memory."""
    return any(case.size_bytes >= OWN_PROCESS_BYTES for case in _planned(sweep))


def _planned(sweep: Sweep) -> tuple[Case, ...]:
    return tuple(plan(sweep.request, sweep.catalog).cases)


@dataclass(frozen=True)
class Side:
    """``numbers`` are those of its cases, by what makes them the same on the other side."""

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

    def is_settled(self, name: Key) -> bool:
        """Whether the case was refused, or crashed: no other round asks for it."""
        return self.measurement.journal.settled(self.numbers[name])

    def is_large(self, number: int) -> bool:
        return self.runner.cases[number].size_bytes >= OWN_PROCESS_BYTES

    def diagnose(self, names: Collection[Key]) -> None:
        numbers = {self.numbers[name] for name in names if name in self.numbers}
        if numbers:
            self.runner.diagnose(numbers)


@contextmanager
def opened(measurement: Measurement, later_rounds: tuple[str, ...] = TIMERS) -> Iterator[Side]:
    """A side to be measured; its session file is written when it is closed, whatever happens."""
    with running(measurement) as runner:
        runner.measure_later(later_rounds)
        numbers = {key(result.case): place for place, result in enumerate(measurement.results())}
        try:
            yield Side(measurement, runner, numbers)
        finally:
            runner.close()
            measurement.rounds_done = runner.rounds_done


@dataclass(frozen=True)
class SideWatcher:
    """Says of each case which side it is of; the gate counts the rounds itself."""

    name: str
    watcher: Watcher

    def start(self, total: int) -> None: ...

    def case(self, case: Case, round_: int, stage: str) -> None:
        self.watcher.case(case, round_, f"{self.name}: {stage}")

    def step(self) -> None: ...
