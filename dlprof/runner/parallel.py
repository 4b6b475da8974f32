"""Several workers at once, for what takes no times: each case waits for its worker alone."""

from __future__ import annotations

import os
import select
from collections.abc import Collection, Generator, Sequence

from dlprof.runner.worker_client import POLL_S, WorkerClient

MOST_LANES = 4
"""A case may be large, and each lane holds one."""
CASES_OF_LANE = 8
"""For fewer, another worker's import would take longer than they do."""

Lane = Generator[WorkerClient, None, None]
"""What one worker after another is asked; it yields the one that it waits for."""


def lanes(cases: int) -> int:
    """In how many lanes to ask for so many cases: at most one for each processor."""
    return max(1, min(cases // CASES_OF_LANE, processors(), MOST_LANES))


def processors() -> int:
    return len(os.sched_getaffinity(0))


def finish(all_lanes: Sequence[Lane]) -> None:
    """Advance all lanes to their ends. If one fails, or the user stops, all are closed."""
    left = list(all_lanes)
    try:
        while left:
            waiting = {lane: worker for lane in left if (worker := next(lane, None)) is not None}
            _wait(waiting.values())
            left = list(waiting)
    finally:
        for lane in all_lanes:
            lane.close()


def _wait(workers: Collection[WorkerClient]) -> None:
    """Until one of them says something, or limits are to be looked at."""
    said = select.poll()
    for worker in workers:
        for pipe in worker.pipes:
            said.register(pipe, select.POLLIN)
    said.poll(POLL_S * 1000)
