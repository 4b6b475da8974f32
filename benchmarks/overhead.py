"""Measure dlprof's timer on an empty statement.

Proves that a statement that does nothing measures 0 +/- 5 ns: the cost of the loop is really
subtracted. The workers' timer runs unchanged in fresh processes.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from argparse import Namespace

import outcome

REACH_NS = 5.0
SHARE = 0.99
PROCESSES = 40
REPEATS = 10
BUDGET_NS = 60_000_000
CHILD = f"""
import json
from dlprof.worker import timer
loop, off_ns = timer.compile_loop("pass", {{}}), timer.loop_cost_ns()
found = [timer.sample(loop, {BUDGET_NS}, off_ns).median_ns for _ in range({REPEATS})]
print(json.dumps(found))
"""


def measure(given: Namespace) -> outcome.Outcome:
    processes = given.processes or (5 if given.short else PROCESSES)
    found = [_child() for _ in range(processes)]
    every = [value for one in found for value in one]
    within = sum(abs(value) <= REACH_NS for value in every) / len(every)
    return outcome.Outcome(
        title="Overhead: what the timer gives for nothing",
        columns=("time of 'pass'", "median ns", "1st percentile", "99th percentile", "worst"),
        rows=[
            _row("measurements", every),
            _row("processes", [statistics.median(one) for one in found]),
        ],
        caption=f"{processes} fresh processes, {REPEATS} measurements in each.",
        targets=[
            outcome.Target(
                f"an empty statement measures 0 +/- {REACH_NS:g} ns in {SHARE:.0%} of measurements",
                f"median {statistics.median(every):+.2f} ns, {within:.1%} within",
                within >= SHARE,
            )
        ],
        shortened=processes < PROCESSES,
        details={"processes": found},
    )


def _child() -> list[float]:
    command = [sys.executable, "-c", CHILD]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: list[float] = json.loads(done.stdout)
    return found


def _row(what: str, values_ns: list[float]) -> tuple[str, ...]:
    cuts = statistics.quantiles(values_ns, n=100, method="inclusive")
    numbers = (statistics.median(values_ns), cuts[0], cuts[-1], max(values_ns, key=abs))
    return (what, *(f"{value:+.2f}" for value in numbers))


if __name__ == "__main__":
    parser = outcome.options(__doc__)
    parser.add_argument("--processes", type=int, help=f"default: {PROCESSES}")
    sys.exit(outcome.report(measure, parser.parse_args()))
