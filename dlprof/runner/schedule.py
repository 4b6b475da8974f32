"""How the cases of a run are spread over rounds and processes, and what each round asks for."""

from __future__ import annotations

import random
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from dlprof.runner.pairing import Case
from dlprof.runner.request import Settings

EVERY_ROUND = (
    "settings",
    "first_call",
    "ownership",
    "host_time",
    "ready_time",
    "phases",
    "device_time",
    "copy_cost",
)
FIRST_ROUND = (*EVERY_ROUND, "recipe", "values", "handshake", "fresh_source")

UNTIMED = ("settings", "first_call", "ownership", "values", "handshake", "recipe")
"""What is left of a round if nothing is timed. Its rounds ask all of it, and agree or do not."""

IN_LOOPS = ("placement",)
"""In every round as well, where another placement than ``convert`` is asked for."""

STEP = ("host_time", "ready_time", "versus", "shape_change", "values", "reuse")
FIRST_STEP = (*STEP, "allocations")
"""Of steps of inference, which convert nothing. Counting takes long, and gives the same again."""

ALIGNMENT = ("alignment",)
"""Of the diagnosis what is asked where the rest is not wanted: without it a verdict tells only of
the addresses that the processes happened to have. It took 2 to 13 ms for each path on two
processors, quiet and loaded."""

TRACE = ("trace",)

SURVEY = ("recipe", "settings", "values", "ownership", "refusal")
"""Of the survey: what one conversion shows."""
SURVEY_ONCE = ("recipe", "values", "ownership")

FEW_PATHS = 12
"""A pair with more paths gets less time for each, so that an answer does not take minutes."""
LEAST_ONCE_NS = 8_000_000
"""For a single process, which gives no interval."""
LEAST_SAMPLE_NS = 20_000_000
"""Twenty samples of a millisecond."""
OWN_PROCESS_BYTES = 1 << 30
"""Such a case has a process of its own: memory that another one's framework keeps would be missing.
The import is little beside making the array."""

SERIES = ("loop cost", "host time", "idle wait", "ready time")
"""What a worker takes turns for, in its order; see ``dlprof.worker.turns``."""

Group = list[tuple[int, Case]]
Item = TypeVar("Item")


class Stop(NamedTuple):
    """Before ``case`` is asked for; or, with a ``series``, before one of its samples.

    ``calls`` is of how many calls it is to be.
    """

    case: int
    series: str = ""
    calls: int = 0


Round = Generator[Stop, int | None, None]
"""A round of one side: each time it is resumed it has the machine for itself until it stops. It may
be sent how many calls the sample is to be of."""


def offset_of(round_: int) -> int:
    """Where in a page the results of a round begin: another multiple of 16 bytes in each of 256.

    Any four in a row have the four places in a line of 64 bytes, since copies depend on that most.
    """
    return 16 * (round_ * 101 % 256)


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


def grouped(entries: Iterable[tuple[int, Case]], settings: Settings) -> list[Group]:
    """Those of one process each, in the order in which they come."""
    groups: dict[Any, Group] = {}
    for index, case in entries:
        groups.setdefault(process_of(index, case, settings), []).append((index, case))
    return list(groups.values())


def shuffled(groups: list[Group], seed: int, round_: int) -> Iterator[Group]:
    """The groups, and the cases of each, in the random order of a round."""
    chance = random.Random(f"{seed}:{round_}")  # noqa: S311 - not a secret
    chance.shuffle(groups)
    for group in groups:
        yield shuffle(group, chance, seed, round_)


def shuffle(items: list[Item], chance: random.Random, seed: int, round_: int) -> list[Item]:
    """In random order; but the first, whose first call is measured, is another in each round."""
    by_turns = list(items)
    random.Random(f"{seed}:first").shuffle(by_turns)  # noqa: S311 - not a secret
    first = by_turns[round_ % len(by_turns)]
    chance.shuffle(items)
    items.sort(key=lambda item: item is not first)
    return items
