"""Are planted faults found, run after run, and innocent ways never blamed?

Proves that every planted fault is found by its rule, and that no control is blamed with a warning
or an error, in twenty runs of ``dlprof selftest`` in a row, with one core loaded meanwhile.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from argparse import Namespace
from pathlib import Path

import outcome

from dlprof.api import Silent
from dlprof.measuring.selftest import Outcome, run

RUNS = 20


def measure(given: Namespace) -> outcome.Outcome:
    runs = given.runs or (2 if given.short else RUNS)
    load = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    seen: list[Outcome] = []
    try:
        for number in range(runs):
            outcome.tell(f"run {number + 1} of {runs}")
            with tempfile.TemporaryDirectory() as folder:
                seen += run(sys.executable, Path(folder), Silent()).outcomes
    finally:
        load.kill()
        load.wait()
    missed = sum(one.missed for one in seen)
    blamed = sum(bool(one.false_alarms) for one in seen)
    return outcome.Outcome(
        title="Selftest: planted faults and controls on a loaded machine",
        columns=("planted", "rule", "runs", "found", "false alarms"),
        rows=[_row(name, seen) for name in dict.fromkeys(one.plant.name for one in seen)],
        caption=f"{runs} runs in a row, one core kept busy by another program.",
        targets=[
            outcome.Target("every planted fault is found", f"{missed} missed", missed == 0),
            outcome.Target("no control is blamed", f"{blamed} blamed", blamed == 0),
        ],
        shortened=runs < RUNS,
    )


def _row(name: str, seen: list[Outcome]) -> tuple[str, ...]:
    mine = [one for one in seen if one.plant.name == name]
    rule = mine[0].plant.rule
    found = sum(not one.missed for one in mine)
    return (
        name,
        rule or "control",
        str(len(mine)),
        str(found) if rule else "",
        "" if rule else str(sum(bool(one.false_alarms) for one in mine)),
    )


if __name__ == "__main__":
    parser = outcome.options(__doc__)
    parser.add_argument("--runs", type=int, help=f"runs of the selftest; {RUNS} if left out")
    sys.exit(outcome.report(measure, parser.parse_args()))
