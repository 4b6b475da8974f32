"""How to measure: rounds, limits and instruments, as they were asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dlprof.plan import options
from dlprof.plan.pairing import Case

FEW_PATHS = 12
"""A pair with more paths gets less time for each, so that an answer does not take minutes."""
LEAST_ONCE_NS = 8_000_000
"""Of a single process, of which no interval is told."""
LEAST_SAMPLE_NS = 20_000_000
"""Twenty samples of a millisecond."""
OWN_PROCESS_BYTES = 1 << 30
"""Such a case has a process of its own: memory that another one's framework keeps would be missing.
The import is little beside making the array."""


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
    ``first_calls`` starts one more
    process for each case that was first in none.
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
    first_calls: bool = False
    setup: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def sample_ns_for(settings: Settings, cases: Sequence[Case]) -> int:
    """What one timer spends on one case, less where a pair has more than :data:`FEW_PATHS`."""
    codes: dict[tuple[str, str], set[str]] = {}
    for case in cases:
        codes.setdefault(case.pair, set()).add(case.path.code)
    most = max((len(paths) for paths in codes.values()), default=1)
    shared = settings.sample_ns * FEW_PATHS // max(most, FEW_PATHS)
    least = LEAST_SAMPLE_NS if settings.rounds > 1 else LEAST_ONCE_NS
    return max(shared, min(settings.sample_ns, least))


def process_of(index: int, case: Case, settings: Settings) -> tuple[Any, ...]:
    """What cases that share a process of a round have in common."""
    pair = None if settings.together else case.pair
    alone = index if case.size_bytes >= OWN_PROCESS_BYTES else None
    return pair, alone
