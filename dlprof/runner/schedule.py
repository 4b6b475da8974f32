"""Spread the cases of a run over rounds, processes and lanes."""

from __future__ import annotations

import os
import random
import select
from collections.abc import Generator, Hashable, Sequence
from typing import Any, NamedTuple, TypeVar

from dlprof.runner.pairing import Case
from dlprof.runner.request import Settings
from dlprof.runner.worker_client import POLL_S, Outcome, WorkerClient

FEW_PATHS = 12
"""A pair with more paths gets less time for each, so that an answer does not take minutes."""
LEAST_ONCE_NS = 8_000_000
"""If there is a single process, which gives no interval."""
LEAST_SAMPLE_NS = 20_000_000
"""Twenty samples of a millisecond."""
MOST_LANES = 4
"""A case may be large, and each lane holds one."""
CASES_OF_LANE = 8
"""With fewer cases, another worker is not worth its import."""

SERIES = ("loop cost", "host time", "idle wait", "ready time")
"""Samples for which a worker takes turns, in order; see ``dlprof.worker.turns``."""


class Entry(NamedTuple):
    """A case and its number. ``before`` is its answer from a shared process, if it has one."""

    number: int
    case: Case
    before: Outcome | None = None

    @property
    def path(self) -> Hashable:
        """Return the same key for all cases of one path."""
        return self.case.pair, self.case.path, self.case.device


Group = list[Entry]
Item = TypeVar("Item")


class Stop(NamedTuple):
    """A stop before ``case`` begins, or with a ``series`` before one of its samples.

    ``calls`` is the number of calls of the sample.
    """

    case: int
    series: str = ""
    calls: int = 0


Round = Generator[Stop, int | None, None]
"""A round of one side of a gate. Between two stops it has the machine for itself. The number of
calls of the next sample may be sent into it."""

Lane = Generator[WorkerClient, Any, Any]
"""Requests to one worker after another. It yields the worker for which it waits."""


def page_offset(round_: int) -> int:
    """Return where in a page the results of a round begin: a multiple of 16 bytes.

    Four rounds in a row have the four places in a line of 64 bytes: copies depend on that.
    """
    return 16 * (round_ * 101 % 256)


def shared_sample_ns(settings: Settings, cases: Sequence[Case]) -> int:
    """Return the time of one timer for one case: less if a pair has over :data:`FEW_PATHS`."""
    codes: dict[tuple[str, str], set[str]] = {}
    for case in cases:
        codes.setdefault(case.pair, set()).add(case.path.code)
    most = max((len(paths) for paths in codes.values()), default=1)
    shared = settings.sample_ns * FEW_PATHS // max(most, FEW_PATHS)
    least = LEAST_SAMPLE_NS if settings.rounds > 1 else LEAST_ONCE_NS
    return max(shared, min(settings.sample_ns, least))


def shuffled(groups: list[Group], round_: int) -> list[Group]:
    """Return the groups, and the cases of each, in the random order of a round."""
    chance = random.Random(round_)  # noqa: S311 - not a secret
    chance.shuffle(groups)
    return [shuffle(group, chance, round_) for group in groups]


def shuffle(items: list[Item], chance: random.Random, round_: int) -> list[Item]:
    """Shuffle. Another item is first in each round, since its first call is measured."""
    by_turns = list(items)
    random.Random("first").shuffle(by_turns)  # noqa: S311 - not a secret
    first = by_turns[round_ % len(by_turns)]
    chance.shuffle(items)
    items.sort(key=lambda item: item is not first)
    return items


def lanes(cases: int) -> int:
    """Return the number of lanes for these many cases: at most one for each processor."""
    return max(1, min(cases // CASES_OF_LANE, processors(), MOST_LANES))


def processors() -> int:
    return len(os.sched_getaffinity(0))


def finish(all_lanes: Sequence[Lane]) -> None:
    """Advance all lanes to their ends. If one fails, or the user stops, close all."""
    active = list(all_lanes)
    try:
        while active:
            waiting = {lane: worker for lane in active if (worker := next(lane, None)) is not None}
            ready = select.poll()
            for worker in waiting.values():
                for pipe in worker.pipes:
                    ready.register(pipe, select.POLLIN)
            ready.poll(POLL_S * 1000)  # until one of them writes, or limits are to be checked
            active = list(waiting)
    finally:
        for lane in all_lanes:
            lane.close()
