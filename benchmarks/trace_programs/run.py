"""Run a program as it is and under ``dlprof trace``: the same bytes, and what tracing cost.

    python benchmarks/trace_programs/run.py [-n TIMES] program.py [arguments]

It prints whether stdout, stderr and the exit code are the same, the least time of the processors of
each side, and the table. Both sides run in turns.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

NOISE = re.compile(rb"^[IWE]\d{4} \d\d:|^\d{4}-\d\d-\d\d |^WARNING: All log messages before absl")
"""Lines of logs with a time in them: no two runs have the same."""


def cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def ran(command: list[str]) -> tuple[int, bytes, bytes, float]:
    began = cpu_s()
    done = subprocess.run(command, capture_output=True, check=False)
    return done.returncode, done.stdout, done.stderr, cpu_s() - began


def plain_log(text: bytes) -> list[bytes]:
    return [line for line in text.splitlines() if not NOISE.match(line) and line.strip()]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", type=int, default=3)
    parser.add_argument("program", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp()
    trace = str(Path(tempfile.mkdtemp(), "trace.json"))
    tracer = [sys.executable, "-m", "dlprof", "trace", "-o", trace, "--full"]
    times: dict[str, list[float]] = {"plain": [], "traced": []}
    for _ in range(given.n):
        plain = ran([sys.executable, *given.program])
        traced = ran([*tracer, *given.program])
        report = traced[2].rpartition(b"\ndlprof trace   ")
        same = {
            "exit code": plain[0] == traced[0],
            "stdout": plain[1] == traced[1],
            "stderr": plain_log(plain[2]) == plain_log(report[0]),
        }
        for one, other in zip(plain_log(plain[2]), plain_log(report[0]), strict=False):
            if one != other:
                print("-", one[:300], "\n+", other[:300])
                break
        times["plain"].append(plain[3])
        times["traced"].append(traced[3])
        print(", ".join(f"{name} {'same' if is_so else 'DIFFERS'}" for name, is_so in same.items()))
    least = {name: min(found) for name, found in times.items()}
    share = 100 * (least["traced"] / least["plain"] - 1)
    print(
        f"processors {least['plain']:.2f} s plain, {least['traced']:.2f} s traced, {share:+.1f} %"
    )
    print((report[1] + report[2]).decode())


if __name__ == "__main__":
    main()
