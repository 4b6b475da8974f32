"""Turns: two processes take their samples of a case alternately, on the same processor.

On a virtual machine each processor is slow for stretches of tens of ms to seconds, and not all of
them at once. Samples that are taken one right after the other on one processor meet the same
stretch, so that their ratio tells the two apart. A process asks its parent before each sample.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dlprof.worker import timer

if TYPE_CHECKING:
    from dlprof.worker.channel import Answer, Channel

TURN_NS = 500_000
"""A sample lasts at least this long: the clock is under 0.03 % of it, and stretches are longer."""
FEW_CALLS = 10
FEW_CALLS_NS = 2_000_000
"""A sample of fewer calls lasts longer: copies of 4 MiB, some four in half a millisecond, meet what
the other process left in the caches. Ratios of equal processes then had a standard deviation of 10
to 30 %, and of 2.6 to 3.3 % in samples of 2 ms."""
MOST_TURNS = 80
LEAST_TURNS = 20
OVER = 4
"""So many of long samples, also where they take up to this many times the budget. Ratios of
neighbours, of a conversion of 31 us, had a standard deviation of 7 % within a round; and 9 of 49
rounds had 5 to 9 samples, since its first calls were slow (docs/results/gate-noise.md)."""
NOTABLE = 0.2
"""Other threads have a part in a call if they take so many times as long as the one that calls."""
WARM_SHARE = 4
"""Before a sample this share of its calls (one in so many) is made unmeasured: what the caches of
the processor hold is the other process's. With one in 3 equal processes differed less than with one
in 16 in 10 of 15 conversions, by a fifth in the median (docs/results/gate-noise.md)."""


@dataclass(frozen=True)
class Turns:
    """Those of a request; ``cpu`` is the processor for the samples, None for any."""

    channel: Channel
    identity: int
    cpu: int | None

    def wait(self, name: str, calls: int) -> int:
        """Until the parent gives the turn for a sample of what ``name`` says; returns of how many
        calls it is, which the parent may raise.
        """
        return max(calls, self.channel.turn(self.identity, name, calls) or calls)

    @contextmanager
    def pinned(self) -> Iterator[None]:
        """Keep this thread on the processor, where that can be had."""
        before = _allowed()
        if self.cpu not in before or not _moved({self.cpu}):
            yield
            return
        try:
            yield
        finally:
            _moved(before)


@dataclass(frozen=True)
class Series:
    """Samples of one statement, which the other process takes too; both know it by ``name``."""

    turns: Turns
    name: str

    def wait(self, calls: int = 1) -> int:
        return self.turns.wait(self.name, calls)

    def timing(
        self, loop: timer.Loop, budget_ns: int, off_ns: float, backlog: timer.Backlog, least_ns: int
    ) -> timer.Timing:
        """As :func:`dlprof.worker.timer.sample` does; samples stay in the order of the turns.

        Nothing is taken again: that would put the two out of step, and what disturbs one pair is
        nothing beside the others.
        """
        loops, elapsed = timer.calibrate(loop, min(least_ns, TURN_NS), backlog)
        if loops < FEW_CALLS:
            loops, elapsed = timer.calibrate(loop, FEW_CALLS_NS, backlog)
        # Pinned this late: threads that a framework starts at its first calls would inherit it.
        several = _by_several_threads(loop, loops)
        backlog.drain()  # else it went on in the turn of the other process
        with nullcontext() if several else self.turns.pinned():
            wanted = min(self.wait(loops), max(loops, backlog.most_loops))
            loops, elapsed = wanted, elapsed * wanted // loops
            were_others_there = timer.watch_others()
            taken = [self._one(loop, loops, backlog)]
            for _ in range(_count(budget_ns, elapsed) - 1):
                self.wait(loops)
                taken.append(self._one(loop, loops, backlog))
        foreign = were_others_there()
        return timer.timing_of(taken, loops, loops + backlog.calls, off_ns, foreign)

    @staticmethod
    def _one(loop: timer.Loop, loops: int, backlog: timer.Backlog) -> timer.Taken:
        if loops >= WARM_SHARE:
            loop(loops // WARM_SHARE)
            backlog.drain()
        return timer.take(lambda: loop(loops), backlog.drain)


def _count(budget_ns: int, sample_ns: int) -> int:
    """How many samples."""
    fitting = budget_ns // max(sample_ns, 1)
    return max(timer.MIN_SAMPLES, min(MOST_TURNS, fitting), min(LEAST_TURNS, OVER * fitting))


def turns_of(request: dict[str, Any], answer: Answer) -> Turns | None:
    """Those that a request asks for; None where it does not."""
    asked = request.get("turns")
    return None if asked is None else Turns(answer.channel, answer.identity, asked["cpu"])


def series_of(turns: Turns | None, name: str) -> Series | None:
    return None if turns is None else Series(turns, name)


def _by_several_threads(loop: timer.Loop, loops: int) -> bool:
    """Whether other threads of this process have a notable part in the calls.

    Of two that share the work one may be put on the processor that this one is kept on: a copy of
    4 MiB by PyTorch then took 7.4 ms, and 75 us with a processor for each.
    """
    own, all_ = time.thread_time_ns(), time.process_time_ns()
    loop(loops)
    own, all_ = time.thread_time_ns() - own, time.process_time_ns() - all_
    return all_ - own > max(NOTABLE * own, NOTABLE * TURN_NS)


def _moved(cpus: set[int]) -> bool:
    """Whether this thread is on these processors from now on; some systems forbid that."""
    try:
        os.sched_setaffinity(0, cpus)
    except OSError:
        return False
    return True


def _allowed() -> set[int]:
    """The processors of this thread; empty where nobody can say."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
