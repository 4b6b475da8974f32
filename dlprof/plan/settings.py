"""How to measure: rounds, limits and instruments, as they were asked for."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from dlprof.plan import options


@dataclass(frozen=True)
class Settings:
    """How to measure.

    ``sample_ns`` is what one timer spends on one case in one process. ``limit_s`` is the time
    limit of a case. ``budget_s`` stops further rounds. ``together`` serves all pairs from one
    worker, where importing would cost more than measuring. ``in_turns`` says that another side took
    its samples in turns with these, on the same processor. ``diagnose`` adds the round of
    :data:`DIAGNOSIS`, which makes arrays of up to ``largest_bytes``; without it ``alignment`` has
    at least that looked at. ``placements`` are of
    :data:`dlprof.plan.axes.PLACEMENTS`; ``convert`` is what the timers measure anyway.
    ``round_trips`` is how many trips there and back are made in a row, at the end of the run.
    ``setup`` is source text that runs after that of the frameworks, in each worker.
    """

    rounds: int = options.ROUNDS.default
    seed: int = options.SEED.default
    sample_ns: int = round(options.SAMPLE_MS.default * 1e6)
    limit_s: float = options.TIMEOUT.default
    budget_s: float | None = None
    together: bool = False
    in_turns: bool = False
    diagnose: bool = options.DIAGNOSE.default
    alignment: bool = True
    largest_bytes: int = 256 << 20
    placements: tuple[str, ...] = (options.PLACEMENTS.default,)
    round_trips: int = 0
    setup: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)
