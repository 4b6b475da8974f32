"""What a turn of the spin adds to each of the sixteen conversions, as a share of it.

    python benchmarks/gate_shares.py

prints them as one process sees them, by name, in JSON: the median of several passes on one
processor, spin and conversion in turns, so that a processor that is slow for a while is slow for
both. Processes differ, some of them by a third: whoever plants a slowdown takes the median of
several.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import timeit
from dataclasses import dataclass

from gate_suite import SUITE, Conversion, function
from gate_tools import Planted
from spun_probe import LOOP, VARIABLE

MANY = 10_000
LEAST_S = 0.001
NEIGHBOURS = 30
PASSES = 3
PROCESSES = 7


def turn_shares() -> dict[str, float]:
    """Of each conversion, by name: the median of fresh processes."""
    found = [one_process() for _ in range(PROCESSES)]
    return {name: statistics.median(one[name] for one in found) for name in found[0]}


def one_process() -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, __file__],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
        text=True,
    )
    shares: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return shares


@dataclass(frozen=True)
class Doubled:
    """A conversion, plain and with as many turns of the spin as about double its time."""

    plain: timeit.Timer
    slow: timeit.Timer
    turns: int
    loops: int

    @classmethod
    def of(cls, conversion: Conversion) -> Doubled:
        plain = timeit.Timer(function(conversion))
        loops = 1
        while plain.timeit(loops) < LEAST_S:
            loops *= 2
        spin_s = timeit.timeit(LOOP.format(turns=MANY), "from itertools import repeat", number=1)
        turns = math.ceil(plain.timeit(loops) / loops / spin_s * MANY)
        os.environ.update(Planted({conversion: turns}).variables(head=True))
        slow = timeit.Timer(function(conversion))
        del os.environ[VARIABLE]
        return cls(plain, slow, turns, loops)

    def share(self) -> float:
        """Of one turn: the median of neighbours."""
        pairs = range(NEIGHBOURS)
        ratios = [self.slow.timeit(self.loops) / self.plain.timeit(self.loops) for _ in pairs]
        return (statistics.median(ratios) - 1) / self.turns


def main() -> int:
    doubled = {one.name: Doubled.of(one) for one in SUITE}
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    passes = [{name: one.share() for name, one in doubled.items()} for _ in range(PASSES)]
    print(json.dumps({name: statistics.median(one[name] for one in passes) for name in doubled}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
