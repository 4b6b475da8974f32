"""Count planted faults that are found and controls that are blamed, run after run.

Proves that ``dlprof selftest`` finds every planted fault by its rule, and blames no control with a
warning or an error, in twenty runs in a row, with one core loaded meanwhile.
"""

from __future__ import annotations

import re
import subprocess
import sys
from argparse import Namespace

import outcome

RUNS = 20


def told(text: str) -> str:
    """Return the number of found faults and blamed controls, and each plant that is not ``ok``."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    counts = [line for line in lines if line.startswith(("faults found", "false alarms"))]
    rows = [line for line in lines if re.search(r"  (control|DLP\d{3})  ", line)]
    return "; ".join(
        " ".join(line.split()) for line in (*counts, *(row for row in rows if row[-2:] != "ok"))
    )


def measure(given: Namespace) -> outcome.Outcome:
    runs = given.runs or (2 if given.short else RUNS)
    load = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    rows, failed = [], 0
    try:
        for number in range(runs):
            outcome.tell(f"run {number + 1} of {runs}")
            command = [sys.executable, "-m", "dlprof", "selftest", "--device", "cpu"]
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            failed += done.returncode != 0
            rows.append((str(number + 1), str(done.returncode), told(done.stdout)))
    finally:
        load.kill()
        load.wait()
    return outcome.Outcome(
        title="Selftest: planted faults and controls on a loaded machine",
        columns=("run", "exit code", "result"),
        rows=rows,
        caption=f"{runs} runs in a row, one core kept busy by another program.",
        targets=[
            outcome.Target(
                "every planted fault is found and no control is blamed",
                f"{runs - failed} of {runs} runs",
                not failed,
            )
        ],
        shortened=runs < RUNS,
    )


if __name__ == "__main__":
    parser = outcome.options(__doc__)
    parser.add_argument("--runs", type=int, help=f"default: {RUNS}")
    sys.exit(outcome.report(measure, parser.parse_args()))
