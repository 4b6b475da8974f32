"""What does dlprof's timer give for nothing?

Proves that an empty statement measures 0 +/- 5 ns: the cost of the loop is really taken off. The
instruments of the workers are used as they are, in fresh processes. The ready time is measured for
a conversion that converts nothing and a wait that waits for nothing: what is left of it is the cost
of keeping the result in a name.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from argparse import Namespace
from typing import Any

import outcome

REACH_NS = 5.0
SHARE = 0.99
BUDGET_NS = 60_000_000

# Runs in a process of its own. A subject holds more than a timer looks at.
CHILD = """\
import json, sys, types
from dlprof.worker.instruments import times
from dlprof.worker import timer
repeats, budget = int(sys.argv[1]), int(sys.argv[2])
empty = types.SimpleNamespace(code="pass", namespace={}, wait="")
idle = types.SimpleNamespace(code="x", wait="{x}", namespace={"x": 0}, convert=lambda: 0,
    wait_for=lambda _: None, consumer=None)
found = {"empty": [], "ready": [], "loop": timer.loop_cost_ns(), "clock": timer.clock_cost_ns()}
for _ in range(repeats):
    for name, answer in (
        ("empty", host_time.measure(empty, budget)),
        ("ready", ready_time.measure(idle, budget)),
    ):
        samples = sorted(answer["samples_ns"])
        found[name].append(samples[len(samples) // 2])
print(json.dumps(found))
"""


def measure(given: Namespace) -> outcome.Outcome:
    processes = given.processes or (5 if given.short else 40)
    repeats = given.repeats or (4 if given.short else 10)
    found = []
    for number in range(processes):
        outcome.tell(f"process {number + 1} of {processes}")
        found.append(_child(repeats))
    empty = [value for one in found for value in one["empty"]]
    ready = [value for one in found for value in one["ready"]]
    within = sum(abs(value) <= REACH_NS for value in empty) / len(empty)
    return outcome.Outcome(
        title="Overhead: what the timer gives for nothing",
        columns=("measured", "median ns", "1st percentile", "99th percentile", "worst"),
        rows=[
            _row("host time of 'pass'", empty),
            _row("ready time of nothing, nothing to wait for", ready),
            _row("a turn of the empty loop (taken off)", [one["loop"] for one in found]),
            _row("two reads of the clock, once a sample", [one["clock"] for one in found]),
        ],
        caption=f"{processes} fresh processes, {repeats} measurements of each kind in each.",
        targets=[
            outcome.Target(
                f"an empty statement measures 0 +/- {REACH_NS:g} ns in {SHARE:.0%} of measurements",
                f"median {statistics.median(empty):+.2f} ns, {within:.1%} within",
                within >= SHARE,
            )
        ],
        shortened=processes < 40 or repeats < 10,
        details={"processes": found},
    )


def _child(repeats: int) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(repeats), str(BUDGET_NS)],
        check=True,
        capture_output=True,
        text=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _row(what: str, values_ns: list[float]) -> tuple[str, ...]:
    cuts = statistics.quantiles(values_ns, n=100, method="inclusive")
    worst = max(values_ns, key=abs)
    numbers = (statistics.median(values_ns), cuts[0], cuts[-1], worst)
    return (what, *(f"{value:+.2f}" for value in numbers))


if __name__ == "__main__":
    parser = outcome.options(__doc__)
    parser.add_argument("--processes", type=int, help="default: 40")
    parser.add_argument("--repeats", type=int, help="measurements in each process; default: 10")
    sys.exit(outcome.report(measure, parser.parse_args()))
