"""What a turn of the spin adds to each of the sixteen conversions, as a share of it.

    python benchmarks/gate_shares.py

prints them by name, in JSON. What a conversion takes is what it takes in a gate of equal code: in
processes with other imports before, ``x.numpy()`` took two thirds of it. What a turn takes is the
same everywhere: the fastest of many spins, some on each processor.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import timeit
from itertools import cycle
from pathlib import Path

from gate_suite import ROOT, SUITE, name_of, scenario
from spun_probe import DIGIT_BITS, LEAST

MANY = 2_000
CALLS = 100
SPINS = 300
PAUSE_S = 0.02
BUDGET_S = "120"
SESSIONS = ("base.json", "head.json")


def turn_shares() -> dict[str, float]:
    """Of each conversion, by name."""
    turn_ns = spin_ns(MANY) - spin_ns(0)
    return {name: turn_ns / MANY / time_ns for name, time_ns in times_ns().items()}


def spin_ns(turns: int) -> float:
    """The fastest of many spins."""
    number = (1 << DIGIT_BITS * (LEAST + turns)) - 1
    timer = timeit.Timer(number.bit_count)
    before = os.sched_getaffinity(0)
    fastest_s = float("inf")
    for cpu, _ in zip(cycle(before), range(SPINS), strict=False):
        os.sched_setaffinity(0, {cpu})
        time.sleep(PAUSE_S)
        fastest_s = min(fastest_s, timer.timeit(CALLS) / CALLS)
    os.sched_setaffinity(0, before)
    return 1e9 * fastest_s


def times_ns() -> dict[str, float]:
    """What each conversion takes in a gate, without a turn: its samples are longer than those of a
    process that is alone on its processor. A low one of the processes, since some are slow; what
    makes them slow makes the spin slow: where BASE took 1.2 to 1.6 times as long, 5 % of the low
    one arrived as 4.3 to 5.4 % in eight gates of 2026-11-23.
    """
    with tempfile.TemporaryDirectory(prefix="dlprof-gate-") as folder:
        file, kept = Path(folder, "spun.toml"), Path(folder, "sessions")
        file.write_text(scenario(), encoding="utf-8")
        command = [sys.executable, "-m", "dlprof", "gate", file, "--budget", BUDGET_S, "-o", kept]
        sides = ["--base-python", sys.executable, "--head-python", sys.executable]
        subprocess.run(
            [*command, *sides],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,  # it may well be unsure
        )
        sessions = [json.loads((kept / name).read_text(encoding="utf-8")) for name in SESSIONS]
    medians: dict[str, list[float]] = {one.name: [] for one in SUITE}
    for result in (one for session in sessions for one in session["results"]):
        processes = result["host_time"]["processes"]
        medians[name_of(result["case"])] += [statistics.median(p["samples_ns"]) for p in processes]
    return {name: statistics.quantiles(found, n=4)[0] for name, found in medians.items()}


def main() -> int:
    print(json.dumps(turn_shares(), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
