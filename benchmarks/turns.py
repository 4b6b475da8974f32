"""How far apart are two processes of equal code, by how they are measured?

Two fresh processes at a time measure the eleven views of ``gate_suite``: one process after the
other; in turns, each on a processor of its own; in turns on the same processor. No part of the
gate is used but its timed loop. Prints, for each, the standard deviation of the ratio of both.

    python benchmarks/turns.py [--pairs 20] [--samples 20]
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np
import outcome
from gate_suite import VIEWS, ready

APART, OWN, SAME = "one after the other", "in turns, two processors", "in turns, one processor"
WAYS = (APART, OWN, SAME)
LEAST_NS = 500_000
MAD = 1.4826
"""Of normal values the standard deviation is so many times the median absolute deviation."""


def main() -> int:
    if sys.argv[1:] == ["worker"]:
        serve()
        return 0
    parser = outcome.options(__doc__)
    parser.add_argument("--pairs", type=int, default=20, help="of processes, for each way (20)")
    parser.add_argument("--samples", type=int, default=20, help="of a process and view (20)")
    return outcome.report(measure, parser.parse_args())


@dataclass
class Worker:
    process: subprocess.Popen[str]

    def ask(self, *numbers: int) -> float:
        assert self.process.stdin is not None
        self.process.stdin.write(" ".join(map(str, numbers)) + "\n")
        self.process.stdin.flush()
        return self.hear()

    def hear(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())


@contextmanager
def pair() -> Iterator[tuple[Worker, Worker]]:
    """Two processes that import at once."""
    processes = [
        subprocess.Popen(
            [sys.executable, __file__, "worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
            text=True,
        )
        for _ in range(2)
    ]
    try:
        first, second = (Worker(process) for process in processes)
        yield first, second
    finally:
        for process in processes:
            process.kill()
            process.wait()


def measure(given: Any) -> outcome.Outcome:
    found: dict[str, list[list[float]]] = {way: [[] for _ in VIEWS] for way in WAYS}
    for number in range(given.pairs):
        for way in WAYS:
            with pair() as workers:
                loops = [max(both) for both in zip(*(one.hear() for one in workers), strict=True)]
                for view, calls in enumerate(loops):
                    ratio = log_ratio(workers, way, view, calls, given.samples)
                    found[way][view].append(ratio)
        outcome.tell(f"pair {number + 1} of {given.pairs}")
    return outcome.Outcome(
        title="Equal processes: how far apart?",
        columns=("view", *WAYS),
        rows=[
            (view.name, *(both_spreads(found[way][place]) for way in WAYS))
            for place, view in enumerate(VIEWS)
        ],
        caption=(
            f"Standard deviation of the ratio of two processes in percent, of {given.pairs} pairs; "
            "in brackets from\nthe median absolute deviation, without the outliers."
        ),
        targets=[],
        shortened=False,
        details={"ratios": found},
    )


def log_ratio(
    workers: tuple[Worker, Worker], way: str, view: int, calls: int, samples: int
) -> float:
    """Of one pair: the median ratio of neighbours, or of medians where there are none."""
    first, second = workers
    cpus = sorted(os.sched_getaffinity(0))
    mine, yours = (cpus[0], cpus[0]) if way == SAME else (cpus[0], cpus[-1])
    if way == APART:
        times = [[one.ask(view, calls, cpus[0]) for _ in range(samples)] for one in workers]
        return log(statistics.median(times[1]) / statistics.median(times[0]))
    pairs = [(first.ask(view, calls, mine), second.ask(view, calls, yours)) for _ in range(samples)]
    return statistics.median(log(after / before) for before, after in pairs)


def both_spreads(ratios: Sequence[float]) -> str:
    """Around 0: the code is equal."""
    found = np.array(ratios)
    spread = float(np.sqrt(np.mean(found**2)))
    return f"{100 * spread:.1f} ({100 * MAD * float(np.median(np.abs(found))):.1f})"


def serve() -> None:
    """The worker: one time in ns per call for each line of view, calls and processor."""
    from dlprof.worker import timer

    subjects = [ready(view) for view in VIEWS]
    loops = [timer.compile_loop(one.code, one.namespace) for one in subjects]
    off_ns = timer.loop_cost_ns()
    print(json.dumps([timer.calibrate(loop, LEAST_NS)[0] for loop in loops]), flush=True)
    for line in sys.stdin:
        view, calls, cpu = map(int, line.split())
        os.sched_setaffinity(0, {cpu})
        print(loops[view](calls) / calls - off_ns, flush=True)


if __name__ == "__main__":
    sys.exit(main())
