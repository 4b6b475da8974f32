"""One conversion under dlprof and under pyperf: the same array, setup and statement for both."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rigorous import Rigorous

from dlprof.api import Silent
from dlprof.plan import pairing
from dlprof.plan.catalog import Catalog
from dlprof.plan.pairing import Axes, Case
from dlprof.plan.settings import Settings
from dlprof.probes import BUILTIN
from dlprof.probes.base import ArraySpec
from dlprof.runner.rounds import Runner
from dlprof.runner.standby import Interpreter
from dlprof.session.journal import Journal
from dlprof.session.merge import merge
from dlprof.session.model import TimeMeasure


@dataclass(frozen=True)
class Way:
    """A path by its code, and the array that is converted (float32, on the CPU)."""

    producer: str
    consumer: str
    code: str
    shape: tuple[int, ...]
    layout: str = "C"


@dataclass
class Duel:
    """``answers`` are dlprof's, one for each round."""

    case: Case
    pyperf: Rigorous
    answers: list[tuple[int, dict[str, Any]]] = field(default_factory=list)

    def host_time(self, rounds: Sequence[int] | None = None) -> TimeMeasure:
        """What dlprof makes of all its rounds, or of some of them."""
        chosen = [pair for pair in self.answers if rounds is None or pair[0] in rounds]
        found = merge(self.case.record(), chosen, len(chosen))
        if found.host_time is None or len(found.host_time.processes) < len(chosen):
            why = found.reason or "; ".join(found.notes)
            raise SystemExit(f"{self.case.path.code}: a round was lost: {found.status}, {why}")
        return found.host_time

    def dlprof_medians_ns(self) -> list[float]:
        """One for each process."""
        return [statistics.median(process.samples_ns) for process in self.host_time().processes]

    def pyperf_medians_ns(self) -> list[float]:
        """One for each process, the cost of the loop included."""
        return [statistics.median(values) for values in self.pyperf.values_ns]


def duel(catalog: Catalog, way: Way) -> Duel:
    """Nothing measured yet."""
    pair = catalog.installed(way.producer), catalog.installed(way.consumer)
    axes = Axes(shapes=(way.shape,), layouts=(way.layout,), device="cpu")
    (case,) = (case for case in pairing.cases([pair], catalog, axes) if case.path.code == way.code)
    probes = {probe.name: probe() for probe in BUILTIN}
    producer, consumer = probes[way.producer], probes[way.consumer]
    (door,) = (door for door in consumer.imports if door.name == case.path.import_.name)
    create = producer.create(ArraySpec(way.shape, case.dtype, way.layout, "cpu"))
    setup = (producer.setup, consumer.setup, door.setup, create)
    return Duel(case, Rigorous("\n".join(text for text in setup if text), way.code))


def dlprof_round(duels: list[Duel], journal: Journal, number: int, last: bool) -> float:
    """One more round in fresh workers, as ``dlprof run`` makes it; its seconds, imports included.

    ``journal`` holds the rounds before it, which are not made again. What dlprof looks for once in
    a run, after its rounds, comes with the ``last`` one.
    """
    begun = time.monotonic()
    frameworks = [info for one in duels for info in (one.case.producer, one.case.consumer)]
    variables = {name: value for info in frameworks for name, value in info.variables.items()}
    cases = [one.case for one in duels]
    settings = Settings(rounds=number + 1, diagnose=last)
    Runner(Interpreter(sys.executable, variables), cases, settings, journal, Silent()).run()
    for index, one in enumerate(duels):
        one.answers = [pair for pair in journal.answers(index) if pair[0] <= number]
    return time.monotonic() - begun
